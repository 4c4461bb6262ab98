"""A sequence of operations as data: written down, handed to another process, replayed."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any, TypeAlias

from modular_tf.check.outcome import Pass
from modular_tf.errors import ConfigError

Step: TypeAlias = "tuple[str, list[Any]]"
"""An operation and its arguments, as JSON knows them: bytes are written as hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Program:
    """A sequence of operations.

    Attributes:
        steps: The operations, in order.
    """

    steps: tuple[Step, ...]

    def as_json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(self.steps, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Program:
        """Make it from what `as_json` gave.

        Raises:
            ValueError: It is none.
        """
        match json.loads(text):
            case list(steps):
                return cls(tuple(_step(step) for step in steps))
        raise ValueError(f"expected a list of steps, found {text!r:.100}")


def _step(value: Any) -> Step:
    match value:
        case [str(operation), list(arguments)]:
            return operation, arguments
    raise ValueError(f"expected an operation and its arguments, found {value!r:.100}")


@dataclass(frozen=True, slots=True)
class Replay:
    """A program, and on what it is to be tried: what `--replay` is given.

    Attributes:
        check_id: The check that found it.
        reached: In which way the plugin was reached.
        scheme: The scheme, None for a device.
        ordinal: The device's number, None for a filesystem.
        program: The program.
    """

    check_id: str
    reached: Pass
    scheme: str | None
    ordinal: int | None
    program: Program

    def token(self) -> str:
        """Return it as one word for a command line."""
        parts = [
            self.check_id,
            self.reached.value,
            self.scheme,
            self.ordinal,
            self.program.as_json(),
        ]
        packed = zlib.compress(json.dumps(parts).encode(), 9)
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def from_token(cls, token: str) -> Replay:
        """Make it from what `token` gave.

        Raises:
            ConfigError: It is no such word.
        """
        try:
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            check_id, reached, scheme, ordinal, program = json.loads(zlib.decompress(packed))
            return cls(check_id, Pass(reached), scheme, ordinal, Program.from_json(program))
        except (ValueError, TypeError, zlib.error) as error:
            raise ConfigError(f"--replay: {token!r:.60} is none that a report has named") from error
