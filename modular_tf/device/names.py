"""Device names, as TensorFlow writes and reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

from modular_tf.errors import InvalidArgumentError, unexpected

_FORMS = "TYPE:n, /device:TYPE:n, /physical_device:TYPE:n"
_JOB = "[A-Za-z][A-Za-z0-9_]{0,999}"
_NUMBER = "[0-9]{1,9}"
_NAME = (  # compiled at its first use: listing devices names none
    r"(?P<physical>/physical_device:)?"
    rf"(?(physical)|(?:/job:(?P<job>{_JOB})(?:/replica:(?P<replica>{_NUMBER}))?"
    rf"(?:/task:(?P<task>{_NUMBER}))?)?(?:/device:|/)?)"
    rf"(?P<type>[A-Za-z][A-Za-z0-9_]*):(?P<number>{_NUMBER})"
)
_PREFIX = rf"/job:{_JOB}/replica:{_NUMBER}/task:{_NUMBER}"
_OLD_TYPES = {"cpu": "CPU", "gpu": "GPU"}

LOCAL_PREFIX = "/job:localhost/replica:0/task:0"
"""The job, replica and task of a process that is part of no cluster."""


class DeviceName(NamedTuple):
    """The parts of a device name."""

    device_type: str
    number: int  # the ordinal of a physical device, else the position among the visible ones
    physical: bool = False  # it names a physical device, visible or not
    # of its process; None where the name leaves it open, as for the next two
    job: str | None = None
    replica: int | None = None
    task: int | None = None

    def is_of_process(self, prefix: str) -> bool:
        """Whether a process may have the device, by its name prefix (`is_name_prefix`)."""
        job, replica, task = (part.split(":")[1] for part in prefix.split("/")[1:])
        return (
            self.job in {None, job}
            and self.replica in {None, int(replica)}
            and self.task in {None, int(task)}
        )


def is_name_prefix(text: object) -> bool:
    """Whether names of devices can begin with this text, as /job:worker/replica:0/task:1."""
    if text == LOCAL_PREFIX:  # most processes have this one, and compile no pattern
        return True
    return isinstance(text, str) and re.fullmatch(_PREFIX, text) is not None


def parse_device_name(name: str) -> DeviceName:
    """Return the parts of a device name: TYPE:n, /device:TYPE:n or /physical_device:TYPE:n.

    TensorFlow's full form /job:localhost/replica:0/task:0/device:TYPE:n and its old short forms
    /TYPE:n, cpu:n and gpu:n are understood as well. Raises InvalidArgumentError for other forms.
    """
    if not isinstance(name, str):
        raise unexpected(name, "a device's name", f"one of {_FORMS}")
    match = re.fullmatch(_NAME, name)
    if match is None:
        raise InvalidArgumentError(f"{name!r} is no device name; expected one of {_FORMS}")
    return DeviceName(
        _OLD_TYPES.get(match["type"], match["type"]),
        int(match["number"]),
        bool(match["physical"]),
        match["job"],
        _optional_number(match["replica"]),
        _optional_number(match["task"]),
    )


def _optional_number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
