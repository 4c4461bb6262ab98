from __future__ import annotations

import pytest

from modular_tf.device.names import VisibleDevices, parse_enabled_types
from modular_tf.errors import InvalidArgumentError


@pytest.mark.parametrize("nothing", [None, "", " ", " , ", (), []])
def test_no_selection_selects_all(nothing):
    assert VisibleDevices.of(nothing).ordinals("GPU", 3) == [0, 1, 2]


@pytest.mark.parametrize("selection", ["GPU:2,GPU:0", " GPU:2 , GPU:0 ", ["GPU:2", "GPU:0"]])
def test_the_written_order_is_kept(selection):
    visible = VisibleDevices.of(selection)
    assert visible.ordinals("GPU", 3) == [2, 0]
    assert visible.ordinals("NPU", 2) == [0, 1]


@pytest.mark.parametrize("selection", ["2,0", [2, 0]])
def test_bare_numbers_stand_for_every_type_but_cpu(selection):
    visible = VisibleDevices.of(selection)
    assert visible.ordinals("GPU", 3) == [2, 0]
    assert visible.ordinals("NPU", 4) == [2, 0]
    assert visible.ordinals("CPU", 1) == [0]


def test_types_may_have_small_letters_and_digits():
    visible = VisibleDevices("PluggableDevice:1,NPU2:0")
    assert visible.ordinals("PluggableDevice", 2) == [1]
    assert visible.ordinals("NPU2", 2) == [0]


def test_cpu_can_be_selected_by_name():
    assert VisibleDevices("CPU:1").ordinals("CPU", 2) == [1]


@pytest.mark.parametrize("selection", ["GPU:0,GPU:0", "1,0,1", "GPU:1,NPU:0,GPU:01"])
def test_duplicates_are_refused(selection):
    with pytest.raises(InvalidArgumentError, match="is named twice"):
        VisibleDevices(selection)


@pytest.mark.parametrize("selection", ["GPU", "GPU:", "-1", "1A:0", "GPU:x", "GPU:0:1", "0;1"])
def test_malformed_entries_are_refused(selection):
    with pytest.raises(InvalidArgumentError, match="neither TYPE:n nor n"):
        VisibleDevices(selection)


def test_a_mixture_is_refused():
    with pytest.raises(InvalidArgumentError, match="some entries have a type and others none"):
        VisibleDevices("GPU:0,1")


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


@pytest.mark.parametrize(
    ("selection", "most", "expected"),
    [
        (None, {"GPU": 2}, [0, 1]),
        (None, {"GPU": 0}, []),
        (None, {"GPU": 9}, [0, 1, 2]),
        (None, {"NPU": 1}, [0, 1, 2]),
        ("GPU:2,GPU:0", {"GPU": 1}, [2]),
        ("1,2", {"GPU": 1}, [1]),
    ],
)
def test_a_count_cuts_the_selection(selection, most, expected):
    assert VisibleDevices(selection, most).ordinals("GPU", 3) == expected
