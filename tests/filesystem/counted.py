"""Tests whose body runs in a process of its own with the fixture plugin, which counts its calls."""

from __future__ import annotations

import os

from modular_tf.errors import ClosedError
from modular_tf.service.service import PluginService
from tests.fixtures.forked_children import with_body


def begin():
    """Return a service with the plugin, and its filesystem if there is one."""
    service = PluginService(plugin_paths=[os.environ["COUNTED_PLUGIN"]], bundled=False)
    service.load()
    return service, service.filesystem("fixture") if service.schemes() else None


def counted(variant="good", **expected):
    """Run a test with a variant of the plugin, and compare what that has counted in the end."""

    def run(run_body, fixture_plugin, plugin_report):
        library = str(fixture_plugin(variant))
        run_body(env={**plugin_report.environment, "COUNTED_PLUGIN": library})
        found = plugin_report.last()
        assert found["bad_frees"] == 0
        assert {name: found[name] for name in expected} == expected
        assert found["allocated"] == found["freed"]

    return lambda test: with_body(test, run, "fixture_plugin", "plugin_report")


def ended(files, writers=0):
    """Return what is counted where all that was opened was ended."""
    return {
        "files_opened": files,
        "files_cleaned_up": files,
        "writers_closed": writers,
        "inits": 1,
        "cleanups": 1,
    }


def is_closed(use):
    """Return whether a use of something says that it is closed."""
    try:
        use()
    except ClosedError:
        return True
    return False
