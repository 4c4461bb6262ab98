"""What the libraries of the reference plugins show, need, leave out and register."""

from __future__ import annotations

import subprocess

import pytest

from modular_tf.loading.filesystem_tables import FILESYSTEM_OPS
from tests.contrib.built_plugin import built_plugin, installed_plugin

ENTRIES = {
    "posix_filesystem": "TF_InitPlugin",
    "ram_filesystem": "TF_InitPlugin",
    "host_device": "SE_InitPlugin",
    "opencl_device": "SE_InitPlugin",
    "host_kernels": "TF_InitKernel",
    "opencl_kernels": "TF_InitKernel",
}
INSTALLED = ("posix_filesystem", "ram_filesystem", "host_device")


def path_of(name):
    return installed_plugin(name) if name in INSTALLED else built_plugin(name)


def output_of(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ENTRIES)
def test_a_library_shows_its_entry_point_and_needs_no_library_of_a_host(name):
    shown = output_of("nm", "-D", "--defined-only", path_of(name))
    needed = [line for line in output_of("readelf", "-d", path_of(name)) if "NEEDED" in line]

    assert [line.split()[-1] for line in shown] == [ENTRIES[name]]
    assert needed
    assert not [line for line in needed if "tensorflow" in line or "modular_tf" in line]


@pytest.mark.parametrize(
    ("scheme", "lacking"),
    [
        ("", {"paths_exist", "translate_name"}),
        ("file", {"paths_exist", "translate_name"}),
        ("ram", {"get_matching_paths"}),
    ],
)
def test_a_filesystem_leaves_to_the_host_what_the_host_does_as_well(service, scheme, lacking):
    tables = service.filesystem(scheme).tables
    slots = {slot.name for slot in FILESYSTEM_OPS.slots}
    others = {slot for slot in slots if "transaction" in slot or "configuration" in slot}

    assert {slot for slot in slots if not tables.offers(slot)} == {
        "flush_caches", *lacking, *others,
    }  # fmt: skip
