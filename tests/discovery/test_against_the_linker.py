"""The dynamic linker maps no name that we do not read, and takes the file that we say it takes.

It lists what it would map with a library as a program (`ld.so --list`), and runs nothing.
"""

import re
import struct
import subprocess
from dataclasses import replace
from functools import partial
from mmap import PAGESIZE

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.errors import ElfError
from tests.discovery.elf_builder import ElfBuilder, on_one_page

_, _LINKER, _MACHINE = running_program()
_DYNAMIC_SIZES = 64 + 56 + 32  # p_filesz and p_memsz of the second program header of 64 bits
_MAPPED = re.compile(r"^\t(?!linux-vdso)(?:.* => )?(.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
_PT_LOAD = 1


def run_linker(library, library_path):
    """Have the linker list what it would map."""
    return subprocess.run(
        [_LINKER, "--list", str(library)],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_LIBRARY_PATH": library_path} if library_path else {},
    )


def files_by_linker(library, library_path):
    """Return the files that the linker would map."""
    done = run_linker(library, library_path)
    assert done.returncode == 0, done
    return _MAPPED.findall(done.stdout)


def _builder(needed):
    return ElfBuilder(
        machine=_MACHINE,
        needed=(needed,),
        exports=("x",),
        undefined=(),
        weak=(),
        hash_style="both",
        flags=6,
        soname="",
    )


def _made(needed):
    return bytearray(_builder(needed).build())


def _on_one_page(needed, *, n_bytes, page):
    shown = _builder("libshown.so" if page else needed)
    return on_one_page(shown, _builder(needed), n_bytes=n_bytes, page=page)


def _short_dynamic_segment(needed):
    """The entries of PT_DYNAMIC go on behind its p_filesz, and the first one is DT_NEEDED."""
    data = _made(needed)
    struct.pack_into("<QQ", data, _DYNAMIC_SIZES, 8, 8)
    return bytes(data)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_short_dynamic_segment, id="entries behind the dynamic segment"),
        pytest.param(partial(_on_one_page, n_bytes=8, page=1), id="other bytes"),
        pytest.param(partial(_on_one_page, n_bytes=0, page=1), id="empty segment"),
        pytest.param(partial(_on_one_page, n_bytes=8, page=0), id="same bytes"),
    ],
)
def test_the_linker_maps_no_name_that_we_do_not_read(make, tmp_path):
    path, needed = tmp_path / "libmade.so", tmp_path / "libfound.so"
    path.write_bytes(make(needed.name))
    needed.write_bytes(_made("libc.so.6"))
    assert str(needed) in files_by_linker(path, str(tmp_path))

    refusal = "two segments have different bytes of the file on one page of memory"
    assert _needed_or_refusal(path) in {needed.name, refusal}


def _needed_or_refusal(path):
    try:
        with ElfFile(str(path)) as elf:
            return " ".join(elf.dynamic.needed)
    except ElfError as error:
        return error.message.removeprefix("libmade.so is cut off or damaged: ").partition(", at")[0]


@pytest.mark.parametrize(("shift", "n_bytes"), [(0, 8), (8, 0), (PAGESIZE // 2, 8)])
def test_the_linker_maps_no_segment_between_pages(shift, n_bytes, tmp_path):
    """`strip` leaves such segments in some libraries that `patchelf` has changed."""
    moved = (_PT_LOAD, PAGESIZE + shift, 4 * PAGESIZE, n_bytes)
    path = tmp_path / "libmade.so"
    made = replace(_builder("libc.so.6"), segments=(moved,))
    path.write_bytes(made.build().ljust(3 * PAGESIZE, b"\0"))

    linker = run_linker(path, "")

    assert ("address/offset not" in linker.stderr) == bool(shift)
    segment = f"the segment at address {4 * PAGESIZE:#x}"
    expected = f"{segment} does not begin at the same place of a page"
    assert _needed_or_refusal(path) == (expected if shift else "libc.so.6")
