"""Functions and source lines of native frames, as far as the plugin's file names them."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from dataclasses import replace

import pytest
from elftools.elf.elffile import ELFFile

from modular_tf.check.outcome import Incident
from modular_tf.check.report import native_frames
from modular_tf.check.report.native_frames import demangled, with_named_frames
from modular_tf.check.report.wording import remedy
from tests.check.report.crashing_plugin import LINE, SOURCE, crashing_plugin
from tests.check.report.outcomes import CRASHED

_MANGLED = "_ZN8crashing11note_renameEPKcPNS_7JournalE"
_READABLE = "crashing::note_rename(char const*, crashing::Journal*)"


def _symbols(library):
    """Return the addresses of a library's functions by their names."""
    with library.open("rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".symtab").iter_symbols()
        return {s.name: s["st_value"] for s in symbols if s["st_info"]["type"] == "STT_FUNC"}


def _backtrace(frames, readable, **incident):
    ended = Incident(signal=11, backtrace=tuple(frames), **incident)
    (named,) = with_named_frames([replace(CRASHED, incident=ended)], list(map(str, readable)))
    return named


def _all_named(library, places, **incident):
    named = _backtrace([f"{library} {place}" for place in places], [library], **incident)
    return [frame.removeprefix(f"{library} ") for frame in named.incident.backtrace]


def _named(library, place="0x1000", **incident):
    (frame,) = _all_named(library, [place], **incident)
    return frame


def _changed(library, tmp_path, *options):
    """A copy of a library without some of its sections."""
    made = tmp_path / library.name
    subprocess.run(["objcopy", *options, library, made], check=True)
    return made


def test_functions_are_named_with_their_source_lines(tmp_path):
    """Hidden ones too, and without the table of ranges, of which Clang writes none."""
    whole = crashing_plugin()
    functions = _symbols(whole)
    function, _, place = _named(whole, hex(functions[_MANGLED] + 4)).partition(" at ")
    assert function == _READABLE
    assert place.startswith(f"{SOURCE}:")
    assert abs(int(place.rpartition(":")[2]) - LINE) <= 1
    # The offset from an exported symbol leads to the line too.
    assert _named(whole, "TF_InitPlugin+0x1").startswith(f"TF_InitPlugin at {SOURCE}:")

    places = [hex(start + 1) for start in [*functions.values()][:50]]  # as behind a call
    frames = _all_named(whole, places)
    assert sum(" at /" in frame for frame in frames) > 30
    library = _changed(whole, tmp_path, "--remove-section=.debug_aranges")
    assert _all_named(library, places) == frames


def test_a_library_without_debug_information_names_functions_and_a_stripped_one_offsets(tmp_path):
    address = hex(_symbols(crashing_plugin())[_MANGLED] + 4)

    library = _changed(crashing_plugin(), tmp_path, "--strip-debug")
    assert _named(library, address) == f"{_READABLE} at {address}"
    library = _changed(crashing_plugin(), tmp_path, "--strip-all")
    assert _named(library, address) == address


def test_an_address_that_a_call_returns_to_counts_as_the_call():
    """It may be the first of the next function, where the call is the last instruction."""
    library = crashing_plugin()
    places = [hex(_symbols(library)[_MANGLED])]

    # The call may lie in functions that were inlined in one another: a frame for each.
    assert _all_named(library, places, exit_status=3) != _all_named(library, places)


def test_a_place_that_no_function_has_stays_as_it_is():
    inside = _symbols(crashing_plugin())[_MANGLED] + 4
    for place in ("0xffffffffffff", f"nothing+{inside:#x}"):
        assert _named(crashing_plugin(), place) == place


@pytest.mark.parametrize("damage", [64, "symbols", "pipe"])
def test_a_file_that_is_broken_by_now_stays_without_names(tmp_path, damage):
    library = tmp_path / "libbroken.so"
    if damage == "pipe":
        os.mkfifo(library)
    elif damage == "symbols":
        shutil.copy(crashing_plugin(), library)
        with library.open("r+b") as stream:
            table = ELFFile(stream).get_section_by_name(".symtab")
            offset, entries = table["sh_offset"], table.num_symbols()
            stream.seek(offset)
            stream.write(struct.pack("<IBBHQQ", 1 << 31, 2, 0, 1, 0, 1 << 63) * entries)
    else:
        library.write_bytes(crashing_plugin().read_bytes()[:damage])

    assert _named(library) == "0x1000"


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Have a script stand in for addr2line, which reads a file that makes it do what is given."""

    def use(script):
        program = tmp_path / "bin" / "addr2line"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

    return use


_ALLOCATE = f"exec {sys.executable} -c 'bytearray(3 << 30); print(\"one at a.c:1\")'"


_SEVERAL_LINES = r"printf 'one at a.c:1\ntwo at b.c:2\n'"


@pytest.mark.parametrize("script", ["exec sleep 1000", "exec yes", _ALLOCATE, _SEVERAL_LINES])
def test_names_that_take_hours_or_all_space_or_memory_or_have_several_lines_are_given_up(
    stand_in, monkeypatch, script
):
    monkeypatch.setattr(native_frames, "_SECONDS", 1 if "sleep" in script else 60)
    stand_in(script)

    assert _named(crashing_plugin()) == "0x1000"


def test_no_file_is_read_but_the_plugin_s_and_names_are_readable_in_others(tmp_path):
    """Frames come from a process in which the plugin ran: it may have written any name."""
    frames = (f"{crashing_plugin()} 0x1000", "/dev/zero 0x1", f"/lib/libx.so {_MANGLED}+0x9")
    named = _backtrace(frames, [tmp_path / "other.so"])

    assert named.incident.backtrace == (*frames[:2], f"/lib/libx.so {_READABLE}+0x9")


def test_without_addr2line_the_remedy_names_its_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    frame = f"{crashing_plugin()} {_MANGLED}+0x1"
    named = _backtrace([frame], [crashing_plugin()], last_call="rename_file()")

    assert named.incident.backtrace == (frame.replace(_MANGLED, _READABLE),)
    assert "binutils" in remedy(named)


@pytest.mark.parametrize("name", ["_ZN" + "1a" * 4000 + "E", "a\0b"])
def test_what_is_no_mangled_name_stays_as_it_is(name):
    assert demangled(name) == name
