"""The published plugins as a user has them: tried, remembered, and mapped at their first use."""

from __future__ import annotations

import pytest

from tests.wild.conftest import PRELUDE

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

BEGINNING, _, FUNCTIONS = PRELUDE.partition("service = mtf.PluginService")
OPENING = """
mapped = lambda: [line for line in open("/proc/self/maps") if "tensorflow_io" in line]
service = mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]], bundled=False)
(record,) = service.load().plugins
expect(str(record.state), "loaded")
expect(record.warnings, ())
expect(mapped(), [])
base = os.environ["WILD_BASE"]
fs = service.filesystem_for(base)
put("remembered", b"data")
expect(get("remembered"), b"data")
expect(bool(mapped()), True)
expect(service.plugins()[0].warnings, ())
print([decision.text for decision in record.decisions if decision.stage == "first-contact"])
service.close()
"""


def test_they_are_tried_once_and_mapped_when_they_are_wanted(
    object_store, run_python, wild_environment, tmp_path
):
    environment = {
        **wild_environment(object_store, "first_contact"),
        "MODULAR_TF_FIRST_CONTACT": "",
        "MODULAR_TF_LOAD": "",
        "WILD_WITHOUT": "",
        "XDG_CACHE_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }
    functions = FUNCTIONS[FUNCTIONS.index("def uri") :]
    subject = f"{BEGINNING}\n{functions}\n{OPENING}"
    told = [run_python(subject, env=environment).stdout for _ in range(2)]

    assert "the process that it was tried in" in told[0]
    assert "when they were tried before" in told[1]
