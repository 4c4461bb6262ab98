"""Files that are written and read while a signal handler raises at random moments.

Whoever is interrupted goes on at the position that the file tells; in the end each byte must be
there once. Text tells no position: there the first interrupt is the end, and what was written must
be the beginning of what should have been.

Usage: python -m tests.stress.interrupted_files ROUNDS SEED
"""

from __future__ import annotations

import itertools
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf import gfile
from modular_tf.errors import AbortedError
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.filesystem import Filesystem

_SIZE = 150_000
_MOST_S = 2e-4


class Interrupt(BaseException):
    """What the signal handler raises."""


class Interrupts:
    """Lets a signal handler raise at random moments of a block."""

    def __init__(self, chance: random.Random) -> None:
        self.count = 0
        self._chance = chance
        signal.signal(signal.SIGALRM, self._raise)

    def _raise(self, *_: object) -> None:
        raise Interrupt

    def repeat(self, step: Callable[[], object]) -> None:
        """Call a function until no interrupt falls into it; they come later each time."""
        most = _MOST_S
        while True:
            most *= 1.05
            try:
                signal.setitimer(signal.ITIMER_REAL, self._chance.uniform(1e-5, most))
                step()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                self.count += 1
            else:
                return


class Round:
    """One file, written and read."""

    def __init__(
        self, service: PluginService, interrupts: Interrupts, chance: random.Random, number: int
    ) -> None:
        self.fs: Filesystem = service.filesystem(chance.choice(["ram", "file"]))
        self.kind = chance.choice(["open", "fsspec", "text", "unbuffered"])
        self._service = service
        self._interrupts = interrupts
        self._chance = chance
        self._step = chance.choice([7, 100, 1000, 5000])
        own = f"file://{Path.cwd()}/{number}"  # the folder is this campaign's
        self._uri = f"ram://{number}" if self.fs.scheme == "ram" else own
        lines = (f"line {number} of {number * 7919 % 1000}\n" for number in itertools.count())
        self._content = "".join(itertools.islice(lines, _SIZE // 16)).encode()[:_SIZE]

    def problem(self) -> str | None:
        """Write and read the file; return what is wrong with it."""
        written = self._written()
        with self.fs.new_random_access_file(self._uri) as file:
            found = file.read(0, 2 * _SIZE)
        expected = self._content[:written]
        lines = self._lines()
        self.fs.delete_file(self._uri)
        if found != expected:
            return f"{len(found)} bytes were written, expected {len(expected)}"
        if lines != found:
            return f"{len(lines)} bytes were read by lines, expected {len(found)}"
        return f"{self.fs.open_count} files are open" if self.fs.open_count else None

    def _open(self) -> Any:
        buffer_size = self._chance.choice([1 << 10, 1 << 16])
        if self.kind == "fsspec":
            fs = ModularFileSystem(self.fs.scheme, service=self._service)
            return fs.open(self._uri, "wb", block_size=buffer_size)
        if self.kind == "text":
            return self.fs.open(self._uri, "w", buffer_size, newline="")
        return self.fs.open(self._uri, "wb", 0 if self.kind == "unbuffered" else buffer_size)

    def _written(self) -> int:
        self._interrupts.repeat(self._write)
        return len(self._content)

    def _write(self) -> None:
        """Write the whole file; a write that is interrupted ends it, so that it is begun again."""
        file = self._open()
        content = self._content.decode() if self.kind == "text" else self._content
        try:
            for begin in range(0, len(content), self._step):
                file.write(content[begin : begin + self._step])
                if self._chance.random() < 1e-2:
                    file.flush()
            file.close()
        except Interrupt:
            with suppress(AbortedError):
                file.close()
            raise

    def _lines(self) -> bytes:
        lines: list[bytes] = []
        with gfile.using(self._service).GFile(self._uri, "rb") as file:
            self._interrupts.repeat(lambda: lines.extend(file.readlines()))
        return b"".join(lines)


def main() -> int:
    """Run the campaign; return the exit status."""
    rounds, seed = map(int, sys.argv[1:])
    chance = random.Random(seed)
    interrupts, problems = Interrupts(chance), 0
    with PluginService() as service:
        service.load("posix_filesystem", "ram_filesystem")
        for number in range(rounds):
            this = Round(service, interrupts, chance, number)
            if problem := this.problem():
                problems += 1
                print(f"round {number}, {this.kind} on {this.fs.scheme}: {problem}")
    print(f"{rounds} rounds, {interrupts.count} interrupts, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
