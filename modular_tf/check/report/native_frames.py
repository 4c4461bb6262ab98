"""Functions and source lines of native frames, where the plugin's file names them.

Files are read in a process of its own (`named_frames`), since they may hold anything.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.check.report.source_lines import SourceLines
from modular_tf.native.c_library import die_with_parent
from modular_tf.native.ffi import ffi, lib
from modular_tf.processes.child import dump_no_core, lower_limit
from modular_tf.processes.descendants import memory_use

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_SYMBOL = struct.Struct("<IBBHQQ")
_FUNCTION = 2
_MOST_OF_A_NAME = 4096
_PAGE = 4096
MOST_MEMORY = 2 << 30
"""What reading files may take, in bytes."""


def serve(*, parent: int) -> None:
    """Write the names of the frames that standard input holds, and end.

    Args:
        parent: The process that waits for them.
    """
    die_with_parent(parent)
    dump_no_core()
    lower_limit(resource.RLIMIT_DATA, memory_use("self").allocated + MOST_MEMORY)
    asked = json.load(sys.stdin)
    names = names_of(((frame, returns) for frame, returns in asked["frames"]), asked["files"])
    print(f"\n{json.dumps([*names])}", flush=True)  # noqa: T201


def names_of(frames: Iterable[tuple[str, bool]], files: Collection[str]) -> Iterator[str]:
    """Yield frames with their names; one that has none as it is, but for C++ names.

    Args:
        frames: Each with whether its address is one that a call returns to.
        files: No others are read.
    """
    with ExitStack() as opened:
        names = _Names(files, opened)
        for frame, returns in frames:
            yield names.of(frame, returns=returns)


class _Names:
    """The names in some files, each of which is opened once."""

    def __init__(self, files: Collection[str], opened: ExitStack) -> None:
        self._files = files
        self._opened = opened
        self._libraries: dict[str, _Library] = {}

    def of(self, frame: str, *, returns: bool) -> str:
        file = next((each for each in self._files if frame.startswith(f"{each} ")), None)
        if file is None:
            return readable(frame)
        symbol, _, offset = frame[len(file) + 1 :].rpartition("+")
        try:
            found = self._library(file).place(symbol, int(offset, 16), returns=returns)
        except Exception:  # noqa: BLE001  (a broken file; no reader)
            found = None
        return readable(frame) if found is None else f"{file} {found}"

    def _library(self, file: str) -> _Library:
        if file not in self._libraries:
            self._libraries[file] = _Library(file, self._opened)
        return self._libraries[file]


def readable(frame: str) -> str:
    """Return a frame whose symbol, if it has one, is readable."""
    file, _, place = frame.rpartition(" ")
    symbol, plus, offset = place.rpartition("+")
    return f"{file} {demangled(symbol)}{plus}{offset}"


def demangled(name: str) -> str:
    """Return the readable form of a mangled C++ name; any other name as it is."""
    text = ffi.new("char[]", _MOST_OF_A_NAME)
    raw = os.fsencode(name)
    if not raw.startswith(b"_Z") or b"\0" in raw or not lib.mtf_demangle(raw, text, len(text)):
        return name
    return os.fsdecode(ffi.string(text))


class _Function(NamedTuple):
    names: Any
    name_at: int
    start: int
    end: int

    def name(self) -> str:
        return str(self.names.get_string(self.name_at))[:_MOST_OF_A_NAME]


class _Library:
    """A library's file.

    Raises:
        ImportError: The extra `check` is not installed.
        Exception: The file is not there, or is broken.
    """

    def __init__(self, path: str, opened: ExitStack) -> None:
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415  (an extra, for crashes only)

        self._elf: Any = ELFFile(opened.enter_context(open(path, "rb")))  # noqa: SIM115
        self._lines = SourceLines(self._elf)

    def place(self, symbol: str, offset: int, *, returns: bool) -> str | None:
        """Return `FUNCTION+0xOFFSET at SOURCE:LINE`, as much as is known; None for nothing."""
        start = self._address_of(symbol) if symbol else self._first_address()
        if start is None:
            return None
        address = start + offset
        inside = address - returns
        function = self._function_at(inside)
        if function is None:
            return None
        named = f"{demangled(function.name())}+{address - function.start:#x}"
        line = self._lines.at(inside)
        return named if line is None else f"{named} at {line[-_MOST_OF_A_NAME:]}"

    def _first_address(self) -> int:
        """Return the address in the file at which its mapping begins."""
        segments = (each["p_vaddr"] for each in self._elf.iter_segments("PT_LOAD"))
        return int(min(segments)) // _PAGE * _PAGE

    def _address_of(self, symbol: str) -> int | None:
        for function in self._functions(".dynsym"):
            if function.name() == symbol:
                return function.start
        return None

    def _function_at(self, address: int) -> _Function | None:
        for table in (".symtab", ".dynsym"):
            for function in self._functions(table):
                if function.start <= address < function.end and function.name():
                    return function
        return None

    def _functions(self, table: str) -> Iterator[_Function]:
        section = self._elf.get_section_by_name(table)
        if section is None:
            return
        for name, info, _, _, start, size in _SYMBOL.iter_unpack(section.data()):
            if info & 0xF == _FUNCTION:
                yield _Function(section.stringtable, name, start, start + size)
