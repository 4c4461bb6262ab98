"""A fresh root on a filesystem plugin, with the entries that the catalogue's rows need."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from tests.contrib.outcome import NOT_FOUND, OK, OUT_OF_RANGE, Outcome

if TYPE_CHECKING:
    from tests.contrib.plugin_process import PluginProcess

FILE, EMPTY, DIRECTORY, FULL, MISSING = "file", "empty", "dir", "full", "missing"
UNDER_FILE, UNDER_MISSING, OTHER = "file/x", "missing/y", "other"
CONTENT = b"abcd"
_CHUNK = 1 << 20


class World:
    """Names below a root of its own. Setup calls must succeed; those under test are `call`ed."""

    def __init__(self, plugin: PluginProcess, root: str) -> None:
        self.plugin = plugin
        self.root = root
        self._must("recursively_create_dir", "")

    def populate(self) -> None:
        """Make the entries that the constants name."""
        for name in (DIRECTORY, FULL):
            self._must("create_dir", name)
        for name, data in ((FILE, CONTENT), (EMPTY, b""), (OTHER, b"0123456789")):
            self.write(name, data)
        self.write(f"{FULL}/inner", b"inside")

    def uri(self, name: str) -> str:
        """The full URI of a name below the root."""
        return f"{self.root}/{name}" if name else self.root

    def call(self, slot: str, *names: str) -> Outcome:
        """One slot on names below the root."""
        outcome: Outcome = self.plugin.call(slot, *map(self.uri, names))
        return outcome

    def _must(self, slot: str, *names: str) -> Any:
        outcome = self.call(slot, *names)
        assert outcome.code == OK, (slot, names, outcome)
        return outcome.value

    def open(self, slot: str, name: str) -> int:
        """Open a file; returns its number."""
        outcome = self.plugin.open(slot, self.uri(name))
        assert outcome.code == OK, (slot, name, outcome)
        number: int = outcome.value
        return number

    def write(self, name: str, data: bytes, slot: str = "new_writable_file") -> None:
        """Make a file that holds `data`, or append to it with the other slot."""
        file = self.open(slot, name)
        assert self.plugin.append(file, data).code == OK
        assert self.plugin.writer("close", file).code == OK
        self.plugin.cleanup("writer", file)

    def read(self, name: str) -> bytes:
        """All bytes of a file, read in chunks to its end."""
        file, pieces = self.open("new_random_access_file", name), []
        for offset in count(0, _CHUNK):
            outcome = self.plugin.read(file, offset, _CHUNK)
            pieces.append(outcome.value[1])
            if outcome.code != OK:
                break
        self.plugin.cleanup("reader", file)
        assert outcome.code == OUT_OF_RANGE, outcome
        return b"".join(pieces)

    def exists(self, name: str) -> bool:
        """Whether path_exists finds it; anything but OK and NOT_FOUND is a fault."""
        code = self.call("path_exists", name).code
        assert code in {OK, NOT_FOUND}
        return code == OK

    def children(self, name: str = "") -> list[str]:
        """Sorted names in a directory."""
        outcome = self.plugin.get_children(self.uri(name))
        number, names = outcome.value
        assert outcome.code == OK, outcome
        assert number == len(names)
        return sorted(names)

    def tree(self, name: str = "") -> dict[str, bytes | None]:
        """Everything below a name: bytes of files, None for directories."""
        found: dict[str, bytes | None] = {}
        for child in self.children(name):
            path = f"{name}/{child}" if name else child
            if self.call("is_directory", path).value:
                found[path] = None
                found |= self.tree(path)
            else:
                found[path] = self.read(path)
        return found
