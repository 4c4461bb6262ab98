"""Source lines of addresses, from the debug information of a library (DWARF)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_BYTES = 256 << 20
_COUNTS_FROM_0 = 5  # the version of DWARF from which on files do


class SourceLines:
    """The source lines of a library. What is broken raises whatever the reader raises.

    Args:
        elf: The library, as pyelftools has it.
    """

    def __init__(self, elf: Any) -> None:
        sections = [elf.get_section_by_name(name) for name in (".debug_info", ".debug_line")]
        self._debug: Any = None
        if None not in sections and sum(each.data_size for each in sections) <= _MOST_BYTES:
            self._debug = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)

    def at(self, address: int) -> str | None:
        """Return `SOURCE:LINE` of an address in the file, None where that is not known."""
        unit = None if self._debug is None else self._unit_at(address)
        return None if unit is None else self._line_of(unit, address)

    def _unit_at(self, address: int) -> Any:
        """Return the unit that an address was compiled in."""
        table = self._debug.get_aranges()
        if table is not None and (offset := table.cu_offset_at_addr(address)) is not None:
            return self._debug.get_CU_at(offset)
        for unit in self._debug.iter_CUs():  # not every compiler writes the table
            if any(begin <= address < end for begin, end in self._ranges(unit)):
                return unit
        return None

    def _ranges(self, unit: Any) -> Iterator[tuple[int, int]]:
        """Yield where the code of a unit begins and ends."""
        attributes = unit.get_top_DIE().attributes
        base = attributes["DW_AT_low_pc"].value if "DW_AT_low_pc" in attributes else 0
        if "DW_AT_ranges" in attributes:
            listed = attributes["DW_AT_ranges"].value
            for entry in self._debug.range_lists().get_range_list_at_offset(listed, cu=unit):
                if hasattr(entry, "base_address"):
                    base = entry.base_address
                else:
                    start = 0 if entry.is_absolute else base
                    yield start + entry.begin_offset, start + entry.end_offset
        elif "DW_AT_high_pc" in attributes:
            end = attributes["DW_AT_high_pc"]
            yield base, end.value if end.form == "DW_FORM_addr" else base + end.value

    def _line_of(self, unit: Any, address: int) -> str | None:
        program = self._debug.line_program_for_CU(unit)
        before = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None and before.address <= address < state.address and before.line:
                return f"{_source(program, before.file, unit)}:{before.line}"
            before = None if state.end_sequence else state
        return None


def _source(program: Any, number: int, unit: Any) -> str:
    first = 0 if program["version"] >= _COUNTS_FROM_0 else 1
    file = program["file_entry"][number - first]
    built_in = os.fsdecode(unit.get_top_DIE().attributes["DW_AT_comp_dir"].value)
    folders = [os.fsdecode(each) for each in program["include_directory"]]
    folder = ([built_in] * first + folders)[file.dir_index]
    return os.path.normpath(os.path.join(built_in, folder, os.fsdecode(file.name)))
