"""The reference plugins keep every rule: all checks of the conformance kit, by slots and by host.

The kit as users run it is tried in tests/cli/test_check.py.
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
SKIPPED_ON_DISK = {
    "files of more than 2 GiB are tried with the option large_files only",
    "the filesystem serves no plain paths",
    "the plugin renames by itself: nothing is done by copy and delete",
    "there are no options",
}
SKIPPED_IN_MEMORY = {
    *SKIPPED_ON_DISK,
    (
        "nothing limits this store: the plugin has no get_filesystem_configuration_option and no "
        "set_filesystem_configuration_option, by which its option 'capacity_bytes' (the setting "
        "capacity_option) would make it full"
    ),
    "rights can be taken away on a local disk only",
    "there are no links on this store",
}
SKIPPED_OF_DEVICES = {
    "the device has no PCI bus id",
    "the heap can be watched with the checking allocator only",
}
ENVIRONMENT = {**TWO_DEVICES, "MTF_HOST_DEVICE_COUNT": "2"}


@pytest.mark.parametrize(
    ("name", "arguments", "noted", "skipped"),
    [
        ("posix_filesystem", ["filesystem", "file"], REPLACED, SKIPPED_ON_DISK),
        ("ram_filesystem", ["filesystem", "ram"], set(), SKIPPED_IN_MEMORY),
        ("host_device", ["device"], set(), SKIPPED_OF_DEVICES),
        ("opencl_device", ["device"], set(), SKIPPED_OF_DEVICES),
    ],
)
def test_a_reference_plugin_keeps_every_rule(run_python, name, arguments, noted, skipped):
    """What is skipped is what does not concern it, and slots that it has not (test_libraries)."""
    library = built_plugin(name) if name == "opencl_device" else installed_plugin(name)
    done = run_python(PROGRAM, library, *arguments, env=ENVIRONMENT)

    *outcomes, end = map(json.loads, done.stdout.splitlines())
    reasons = {message for _, _, verdict, message in outcomes if verdict == "skipped"}
    if arguments[0] == "filesystem":
        reasons = {each for each in reasons if not each.startswith("the plugin has no ")}
    assert end == "done"
    assert {tuple(each) for each in outcomes if each[2] != "skipped"} == noted
    assert reasons == skipped
