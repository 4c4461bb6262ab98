"""Libraries that a probe would let pass, and that the loader must still refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf.errors import PluginError
from modular_tf.loading.filesystem_tables import init_filesystems
from modular_tf.native.library import Library
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from pathlib import Path


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
