"""Functions and source lines of native frames, where the plugin's file names them."""

from __future__ import annotations

import os
import struct
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.check.report.source_lines import SourceLines
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from modular_tf.check.outcome import Incident, Outcome

_SYMBOL = struct.Struct("<IBBHQQ")
_FUNCTION = 2
_MOST_OF_A_NAME = 4096
_PAGE = 4096


def with_named_frames(outcomes: Iterable[Outcome], files: Iterable[str]) -> tuple[Outcome, ...]:
    """Return outcomes whose native frames say function and source line where a file has them.

    A frame was `FILE 0xOFFSET` or `FILE SYMBOL+0xOFFSET`, and becomes
    `FILE FUNCTION+0xOFFSET at SOURCE:LINE`; C++ names are readable.

    Args:
        outcomes: The outcomes.
        files: The plugin's own files, absolute: no others are read, whatever a frame names.
    """
    with ExitStack() as opened:
        names = _Names(frozenset(files), opened)
        return tuple(_with_names(outcome, names) for outcome in outcomes)


def _with_names(outcome: Outcome, names: _Names) -> Outcome:
    incident = outcome.incident
    if incident is None or not incident.backtrace:
        return outcome
    return replace(outcome, incident=replace(incident, backtrace=tuple(names.of(incident))))


class _Names:
    """The names of frames; each is looked up once."""

    def __init__(self, files: Collection[str], opened: ExitStack) -> None:
        self._files = files
        self._opened = opened
        self._libraries: dict[str, _Library] = {}
        self._known: dict[tuple[str, bool], str] = {}

    def of(self, incident: Incident) -> Iterator[str]:
        """Yield the frames of an incident with their names."""
        for number, frame in enumerate(incident.backtrace):
            # Behind the first one stand the addresses that calls return to; so does the first of
            # an exit, which no signal interrupted.
            key = frame, number > 0 or incident.exit_status is not None
            if key not in self._known:
                self._known[key] = self._named(*key)
            yield self._known[key]

    def _named(self, frame: str, returns: bool) -> str:  # noqa: FBT001
        file = next((each for each in self._files if frame.startswith(f"{each} ")), None)
        if file is None:
            return _readable(*_split(frame))
        place = frame[len(file) + 1 :]
        symbol, _, offset = place.rpartition("+")
        try:
            found = self._library(file).place(symbol, int(offset, 16), returns=returns)
        except Exception:  # noqa: BLE001  (a broken file; no reader)
            found = None
        return _readable(file, place) if found is None else f"{file} {found}"

    def _library(self, file: str) -> _Library:
        if file not in self._libraries:
            self._libraries[file] = _Library(file, self._opened)
        return self._libraries[file]


def _split(frame: str) -> tuple[str, str]:
    file, _, place = frame.rpartition(" ")
    return file, place


def _readable(file: str, place: str) -> str:
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
        return str(self.names.get_string(self.name_at))


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
        return named if line is None else f"{named} at {line}"

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
