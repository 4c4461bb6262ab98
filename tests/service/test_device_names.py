"""What is said of a device that is not there."""

from __future__ import annotations

import pytest

from modular_tf.errors import NotFoundError
from modular_tf.service.configuration import Config


def test_device_plugins_that_are_kept_out_are_named(fixture_device_plugin, make_service):
    crashing = fixture_device_plugin("init-plugin-crashes")
    good = fixture_device_plugin("good", device_type="OTHER", platform="OTHER_CHIP")
    service = make_service(crashing, good, config=Config(first_contact="always"))
    names = {record.path: record.name for record in service.load().plugins}

    with pytest.raises(NotFoundError) as failure:
        service.device("FIXTURE:0")

    assert f"not loaded: {names[str(crashing)]} (quarantined, LD-060)" in failure.value.message
    assert names[str(good)] not in failure.value.message.split("not loaded:")[1]
    assert service.device("OTHER:0").name == "OTHER:0"


def test_without_any_it_says_what_is_visible(fixture_device_plugin, make_service):
    service = make_service(fixture_device_plugin("good"))
    service.load()

    with pytest.raises(NotFoundError, match=r"no device 'CPU:5'; visible devices: \[[^;]*\]$"):
        service.device("CPU:5")
