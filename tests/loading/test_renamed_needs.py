"""Libraries that were linked with a library of TensorFlow, led to the host runtime in a copy."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.candidate import Candidate, LoadFacts, Source
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.host_exports import HOST_RUNTIME, REPLACED_SONAMES, host_exports
from modular_tf.discovery.probe import probe
from modular_tf.loading.binding import map_file
from modular_tf.loading.private_copy import OpenedFile, copy_for_host
from modular_tf.native.library import Library
from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.build import framework_stub

if TYPE_CHECKING:
    from pathlib import Path

# TF_SetStatus and TF_GetCode are the host's, memcpy and printf are versioned by the C library.
_TEXT = """
#include <stdio.h>
#include <string.h>
void* TF_NewStatus(void);
void TF_SetStatus(void*, int, const char*);
int TF_GetCode(void*);
void TF_DeleteStatus(void*);
__attribute__((visibility("default"))) int ask(int code);
int ask(int code) {
  char words[16];
  snprintf(words, sizeof words, "%d", code);
  void* status = TF_NewStatus();
  TF_SetStatus(status, code, words);
  int found = TF_GetCode(status);
  TF_DeleteStatus(status);
  return found + (int)strlen(words);
}
__attribute__((visibility("default"))) void TF_InitKernel(void);
void TF_InitKernel(void) {}
"""
# A function of the kernel API that no release of the host has.
_ABSENT = """
int TF_NobodyHasThis(void);
__attribute__((visibility("default"))) int absent(void);
int absent(void) { return TF_NobodyHasThis(); }
"""


def build(folder: Path, *libraries: str | Path, text: str = _TEXT) -> Path:
    """Link a library; each gets bytes of its own, so that each is mapped."""
    source = folder / "library.c"
    source.write_text(text)
    options = ["-Wl,--no-as-needed", *map(str, libraries)]
    linked = link_library(f"lib{folder.name}.so", [compile_object(source)], options)
    return folder / shutil.copy(linked, folder)


def load(path: Path) -> Library:
    candidate = Candidate(str(path), str(path), Source.ARGUMENT, "test", None, None, "x")
    found = probe(candidate, host_exports())
    assert found.loadable, found.problems
    facts = LoadFacts.of(found)
    return map_file(str(path), facts.companions, facts.absent)


def call(library: Library, name: str, *arguments: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_int for _ in arguments))
    return int(function(library.symbol(name))(*arguments))


@pytest.mark.parametrize("version", ["", "tensorflow", "VERS_1.0", "of_tomorrow"])
@pytest.mark.parametrize("soname", sorted(REPLACED_SONAMES - {HOST_RUNTIME}))
def test_a_need_is_led_to_the_host_whatever_version_it_requires(soname, version, tmp_path):
    if version == "of_tomorrow":
        script = tmp_path / "map"
        script.write_text("of_tomorrow { global: *; };")
        stub_source = tmp_path / "stub.c"
        stub_source.write_text("void TF_NewStatus(void); void TF_NewStatus(void) {}")
        options = ["-fvisibility=default", f"-Wl,-soname,{soname},--version-script={script}"]
        needed = link_library(
            soname, [compile_object(stub_source, options=["-fvisibility=default"])], options
        )
    else:
        needed = framework_stub(soname, version=version)

    library = load(build(tmp_path, needed))

    assert call(library, "ask", 5) == 5 + 1
    assert Library.find(soname) is None, "what needs TensorFlow later would get the host"


def test_two_libraries_of_tensorflow_are_replaced_in_one_library(tmp_path):
    first = framework_stub("libtensorflow_cc.so.2", version="tensorflow")
    second = framework_stub("libtensorflow_framework.so.2", version="VERS_1.0")

    assert call(load(build(tmp_path, first, second)), "ask", 12) == 12 + 2


def test_versions_of_other_libraries_are_still_required(tmp_path):
    needed = framework_stub("libtensorflow_cc.so.2", version="tensorflow")
    path = build(tmp_path, needed)
    with (
        closing(OpenedFile(str(path))) as file,
        closing(copy_for_host(file, REPLACED_SONAMES)) as copy,
        ElfFile(str(path)) as original,
        ElfFile(copy.mapped_as) as changed,
    ):
        before = {(need.library, need.version) for need in original.version_needs()}
        after = {(need.library, need.version) for need in changed.version_needs()}
        names = {symbol.name: symbol.version for symbol in changed.undefined()}
        assert changed.dynamic.needed == tuple(
            name for name in original.dynamic.needed if name != "libtensorflow_cc.so.2"
        )

    assert before - after == {("libtensorflow_cc.so.2", "tensorflow")}
    assert after
    assert names["TF_NewStatus"] is None
    assert (names["strlen"] or "").startswith("GLIBC_")


def test_a_library_that_needs_nothing_but_tensorflow(tmp_path):
    needed = framework_stub("libtensorflow.so.2", version="VERS_1.0")
    text = """
    void* TF_NewStatus(void);
    int ask(int code);
    int TF_GetCode(void*);
    __attribute__((visibility("default"))) int ask(int code) {
      return TF_GetCode(TF_NewStatus()) + code;
    }
    void TF_InitKernel(void);
    __attribute__((visibility("default"))) void TF_InitKernel(void) {}
    """
    path = build(tmp_path, "-nostdlib", needed, text=text)
    with ElfFile(str(path)) as elf:
        assert elf.dynamic.needed == ("libtensorflow.so.2",)

    assert call(load(path), "ask", 3) == 3


def test_a_function_that_is_absent_may_have_a_version(tmp_path):
    source = tmp_path / "stub.c"
    source.write_text("int TF_NobodyHasThis(void); int TF_NobodyHasThis(void) { return 1; }")
    script = tmp_path / "map"
    script.write_text("tensorflow { global: *; };")
    soname = "libtensorflow_cc.so.2"
    stub = link_library(
        soname,
        [compile_object(source, options=["-fvisibility=default"])],
        [f"-Wl,-soname,{soname},--version-script={script}"],
    )
    framework = framework_stub("libtensorflow_framework.so.2", version="VERS_1.0")

    library = load(build(tmp_path, stub, framework, text=_TEXT + _ABSENT))

    assert call(library, "absent") == 0
    assert call(library, "ask", 7) == 7 + 1


@pytest.mark.parametrize(
    "oddity", ["no records counted", "no versions counted", "a hidden version", "far numbers"]
)
def test_the_versions_are_found_as_the_linker_finds_them(oddity, tmp_path):
    """It counts none of them, and takes no mark on a version for a part of its number."""
    path = build(tmp_path, framework_stub("libtensorflow_cc.so.2", version="tensorflow"))
    data = bytearray(path.read_bytes())
    with ElfFile(str(path)) as elf:
        (record,) = [each for each in elf.version_records() if "tensorflow" in each.library]
        at = elf.image.offset_of(record.address, 16, "")
        need = at + struct.unpack_from("<I", data, at + 8)[0]
        indices = elf.image.offset_of(elf.dynamic.version_indices_address, 0, "")
        of_symbols = elf.version_indices()
        assert elf.image.dynamic is not None
        begin, size = elf.image.dynamic
    number = 30_000 if oddity in {"a hidden version", "far numbers"} else record.needs[0].number
    for index, found in enumerate(of_symbols):
        if found == record.needs[0].number:
            struct.pack_into("<H", data, indices + 2 * index, number)
    mark = 0x8000 if oddity == "a hidden version" else 0
    struct.pack_into("<H", data, need + 6, number | mark)
    if oddity == "no versions counted":
        struct.pack_into("<H", data, at + 2, 0)
    if oddity == "no records counted":
        for entry in range(begin, begin + size, 16):
            if struct.unpack_from("<q", data, entry) == (0x6FFFFFFF,):
                struct.pack_into("<Q", data, entry + 8, 0)
    path.write_bytes(data)

    assert call(load(path), "ask", 5) == 5 + 1
    assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(data).digest()
