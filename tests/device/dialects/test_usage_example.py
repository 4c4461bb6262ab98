"""The RFC's own example, its lost pointers repaired, is served: what it leaves out is warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.errors import FailedPreconditionError
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library

_SOURCE = Path(__file__).with_name("usage_example.cc")
_AS_PRINTED = ("-Wno-unused-parameter", "-Wno-missing-field-initializers")


@pytest.fixture(scope="module")
def example():
    return str(
        link_library(
            "libusage_example.so", [compile_object(_SOURCE, options=_AS_PRINTED)], cxx=True
        )
    )


@pytest.fixture
def service(example):
    with PluginService(plugin_paths=[example], bundled=False) as running:
        running.load()
        yield running


def test_it_loads_and_lists_its_devices(service):
    assert service.report()["usage_example"].state is State.LOADED
    assert [device.name for device in service.devices("GPU")] == ["GPU:0", "GPU:1"]
    assert {device.platform for device in service.devices("GPU")} == {"MyDevice"}


def test_what_it_leaves_out_is_warned_of(service):
    reasons = service.report()["usage_example"].warnings
    found = [reason.message for reason in reasons if reason.rule_id == "SE-036"]

    assert [message.split(" is ")[0] for message in found] == [
        "SE_PlatformRegistrationParams.destroy_platform",
        "SE_PlatformRegistrationParams.destroy_platform_fns",
        "SP_Platform.name",
        found[-1],
    ]
    assert found[-1].startswith("NULL in SP_StreamExecutor: create_stream, ")
    assert " memcpy_htod" not in found[-1]
    assert "host_memory_allocate" not in found[-1]  # that is its allocator's


def test_a_device_says_what_its_empty_allocator_lacks(service):
    with pytest.raises(FailedPreconditionError, match=r"SP_AllocatorFns\.allocate is NULL"):
        service.device("GPU:0").allocate(1)
