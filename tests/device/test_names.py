from __future__ import annotations

import pytest

from modular_tf.device.names import DeviceName, parse_device_name
from modular_tf.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "device_type", "number", "physical"),
    [
        ("MY_DEVICE:0", "MY_DEVICE", 0, False),
        ("/device:GPU:12", "GPU", 12, False),
        ("/physical_device:GPU:1", "GPU", 1, True),
        ("/GPU:1", "GPU", 1, False),
        ("/job:localhost/replica:0/task:0/device:GPU:3", "GPU", 3, False),
        ("/job:localhost/device:GPU:3", "GPU", 3, False),
        ("cpu:0", "CPU", 0, False),
        ("/gpu:2", "GPU", 2, False),
        ("MyDevice:1", "MyDevice", 1, False),
        ("/device:PluggableDevice:0", "PluggableDevice", 0, False),
        ("/physical_device:NPU2:3", "NPU2", 3, True),
    ],
)
def test_forms(text, device_type, number, physical):
    assert parse_device_name(text) == DeviceName(device_type, number, physical)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GPU",
        "GPU:",
        ":0",
        "GPU:-1",
        "GPU:1.0",
        "GPU:0 ",
        "GPU:0\n",
        "1GPU:0",
        "_GPU:0",
        "NPU-X:0",
        "physical_device:GPU:0",
        "/job:worker/task:1/device:GPU:0",
        "/job:localhost/physical_device:GPU:0",
        "GPU:99999999999999999999",
        "GPU:٣",
    ],
)
def test_other_names_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="expected one of TYPE:n"):
        parse_device_name(text)
