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
        ("/physical_device:NPU2:3", DeviceName("NPU2", 3, physical=True)),
        ("/gpu:2", DeviceName("GPU", 2)),
        ("/device:PluggableDevice:0", DeviceName("PluggableDevice", 0)),
        (
            "/job:localhost/replica:0/task:0/device:GPU:3",
            DeviceName("GPU", 3, job="localhost", replica=0, task=0),
        ),
        ("/job:worker/task:12/device:GPU:3", DeviceName("GPU", 3, job="worker", task=12)),
        ("/job:worker/replica:1/GPU:3", DeviceName("GPU", 3, job="worker", replica=1)),
    ],
)
def test_forms(text, name):
    assert parse_device_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "", "GPU", ":0", "GPU:-1", "GPU:0\n", "1GPU:0", "NPU-X:0", "physical_device:GPU:0",
        "/job:1/task:1/device:GPU:0", "/job:worker/task:/device:GPU:0", "/task:1/device:GPU:0",
        "/job:localhost/physical_device:GPU:0", "GPU:99999999999999999999", "GPU:٣",
    ],
)  # fmt: skip
def test_other_names_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="expected one of TYPE:n"):
        parse_device_name(text)


def test_a_process_has_the_devices_that_its_prefix_fits():
    process = "/job:worker/replica:1/task:2"
    for mine in ("", "/physical_device:", "/job:worker/", "/job:worker/task:2/", f"{process}/"):
        assert parse_device_name(f"{mine}GPU:0").is_of_process(process)
    for other in ("/job:worker/task:1", "/job:worker/replica:0", "/job:localhost"):
        assert not parse_device_name(f"{other}/GPU:0").is_of_process(process)


def test_prefixes_of_names():
    right = "/job:worker/replica:0/task:1"
    assert is_name_prefix(right)
    for wrong in ("/job:worker/task:1", f"{right}/", "/job:/replica:0/task:1", "worker", 1):
        assert not is_name_prefix(wrong)


# -- visible devices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selection", "most", "ordinals"),
    [
        *((nothing, None, [0, 1, 2]) for nothing in (None, " , ", ())),
        (" GPU:2 , GPU:0 , NPU2:0, PluggableDevice:1", None, [2, 0]),
        (["GPU:2", "GPU:0"], None, [2, 0]),
        ("NPU:1", None, [0, 1, 2]),
        ("2,0", None, [2, 0]),
        ([2, 0], None, [2, 0]),
        (None, {"GPU": 0}, []),
        (None, {"GPU": 9}, [0, 1, 2]),
        (None, {"NPU": 1}, [0, 1, 2]),
        ("1,2", {"GPU": 1}, [1]),
    ],
    ids=str,
)
def test_a_selection_is_kept_in_the_written_order_and_cut_by_a_count(selection, most, ordinals):
    assert VisibleDevices(selection, most).ordinals("GPU", 3) == ordinals


def test_bare_numbers_stand_for_every_type_but_cpu():
    visible = VisibleDevices("2,0")
    assert visible.ordinals("NPU", 4) == [2, 0]
    assert visible.ordinals("CPU", 1) == [0]
    assert VisibleDevices("CPU:1").ordinals("CPU", 2) == [1]


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


def test_out_of_range_is_refused():
    for selection in ("GPU:3", "0,3"):
        with pytest.raises(InvalidArgumentError, match="GPU:3 is out of range, there are 3"):
            VisibleDevices(selection).ordinals("GPU", 3)


def test_enabled_types():
    for text, types in ((None, None), (" , ", None), ("CPU, GPU,", {"CPU", "GPU"})):
        assert parse_enabled_types(text) == types
