"""Libraries that were linked with a library of TensorFlow, led to the host runtime in a copy."""

import ctypes
from contextlib import closing

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.host_exports import HOST_RUNTIME, REPLACED_SONAMES
from modular_tf.loading.private_copy import OpenedFile, copy_for_host
from modular_tf.native.library import Library
from tests.fixtures.compiler import link_library, object_of_text
from tests.fixtures.matrices import sampled_product
from tests.loading.conftest import load_probed, put
from tests.plugins.build import framework_stub

# TF_SetStatus and TF_GetCode are the host's, memcpy and printf are versioned by the C library.
_TEXT = """
#include <stdio.h>
#include <string.h>
void* TF_NewStatus(void);
void TF_SetStatus(void*, int, const char*);
int TF_GetCode(void*);
void TF_DeleteStatus(void*);
int ask(int code) {
  char words[16];
  snprintf(words, sizeof words, "%d", code);
  void* status = TF_NewStatus();
  TF_SetStatus(status, code, words);
  int found = TF_GetCode(status);
  TF_DeleteStatus(status);
  return found + (int)strlen(words);
}
void TF_InitKernel(void) {}
"""
# A function of the kernel API that no release of the host has.
_ABSENT = """
int TF_NobodyHasThis(void);
int absent(void) { return TF_NobodyHasThis(); }
"""
_NOTHING_ELSE = """
void* TF_NewStatus(void);
int TF_GetCode(void*);
int ask(int code) { return TF_GetCode(TF_NewStatus()) + code; }
void TF_InitKernel(void) {}
"""
CC, FRAMEWORK = "libtensorflow_cc.so.2", "libtensorflow_framework.so.2"


def build(folder, *libraries, text=_TEXT):
    """Link a library; each gets bytes of its own, so that each is mapped."""
    options = ["-Wl,--no-as-needed", *map(str, libraries)]
    return put(link_library(f"lib{folder.name}.so", [object_of_text(text)], options), folder)


def stub_with(function, version, soname, tmp_path):
    """Build a library with one function of a version."""
    script = tmp_path / "map"
    script.write_text(f"{version} {{ global: *; }};")
    options = [f"-Wl,-soname,{soname},--version-script={script}"]
    return link_library(soname, [object_of_text(f"void {function}(void) {{}}")], options)


def call(library, name, *arguments):
    function = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_int for _ in arguments))
    return int(function(library.symbol(name))(*arguments))


@pytest.mark.parametrize(
    ("soname", "version"),
    sampled_product(
        sorted(REPLACED_SONAMES - {HOST_RUNTIME}), ["", "tensorflow", "VERS_1.0", "of_tomorrow"]
    ),
)
def test_a_need_is_led_to_the_host_whatever_version_it_requires(soname, version, tmp_path):
    if version == "of_tomorrow":
        needed = stub_with("TF_NewStatus", version, soname, tmp_path)
    else:
        needed = framework_stub(soname, version=version)

    library = load_probed(build(tmp_path, needed))

    assert call(library, "ask", 5) == 5 + 1
    assert Library.find(soname) is None, "what needs TensorFlow later would get the host"


def test_two_libraries_of_tensorflow_are_replaced_and_an_absent_function_may_have_a_version(
    tmp_path,
):
    first = stub_with("TF_NobodyHasThis", "tensorflow", CC, tmp_path)
    second = framework_stub(FRAMEWORK, version="VERS_1.0")

    library = load_probed(build(tmp_path, first, second, text=_TEXT + _ABSENT))

    assert call(library, "absent") == 0
    assert call(library, "ask", 12) == 12 + 2


def test_versions_of_other_libraries_are_still_required(tmp_path):
    path = build(tmp_path, framework_stub(CC, version="tensorflow"))
    with (
        closing(OpenedFile(str(path))) as file,
        closing(copy_for_host(file)) as copy,
        ElfFile(str(path)) as original,
        ElfFile(copy.mapped_as) as changed,
    ):
        before = {(need.library, need.version) for need in original.version_needs()}
        after = {(need.library, need.version) for need in changed.version_needs()}
        names = {symbol.name: symbol.version for symbol in changed.undefined()}
        assert changed.dynamic.needed == tuple(n for n in original.dynamic.needed if n != CC)

    assert before - after == {(CC, "tensorflow")}
    assert after
    assert names["TF_NewStatus"] is None
    assert names["strlen"].startswith("GLIBC_")


def test_a_library_that_needs_nothing_but_tensorflow(tmp_path):
    needed = framework_stub("libtensorflow.so.2", version="VERS_1.0")
    path = build(tmp_path, "-nostdlib", needed, text=_NOTHING_ELSE)
    with ElfFile(str(path)) as elf:
        assert elf.dynamic.needed == ("libtensorflow.so.2",)

    assert call(load_probed(path), "ask", 3) == 3
