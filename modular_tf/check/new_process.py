"""A process of its own that does something with a plugin and ends, as programs of users do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.processes.ending import sanitizer_report, signal_name
from modular_tf.processes.interpreter import command_like_here

if TYPE_CHECKING:
    from collections.abc import Mapping

_BLOCKED, _UNSUPPORTED = 41, 42
"""What it exits with where it cannot use the plugin; no plugin is likely to choose these."""

_SHOWN = 500
_kept: object = None
"""What the function returned, in such a process, to its end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        status: Its exit status, negative for a signal.
        said: The last that it wrote to standard error, or what a sanitizer reported there.
    """

    status: int
    said: str

    @property
    def how(self) -> str:
        """The exit status, or the signal, and what it said."""
        ending = signal_name(-self.status) if self.status < 0 else f"exit status {self.status}"
        return f"{ending}; it said: {self.said}" if self.said else ending


def run_in_new_process(
    module: str, function: str, arguments: Mapping[str, Any], *, seconds: float
) -> Ended | None:
    """Call a function in a new interpreter, and wait for the interpreter's end.

    Args:
        module: Where the function is.
        function: Its name. What it returns lives until the process ends.
        arguments: By name, as JSON knows them.
        seconds: How long it may take.

    Returns:
        How it ended, None where it did not and was killed.

    Raises:
        Blocked: The function said so by `leave`.
        Unsupported: Likewise.
    """
    job = {"module": module, "function": function, "arguments": arguments}
    try:
        done = subprocess.run(  # noqa: S603  (our own interpreter and text)
            command_like_here(sys.executable, __name__, job), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    said = done.stderr.strip()[-_SHOWN:]
    if done.returncode == _BLOCKED:
        raise Blocked(said.rpartition("\n")[2])
    if done.returncode == _UNSUPPORTED:
        raise Unsupported(said.rpartition("\n")[2])
    report = sanitizer_report(done.stderr)
    return Ended(done.returncode, said if report is None else str(report))


def serve(*, module: str, function: str, arguments: Mapping[str, Any]) -> None:
    """Call the function, in such a process; see `run_in_new_process`."""
    global _kept  # noqa: PLW0603  (of the process, which has no other use)
    _kept = getattr(import_module(module), function)(**arguments)


def leave(why: Exception) -> NoReturn:
    """End such a process, which cannot do what it was asked for.

    Args:
        why: An `Unsupported`, or what blocks it.
    """
    sys.stderr.write("\n" + str(why).partition("\n")[0])  # what the plugin said stands above
    sys.exit(_UNSUPPORTED if isinstance(why, Unsupported) else _BLOCKED)
