"""Functions and source lines of native frames, as far as the plugin's file names them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import replace

import pytest
from elftools.elf.elffile import ELFFile

from modular_tf.check.outcome import Incident
from modular_tf.check.report.native_frames import demangled, with_named_frames
from tests.check.report.crashing_plugin import LINE, SOURCE, crashing_plugin
from tests.check.report.outcomes import CRASHED

_MANGLED = "_ZN8crashing11note_renameEPKcPNS_7JournalE"
_READABLE = "crashing::note_rename(char const*, crashing::Journal*)"


def _address_of(library, symbol=_MANGLED):
    with open(library, "rb") as stream:  # noqa: PTH123
        table = ELFFile(stream).get_section_by_name(".symtab")
        return table.get_symbol_by_name(symbol)[0]["st_value"]


def _functions(library):
    with open(library, "rb") as stream:  # noqa: PTH123
        symbols = ELFFile(stream).get_section_by_name(".symtab").iter_symbols()
        return [s["st_value"] for s in symbols if s["st_info"]["type"] == "STT_FUNC"]


def _named(library, place, **incident):
    (frame,) = _all_named(library, [place], **incident)
    return frame


def _all_named(library, places, **incident):
    ended = Incident(signal=11, backtrace=tuple(f"{library} {p}" for p in places), **incident)
    (named,) = with_named_frames([replace(CRASHED, incident=ended)], [str(library)])
    return [frame.removeprefix(f"{library} ") for frame in named.incident.backtrace]


def _changed(library, tmp_path, *options):
    """A copy of a library without some of its sections."""
    made = tmp_path / library.name
    subprocess.run(["objcopy", *options, library, made], check=True)
    return made


@pytest.mark.parametrize("debugging", ["-gdwarf-4", "-gdwarf-5"])
def test_a_hidden_function_is_named_with_its_source_line(debugging):
    library = crashing_plugin(debugging)
    address = _address_of(library)

    function, _, place = _named(library, hex(address + 4)).partition("+0x4 at ")

    assert function == _READABLE
    assert place.startswith(f"{SOURCE}:")
    assert abs(int(place.rpartition(":")[2]) - LINE) <= 1


@pytest.mark.parametrize("debugging", ["-gdwarf-4", "-gdwarf-5"])
def test_lines_are_found_without_a_table_of_ranges(tmp_path, debugging):
    """Clang writes none."""
    whole = crashing_plugin(debugging)
    library = _changed(whole, tmp_path, "--remove-section=.debug_aranges")
    places = [hex(start + 1) for start in _functions(whole)]  # as behind a call

    frames = _all_named(whole, places)

    assert sum(" at /" in frame for frame in frames) > 100
    assert _all_named(library, places) == frames


def test_a_library_without_debug_information_still_names_its_functions(tmp_path):
    library = _changed(crashing_plugin(), tmp_path, "--strip-debug")

    assert _named(library, hex(_address_of(library) + 4)) == f"{_READABLE}+0x4"


def test_a_stripped_library_gives_its_offset(tmp_path):
    address = _address_of(crashing_plugin())
    library = _changed(crashing_plugin(), tmp_path, "--strip-all")

    assert _named(library, hex(address)) == hex(address)


def test_the_offset_from_an_exported_symbol_leads_to_the_line_too():
    library = crashing_plugin()

    assert _named(library, "TF_InitPlugin+0x1").startswith(f"TF_InitPlugin+0x1 at {SOURCE}:")


def test_an_address_that_a_call_returns_to_counts_as_the_call():
    """It may be the first of the next function, where the call is the last instruction."""
    library = crashing_plugin()

    assert _named(library, hex(_address_of(library)), exit_status=3) != _named(
        library, hex(_address_of(library))
    )


@pytest.mark.parametrize("place", ["0xffffffffffff", "nothing+0x1", "+", "", "0x"])
def test_a_place_that_no_function_has_stays_as_it_is(place):
    assert _named(crashing_plugin(), place) == place


@pytest.mark.parametrize("cut", [0, 10, 64, 5000, 20000])
def test_a_file_that_is_broken_by_now_stays_without_names(tmp_path, cut):
    library = tmp_path / "libcut.so"
    library.write_bytes(crashing_plugin().read_bytes()[:cut])

    assert _named(library, "0x1000") == "0x1000"


def test_a_symbol_table_of_nonsense_stays_without_names(tmp_path):
    library = tmp_path / "libnonsense.so"
    shutil.copy(crashing_plugin(), library)
    with library.open("r+b") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        offset, entries = table["sh_offset"], table.num_symbols()
        stream.seek(offset)
        stream.write(struct.pack("<IBBHQQ", 1 << 31, 2, 0, 1, 0, 1 << 63) * entries)

    assert _named(library, "0x1000") == "0x1000"


def test_no_file_is_read_but_the_plugin_s(tmp_path):
    """Frames come from a process in which the plugin ran: it may have written any name."""
    ended = Incident(signal=11, backtrace=(f"{crashing_plugin()} 0x1000", "/dev/zero 0x1"))

    (named,) = with_named_frames([replace(CRASHED, incident=ended)], [str(tmp_path / "other.so")])

    assert named.incident.backtrace == ended.backtrace


def test_names_are_readable_in_other_libraries_too():
    ended = Incident(signal=6, backtrace=(f"/lib/libx.so {_MANGLED}+0x9",))

    (named,) = with_named_frames([replace(CRASHED, incident=ended)], [])

    assert named.incident.backtrace == (f"/lib/libx.so {_READABLE}+0x9",)


def test_without_the_extra_frames_stay_offsets(run_python):
    library = crashing_plugin()
    run_python(
        """
        import sys

        sys.modules["elftools.elf.elffile"] = None
        from modular_tf.check.outcome import Incident, Outcome, Pass, Verdict
        from modular_tf.check.report.native_frames import with_named_frames

        frame = f"{sys.argv[1]} 0x1000"
        incident = Incident(signal=11, backtrace=(frame,))
        crashed = Outcome("FS-158", "x://", Pass.RAW, Verdict.CRASHED, incident=incident)
        (named,) = with_named_frames([crashed], [sys.argv[1]])
        assert named == crashed, named
        """,
        library,
    )


@pytest.mark.parametrize(
    "name", ["read", "", "_Z", "_Znonsense", "_ZN" + "1a" * 4000 + "E", "a\0b"]
)
def test_what_is_no_mangled_name_stays_as_it_is(name):
    assert demangled(name) == name
