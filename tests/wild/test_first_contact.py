"""The published plugins as a user has them: tried, remembered, and mapped at their first use."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_USE = """
    import os
    import modular_tf as mtf

    def is_mapped():
        with open("/proc/self/maps") as maps:
            return "tensorflow_io" in maps.read()

    service = mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]], bundled=False)
    (record,) = service.load().plugins
    assert (str(record.state), record.warnings, is_mapped()) == ("loaded", (), False), record
    file = os.environ["WILD_BASE"] + "/remembered"
    fs = service.filesystem_for(file)
    with fs.new_writable_file(file) as writer:
        writer.append(b"data")
    with fs.new_random_access_file(file) as reader:
        assert reader.read(0, 9) == b"data"
    assert (service.plugins()[0].warnings, is_mapped()) == ((), True)
    print([decision.text for decision in record.decisions if decision.stage == "first-contact"])
    service.close()
"""


@pytest.mark.parametrize("object_store", ["s3", "gs"], indirect=True)  # of either plugin
def test_they_are_tried_once_and_mapped_when_they_are_used(
    object_store, run_python, wild_environment, tmp_path
):
    environment = {
        **wild_environment(object_store, "first_contact"),
        "MODULAR_TF_FIRST_CONTACT": "",
        "MODULAR_TF_LOAD": "",
        "XDG_CACHE_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }
    first, second = (run_python(_USE, env=environment).stdout for _ in range(2))

    assert "the process that it was tried in" in first
    assert "when they were tried before" in second
