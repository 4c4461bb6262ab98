"""Our ELF reader answers as pyelftools does, on real libraries; tests/fuzz has damaged ones."""

import re
from pathlib import Path

from modular_tf.discovery.elf import ElfFile
from tests.discovery.conftest import DEVICE, FILESYSTEM
from tests.fuzz.elf import check

# Of other linkers, with versions, in C and in C++.
_REAL = ("libc.so.6", "libm.so.6", "libstdc++", "_core.", "_multiarray_umath", "libgfortran")


def test_libraries_of_this_process():
    import numpy as np  # noqa: F401  (brings libraries of other linkers into the process)

    maps = Path("/proc/self/maps").read_bytes()  # tests before may have mapped odd names
    mapped = set(re.findall(rb" (/[ -~]+\.so(?:\.[0-9.]+)?)$", maps, re.MULTILINE))
    paths = [path for path in map(bytes.decode, mapped) if any(name in path for name in _REAL)]

    assert any("libc.so.6" in path for path in paths)
    assert any("libstdc++" in path for path in paths)
    assert {path: check(Path(path).read_bytes()) for path in paths} == dict.fromkeys(
        paths, "agreed"
    )


def test_flags_and_kinds_of_symbols(compile_library):
    constructor = "__attribute__((constructor)) static void first(void) {}\n"
    now = compile_library("libnow.so", DEVICE + constructor + "int data;", "-Wl,-z,now")
    lazy = compile_library("liblazy.so", FILESYSTEM, "-Wl,-z,lazy", "-nostdlib")

    with ElfFile(str(now)) as elf:
        assert elf.dynamic.binds_now
        assert elf.dynamic.runs_code_on_load
        assert elf.find("SE_InitPlugin").is_callable
        assert not elf.find("data").is_callable
    with ElfFile(str(lazy)) as elf:
        assert not elf.dynamic.binds_now
        assert not elf.dynamic.runs_code_on_load
