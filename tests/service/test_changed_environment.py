"""Variables that make a published plugin crash are changed before it reads them; one is told."""

from __future__ import annotations

import json

import pytest

SUBJECT = """
    import json, os, sys
    import modular_tf as mtf

    with mtf.PluginService(plugin_paths=sys.argv[1:]) as service:
        plugin = service.load().plugins[0]
        print(json.dumps({
            "state": plugin.state.value,
            "warnings": [w.message for w in plugin.warnings if w.rule == "LD-056"],
            "left": sorted(name for name in os.environ if name.startswith("GCS_APPEND")),
        }))
"""


@pytest.mark.wild
@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, []),
        ({"GCS_READ_CACHE_BLOCK_SIZE_MB": "0"}, []),
        (
            {"GCS_READ_CACHE_BLOCK_SIZE_MB": "64"},
            ["'gs': GCS_READ_CACHE_BLOCK_SIZE_MB was set to '0', from '64'"],
        ),
        ({"GCS_APPEND_MODE": "compose"}, ["'gs': GCS_APPEND_MODE was unset, from 'compose'"]),
    ],
    ids=["unset", "harmless", "forced", "removed"],
)
def test_a_deadly_variable_is_changed_and_told(run_forked, wild_plugins, variables, told):
    said = json.loads(run_forked(SUBJECT, wild_plugins.gcs_library, env=variables).stdout)

    assert said == {"state": "loaded", "warnings": told, "left": []}
