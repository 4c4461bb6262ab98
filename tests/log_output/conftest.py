"""A plugin that logs, and processes in which somebody listens to it."""

import json
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.build import framework_stub
from tests.plugins.matrix import TENSORFLOW_LIBRARY

HERE = Path(__file__).parent
FIXTURE = HERE.parent / "plugins" / "filesystem"
_FROM_FIXTURE = ("files.c", "good_filesystem.c", "ledger.c", "options.c", "plan.c", "store.c",
                 "string_list.c", "file_variants.c", "filesystem_variants.c",
                 "listing_variants.c", "registration_variants.c", "table_variants.c",
                 "../report.c")  # fmt: skip

PREAMBLE = """
import os, sys
import modular_tf as mtf
from modular_tf.service.configuration import Config

CONFIG = Config(first_contact="never", load="eager")

def listen(output="json", **options):
    mtf.configure_logging(output, **options)

def service():
    made = mtf.PluginService(config=CONFIG, plugin_paths=[sys.argv[1]], bundled=False)
    made.load(sys.argv[1])
    return made

def tell(made, word, number=0):
    made.filesystem("talk").path_exists(f"talk://host/{word}/{number}")
"""


@pytest.fixture(scope="session")
def talking_plugin():
    """A plugin that logs, mapped from its own file."""
    return _build("libtalking.so")


@pytest.fixture(scope="session")
def talking_tensorflow_plugin():
    """A plugin that logs and is mapped from a private copy, since it needs TensorFlow's library."""
    return _build("libtalking_of_tensorflow.so", str(framework_stub(TENSORFLOW_LIBRARY)))


def _build(name, *options):
    objects = [compile_object(HERE / "talking_plugin.c", ('FIXTURE_SCHEME="talk"',))]
    objects += [compile_object(FIXTURE / source) for source in _FROM_FIXTURE]
    return link_library(name, objects, ["-lpthread", *options])


@pytest.fixture
def run_listening(run_forked, talking_plugin, tmp_path):
    """Run code after `PREAMBLE` in a child; its arguments are the plugin and what is given.

    Each test has a state directory of its own: the third process that ends in a call of the plugin
    would have it quarantined for the tests that follow.
    """

    def run(code, *arguments, plugin=talking_plugin, env=None, **options):
        variables = {"XDG_STATE_HOME": str(tmp_path / "state"), **(env or {})}
        options = {"timeout": 60, "env": variables, **options}
        return run_forked(PREAMBLE + code, plugin, *arguments, **options)

    return run


def events_in(stderr):
    """Return the events of a log in JSON; at the end the plugin's destructor has said something."""
    return [json.loads(line) for line in stderr.splitlines() if "] unmapped" not in line]


def messages_in(stderr):
    """Return what plugins said in a log in JSON."""
    return [e["message"] for e in events_in(stderr) if e["event"] == "plugin.message"]
