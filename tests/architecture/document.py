"""The code blocks of a Markdown document, and running them as a reader would, top to bottom."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.fixtures.forked_children import ForkServer

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"\w+=")
_C_FILE = re.compile(r"/\* (\S+\.(?:c|cc|h)):")
SECONDS_FOR_ONE_COMMAND = 120


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        language: What follows the fence.
        text: Its lines.
        line: Number of its fence's line.
    """

    language: str
    text: str
    line: int


def blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a document."""
    return [
        Block(found[1], found[2], markdown.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(markdown)
    ]


class Reader:
    """Does what a document says, in a folder of its own.

    Args:
        folder: Where commands run and files are written.
        environment: Of every command.
        server: The interpreter whose forks run blocks of Python, instead of processes of their own.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], server: ForkServer | None = None
    ) -> None:
        self._folder = folder
        self._environment = environment
        self._server = server
        self._assignments: list[str] = []

    def console(self, block: Block) -> None:
        """Run the lines that start with a dollar; what follows each is what it must print."""
        for command, expected in _commands(block.text):
            if _ASSIGNMENT.match(command):
                self._assignments.append(command)
            done = self._run(["bash", "-ec", "\n".join([*self._assignments, command])])
            _compare(block, command, expected, done)

    def python(self, block: Block, expected: str | None) -> None:
        """Run a block as a program; `expected` is what it must print, besides warnings."""
        if self._server is None:
            done = self._run([sys.executable, "-c", block.text], stderr=subprocess.PIPE)
        else:
            done = self._server.run(
                block.text,
                folder=self._folder,
                environment=self._environment,
                timeout=SECONDS_FOR_ONE_COMMAND,
            )
        _compare(block, "the Python code", done.stdout if expected is None else expected, done)

    def c(self, block: Block) -> None:
        """Write a block to the file that its first line names."""
        named = _C_FILE.match(block.text)
        assert named, f"line {block.line}: the first line does not name the file"
        (self._folder / named[1]).write_text(block.text, encoding="utf-8")

    def _run(
        self, command: list[str], stderr: int = subprocess.STDOUT
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self._folder,
            env=dict(self._environment),
            stdout=subprocess.PIPE,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=SECONDS_FOR_ONE_COMMAND,
            check=False,
        )


def _commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _compare(
    block: Block, what: str, expected: str, done: subprocess.CompletedProcess[str]
) -> None:
    """Check the output; an ellipsis stands for anything, and all white space is one space."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in expected.split("…"))
    found = " ".join(done.stdout.split())
    said = f"{done.stdout}\n{done.stderr or ''}"
    assert done.returncode == 0, f"line {block.line}: {what} failed:\n{said}"
    assert re.fullmatch(pattern.replace(r"\ .*", r"\ ?.*"), found), (
        f"line {block.line}: {what} printed:\n{done.stdout}\nthe document says:\n{expected}"
    )
