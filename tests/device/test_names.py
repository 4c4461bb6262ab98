"""Names of devices, and the user's selection of visible devices and enabled types."""

from __future__ import annotations

import pytest

from modular_tf.device.names import (
    DeviceName,
    VisibleDevices,
    is_name_prefix,
    parse_device_name,
    parse_enabled_types,
)
from modular_tf.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MY_DEVICE:0", DeviceName("MY_DEVICE", 0)),
        ("/device:GPU:12", DeviceName("GPU", 12)),
        ("/physical_device:GPU:1", DeviceName("GPU", 1, physical=True)),
        ("/GPU:1", DeviceName("GPU", 1)),
        ("cpu:0", DeviceName("CPU", 0)),
        ("/gpu:2", DeviceName("GPU", 2)),
        ("MyDevice:1", DeviceName("MyDevice", 1)),
        ("/device:PluggableDevice:0", DeviceName("PluggableDevice", 0)),
        ("/physical_device:NPU2:3", DeviceName("NPU2", 3, physical=True)),
        (
            "/job:localhost/replica:0/task:0/device:GPU:3",
            DeviceName("GPU", 3, job="localhost", replica=0, task=0),
        ),
        ("/job:localhost/device:GPU:3", DeviceName("GPU", 3, job="localhost")),
        ("/job:worker/task:12/device:GPU:3", DeviceName("GPU", 3, job="worker", task=12)),
        ("/job:worker/replica:1/GPU:3", DeviceName("GPU", 3, job="worker", replica=1)),
    ],
)
def test_forms(text, name):
    assert parse_device_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "", "GPU", "GPU:", ":0", "GPU:-1", "GPU:1.0", "GPU:0 ", "GPU:0\n", "1GPU:0", "_GPU:0",
        "NPU-X:0", "physical_device:GPU:0", "/job:1/task:1/device:GPU:0",
        "/job:worker/task:/device:GPU:0", "/task:1/device:GPU:0",
        "/job:localhost/physical_device:GPU:0", "GPU:99999999999999999999", "GPU:٣",
    ],
)  # fmt: skip
def test_other_names_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="expected one of TYPE:n"):
        parse_device_name(text)


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


# -- visible devices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selection", "most", "ordinals"),
    [
        *((nothing, None, [0, 1, 2]) for nothing in (None, "", " ", " , ", (), [])),
        ("GPU:2,GPU:0", None, [2, 0]),
        (" GPU:2 , GPU:0 ", None, [2, 0]),
        (["GPU:2", "GPU:0"], None, [2, 0]),
        ("NPU:1,GPU:2,GPU:0", None, [2, 0]),
        ("NPU:1", None, [0, 1, 2]),
        ("2,0", None, [2, 0]),
        ([2, 0], None, [2, 0]),
        (None, {"GPU": 2}, [0, 1]),
        (None, {"GPU": 0}, []),
        (None, {"GPU": 9}, [0, 1, 2]),
        (None, {"NPU": 1}, [0, 1, 2]),
        ("GPU:2,GPU:0", {"GPU": 1}, [2]),
        ("1,2", {"GPU": 1}, [1]),
    ],
    ids=str,
)
def test_a_selection_is_kept_in_the_written_order_and_cut_by_a_count(selection, most, ordinals):
    assert VisibleDevices.of(selection, most).ordinals("GPU", 3) == ordinals


def test_bare_numbers_stand_for_every_type_but_cpu():
    visible = VisibleDevices("2,0")
    assert visible.ordinals("NPU", 4) == [2, 0]
    assert visible.ordinals("CPU", 1) == [0]
    assert VisibleDevices("CPU:1").ordinals("CPU", 2) == [1]


def test_types_may_have_small_letters_and_digits():
    visible = VisibleDevices("PluggableDevice:1,NPU2:0")
    assert visible.ordinals("PluggableDevice", 2) == [1]
    assert visible.ordinals("NPU2", 2) == [0]


@pytest.mark.parametrize(
    ("selections", "message"),
    [
        (["GPU:0,GPU:0", "1,0,1", "GPU:1,NPU:0,GPU:01"], "is named twice"),
        (["GPU", "GPU:", "-1", "1A:0", "GPU:x", "GPU:0:1", "0;1"], "neither TYPE:n nor n"),
        (["GPU:0,1"], "some entries have a type and others none"),
    ],
)
def test_what_is_no_selection_is_refused(selections, message):
    for selection in selections:
        with pytest.raises(InvalidArgumentError, match=message):
            VisibleDevices(selection)


@pytest.mark.parametrize("selection", ["GPU:3", "3", "0,3"])
def test_out_of_range_is_refused(selection):
    with pytest.raises(InvalidArgumentError, match="GPU:3 is out of range, there are 3"):
        VisibleDevices(selection).ordinals("GPU", 3)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (None, None),
        ("", None),
        (" , ", None),
        ("CPU", {"CPU"}),
        ("CPU, GPU,", {"CPU", "GPU"}),
    ],
)
def test_enabled_types(text, types):
    assert parse_enabled_types(text) == types
