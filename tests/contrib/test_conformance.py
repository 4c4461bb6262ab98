"""The reference plugins keep every rule: all checks of the conformance kit, by slots and by host.

The kit as users run it is tried in tests/check.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contrib.built_plugin import built_plugin, installed_plugin
from tests.contrib.opencl_plugin import TWO_DEVICES

PROGRAM = Path(__file__).with_name("conformance.py")
REPLACED = {
    ("FS-167", reached, "noted", "a reader of a file that was replaced gives other bytes")
    for reached in ("raw", "host")
}
SKIPPED_OF_DEVICES = {"SE-125", "SE-329"}  # there is no bus id, and no allocator that checks
ENVIRONMENT = {**TWO_DEVICES, "MTF_HOST_DEVICE_COUNT": "2"}


@pytest.mark.parametrize(
    ("name", "arguments", "noted"),
    [
        ("posix_filesystem", ["filesystem", "file"], REPLACED),
        ("ram_filesystem", ["filesystem", "ram"], set()),
        ("host_device", ["device"], set()),
        ("opencl_device", ["device"], set()),
    ],
)
def test_a_reference_plugin_keeps_every_rule(run_python, name, arguments, noted):
    library = built_plugin(name) if name == "opencl_device" else installed_plugin(name)
    done = run_python(PROGRAM, library, *arguments, env=ENVIRONMENT)

    *outcomes, end = map(json.loads, done.stdout.splitlines())
    skipped = {check: message for check, _, verdict, message in outcomes if verdict == "skipped"}
    assert end == "done"
    assert {tuple(each) for each in outcomes if each[2] != "skipped"} == noted
    assert not [message for message in skipped.values() if "UNIMPLEMENTED" in message]
    assert "device" not in arguments or set(skipped) == SKIPPED_OF_DEVICES
