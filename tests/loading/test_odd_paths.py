"""Libraries in folders whose names mean something to the dynamic linker."""

from __future__ import annotations

import shutil

import pytest

from modular_tf.service.service import PluginService


@pytest.mark.parametrize("folder", ["$ORIGIN", "a $LIB b", "with:colon", "blank and ünïcode"])
def test_a_folder_is_taken_by_its_letters(folder, tmp_path, fixture_plugin):
    odd = tmp_path / folder
    odd.mkdir()
    library = odd / "libodd.so"
    shutil.copy(fixture_plugin("good"), library)

    with PluginService(plugin_paths=[str(library)], bundled=False) as service:
        record = service.load()["odd"]

        assert (record.state.value, record.schemes) == ("loaded", ("fixture",))
