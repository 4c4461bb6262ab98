"""Libraries that a probe would let pass, and that the loader must still refuse."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import PluginError
from modular_tf.loading.loader import init_filesystems
from modular_tf.loading.opened_file import OpenedFile
from modular_tf.loading.private_copy import copy_for_host
from modular_tf.native.library import Library
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from pathlib import Path

SHORT = "libtf.so"  # no room for the host runtime's name


@pytest.fixture
def build(tmp_path: Path):
    """Build a library from C text."""

    def make(name: str, text: str, *options: str) -> Path:
        source = tmp_path / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        return link_library(name, [compile_object(source)], options)

    return make


@pytest.mark.parametrize(
    "text",
    [
        "const int unrelated = 1;",
        '__attribute__((visibility("default"))) const int TF_InitPlugin = 1;',
    ],
    ids=["missing", "data"],
)
def test_an_entry_that_is_no_function_is_not_called(build, text):
    library = Library.open(str(build("libentry.so", text)))

    with pytest.raises(PluginError, match="TF_InitPlugin is not a function") as caught:
        init_filesystems(library, plugin="entry")

    assert caught.value.rule == "LD-051"


def test_a_short_name_cannot_be_led_to_the_host(build):
    framework = build(SHORT, "const int unrelated = 1;", "-nostdlib", f"-Wl,-soname,{SHORT}")
    plugin = build("libneedy.so", "int unused;", "-nostdlib", "-Wl,--no-as-needed", str(framework))

    with ElfFile(str(plugin)) as elf:
        assert elf.dynamic.needed == (SHORT,)
    with (
        closing(OpenedFile(str(plugin))) as file,
        pytest.raises(PluginError, match="too short to hold") as caught,
    ):
        copy_for_host(file, frozenset({SHORT}))

    assert caught.value.rule == "LD-053"
    assert SHORT in caught.value.message
