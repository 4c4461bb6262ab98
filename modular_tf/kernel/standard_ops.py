"""The operations that TensorFlow itself defines, from a table made of one of its releases.

`scripts/write_standard_ops` makes `standard_ops.bin`: the bytes are text compressed by zlib. The
first line holds the release and the counts, `release=2.21.0 ops=1908 …`; every other line is the
record of one operation (`modular_tf.kernel.op_grammar`), in the order of the names.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from modular_tf.kernel.op_grammar import read_op_definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.kernel.op_definition import OpDefinition

__all__ = ["StandardOps", "standard_ops"]


class StandardOps:
    """The definitions of one release of TensorFlow by the name of the operation; immutable.

    A definition is read at its first lookup. [any thread]

    Attributes:
        release: Of TensorFlow, as "2.21.0".
        counts: How many "ops", "attrs", "inputs" and "outputs" the release defines.
        source: What the definitions have as their source, as "TensorFlow 2.21.0".
    """

    def __init__(self, text: str) -> None:
        """Index the lines of a table: the first line, then those of the definitions."""
        header, *lines = text.removesuffix("\n").split("\n")
        facts = dict(fact.split("=") for fact in header.split())
        self.release = facts.pop("release")
        self.counts: Mapping[str, int] = {name: int(count) for name, count in facts.items()}
        self.source = f"TensorFlow {self.release}"
        self._lines = {line.partition("\0")[0]: line for line in lines}
        self._read: dict[str, OpDefinition] = {}

    def get(self, name: str) -> OpDefinition | None:
        """Return the definition of an operation, None if TensorFlow has none of the name."""
        if name in self._read:
            return self._read[name]
        line = self._lines.get(name)
        if line is None:
            return None
        return self._read.setdefault(name, read_op_definition(line, self.source))

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


@cache
def standard_ops() -> StandardOps:
    """Return the table of this package."""
    content = Path(__file__).with_name("standard_ops.bin").read_bytes()
    return StandardOps(zlib.decompress(content).decode("ascii"))
