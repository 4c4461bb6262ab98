from __future__ import annotations

import pytest

from modular_tf.device.names import DeviceName, is_name_prefix, parse_device_name
from modular_tf.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "device_type", "number", "physical"),
    [
        ("MY_DEVICE:0", "MY_DEVICE", 0, False),
        ("/device:GPU:12", "GPU", 12, False),
        ("/physical_device:GPU:1", "GPU", 1, True),
        ("/GPU:1", "GPU", 1, False),
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
        "/job:1/task:1/device:GPU:0",
        "/job:worker/task:/device:GPU:0",
        "/task:1/device:GPU:0",
        "/job:localhost/physical_device:GPU:0",
        "GPU:99999999999999999999",
        "GPU:٣",
    ],
)
def test_other_names_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="expected one of TYPE:n"):
        parse_device_name(text)


@pytest.mark.parametrize(
    ("text", "job", "replica", "task"),
    [
        ("/job:localhost/replica:0/task:0/device:GPU:3", "localhost", 0, 0),
        ("/job:localhost/device:GPU:3", "localhost", None, None),
        ("/job:worker/task:12/device:GPU:3", "worker", None, 12),
        ("/job:worker/replica:1/GPU:3", "worker", 1, None),
    ],
)
def test_full_names_have_a_process(text, job, replica, task):
    name = parse_device_name(text)
    assert name == DeviceName("GPU", 3, job=job, replica=replica, task=task)


@pytest.mark.parametrize(
    ("text", "mine"),
    [
        ("GPU:0", True),
        ("/physical_device:GPU:0", True),
        ("/job:worker/GPU:0", True),
        ("/job:worker/task:2/GPU:0", True),
        ("/job:worker/replica:1/task:2/GPU:0", True),
        ("/job:worker/task:1/GPU:0", False),
        ("/job:worker/replica:0/GPU:0", False),
        ("/job:localhost/GPU:0", False),
    ],
)
def test_a_process_has_the_devices_that_its_prefix_fits(text, mine):
    assert parse_device_name(text).is_of_process("/job:worker/replica:1/task:2") is mine


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("/job:worker/replica:0/task:1", True),
        ("/job:localhost/replica:0/task:0", True),
        ("/job:worker/task:1", False),
        ("/job:worker/replica:0/task:1/", False),
        ("/job:/replica:0/task:1", False),
        ("worker", False),
        (1, False),
    ],
)
def test_prefixes_of_names(text, right):
    assert is_name_prefix(text) is right
