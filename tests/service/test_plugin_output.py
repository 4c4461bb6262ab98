"""What plugins print while they are loaded, and what the application prints."""

from __future__ import annotations

import pytest

from tests.first_contact.conftest import build_misdeed
from tests.fixtures.machine import EXIT_WAITS_FOR_READERS
from tests.fixtures.matrices import sampled_product

_LOAD = """
import sys
from modular_tf.service.service import PluginService

print("application: before", flush=True)
with PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
    (record,) = service.load().plugins
    assert record.state.value == "loaded", record.reasons
print("application: after")
"""


_DEEDS = ["UNFLUSHED", *([] if EXIT_WAITS_FOR_READERS else ["READ_IN_A_THREAD"])]
_PLACES = {"INIT": "device", "CONSTRUCTOR": "device", "SCHEME_INIT": "filesystem"}


@pytest.mark.parametrize(
    ("place", "deed", "first_contact"),
    sampled_product(list(_PLACES), _DEEDS, ["never", "always"]),
)
def test_it_goes_to_standard_error(place, deed, first_contact, run_forked):
    library = build_misdeed(deed, place, _PLACES[place])
    ended = run_forked(_LOAD, library, env={"MODULAR_TF_FIRST_CONTACT": first_contact})

    assert ended.stdout.splitlines() == ["application: before", "application: after"]
    assert "no line's end" in ended.stderr


_INTERRUPTED = """
from modular_tf.processes import child

def flush():
    if flushed:
        raise KeyboardInterrupt
    flushed.append(True)

flushed = []
child.flush_output = flush
try:
    with child.output_to_standard_error():
        print("of the plugin", flush=True)
except KeyboardInterrupt:
    print("of the application")
"""


def test_an_interrupt_leaves_standard_output_to_the_application(run_forked):
    ended = run_forked(_INTERRUPTED)

    assert ended.stdout == "of the application\n"
    assert ended.stderr == "of the plugin\n"
