"""Functions and source lines of native frames, where the plugin's file names them."""

from __future__ import annotations

import os
import struct
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from modular_tf.check.outcome import Incident, Outcome

_MOST_DEBUG_BYTES = 256 << 20
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
        self._debug = _debug_information(self._elf)

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
        line = self._line_at(inside)
        return f"{demangled(function.name())}+{address - function.start:#x}{line}"

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

    def _line_at(self, address: int) -> str:
        if self._debug is None:
            return ""
        unit = self._unit_at(address)
        return (
            "" if unit is None else _line_of(self._debug.line_program_for_CU(unit), address, unit)
        )

    def _unit_at(self, address: int) -> Any:
        ranges = self._debug.get_aranges()
        if ranges is not None and (offset := ranges.cu_offset_at_addr(address)) is not None:
            return self._debug.get_CU_at(offset)
        for unit in self._debug.iter_CUs():  # not every compiler writes the table of ranges
            program = self._debug.line_program_for_CU(unit)
            if program is not None and _line_of(program, address, unit):
                return unit
        return None


def _debug_information(elf: Any) -> Any:
    """Return what names the lines of sources; None where there is none, or too much of it."""
    sections = [elf.get_section_by_name(name) for name in (".debug_info", ".debug_line")]
    if None in sections or sum(each.data_size for each in sections) > _MOST_DEBUG_BYTES:
        return None
    return elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)


def _line_of(program: Any, address: int, unit: Any) -> str:
    """Return ` at SOURCE:LINE`, or nothing where a line program does not have an address."""
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and before.address <= address < state.address and before.line:
            return f" at {_source(program, before.file, unit)}:{before.line}"
        before = None if state.end_sequence else state
    return ""


def _source(program: Any, number: int, unit: Any) -> str:
    first = 0 if program["version"] >= 5 else 1  # noqa: PLR2004  (DWARF 5 counts from 0)
    file = program["file_entry"][number - first]
    built_in = os.fsdecode(unit.get_top_DIE().attributes["DW_AT_comp_dir"].value)
    folders = [os.fsdecode(each) for each in program["include_directory"]]
    folder = ([built_in] * first + folders)[file.dir_index]
    return os.path.normpath(os.path.join(built_in, folder, os.fsdecode(file.name)))
