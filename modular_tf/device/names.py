"""Device names, as TensorFlow writes and reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

from modular_tf.errors import InvalidArgumentError

_FORMS = "TYPE:n, /device:TYPE:n, /physical_device:TYPE:n"
_NAME = re.compile(
    r"(?P<physical>/physical_device:)?"
    r"(?(physical)|(?:/job:localhost(?:/replica:0)?(?:/task:0)?)?(?:/device:|/)?)"
    r"(?P<type>[A-Z][A-Z_]*|cpu|gpu):(?P<number>[0-9]{1,9})"
)


class DeviceName(NamedTuple):
    """The parts of a device name.

    Attributes:
        device_type: The type.
        number: The ordinal of a physical device, else the position among the visible ones.
        physical: Whether it names a physical device, visible or not.
    """

    device_type: str
    number: int
    physical: bool = False


def parse_device_name(name: str) -> DeviceName:
    """Return the parts of a device name: TYPE:n, /device:TYPE:n or /physical_device:TYPE:n.

    TensorFlow's long form /job:localhost/replica:0/task:0/device:TYPE:n and its old short forms
    /TYPE:n, cpu:n and gpu:n are understood as well.

    Raises:
        InvalidArgumentError: `name` has none of these forms.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidArgumentError(f"{name!r} is no device name; expected one of {_FORMS}")
    return DeviceName(match["type"].upper(), int(match["number"]), bool(match["physical"]))
