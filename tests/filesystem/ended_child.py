"""Code that runs in a child with the fixture plugin, and what the plugin counted there."""

from __future__ import annotations

# Begins each child: a service with the fixture plugin, and its filesystem.
BEGIN = """
import gc, os, sys
from modular_tf.errors import ClosedError, ModularTFError
from modular_tf.service.service import PluginService

def begin():
    service = PluginService(plugin_paths=sys.argv[1:2], bundled=False)
    service.load()
    return service, service.filesystem("fixture")
"""


def assert_ended(counted, *, files, writers=0, cleanups=1):
    assert counted["files_opened"] == counted["files_cleaned_up"] == files
    assert counted["writers_closed"] == writers
    assert counted["inits"] == counted["cleanups"] == cleanups
