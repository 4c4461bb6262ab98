"""Device names, as TensorFlow writes and reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.errors import InvalidArgumentError, unexpected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


# -- the user's selection of visible devices and enabled types -------------------------------------


CPU = "CPU"
_ENTRY = r"(?:(?P<type>[A-Za-z][A-Za-z0-9_]*):)?(?P<ordinal>[0-9]{1,9})"


def parse_enabled_types(text: str | None) -> frozenset[str] | None:
    """Return the types in TF_ENABLED_DEVICE_TYPES, a comma list; None (all) if it is empty."""
    names = frozenset(name.strip() for name in (text or "").split(",")) - {""}
    return names or None


class VisibleDevices:
    """A selection such as "GPU:2,GPU:0" or "2,0", in the written order. [any thread]

    With types, only the types that are named are restricted. Bare numbers stand for every type
    but CPU, as in TensorFlow, where the list belongs to the plugin devices.
    """

    def __init__(
        self,
        entries: str | Iterable[str | int] | None = None,
        most: Mapping[str, int] | None = None,
    ) -> None:
        """Parse a selection, a comma list or its parts; None or blank selects everything.

        `most` is TensorFlow's `device_count`: how many devices of a type are visible at most.
        Raises InvalidArgumentError if an entry is malformed or a duplicate, or some have a type and
        others none.
        """
        self._text = entries if isinstance(entries, str) else ",".join(map(str, entries or ()))
        self._most = dict(most or {})
        self._chosen: dict[str | None, list[int]] = {}
        for entry in filter(None, (part.strip() for part in self._text.split(","))):
            self._add(entry)
        if None in self._chosen and len(self._chosen) > 1:
            raise self._error("some entries have a type and others none")

    def _add(self, entry: str) -> None:
        match = re.fullmatch(_ENTRY, entry)
        if match is None:
            raise self._error(f"{entry!r} is neither TYPE:n nor n")
        ordinals = self._chosen.setdefault(match["type"], [])
        if int(match["ordinal"]) in ordinals:
            raise self._error(f"{entry} is named twice")
        ordinals.append(int(match["ordinal"]))

    def ordinals(self, device_type: str, count: int) -> list[int]:
        """Return the visible ordinals of a type, in order of their position.

        There are `count` devices of it. Raises InvalidArgumentError if a chosen ordinal does not
        exist.
        """
        return self._chosen_of(device_type, count)[: self._most.get(device_type)]

    def _chosen_of(self, device_type: str, count: int) -> list[int]:
        bare = None if device_type == CPU else self._chosen.get(None)
        chosen = self._chosen.get(device_type, bare)
        if chosen is None:
            return list(range(count))
        for ordinal in chosen:
            if ordinal >= count:
                raise self._error(f"{device_type}:{ordinal} is out of range, there are {count}")
        return list(chosen)

    def _error(self, problem: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"visible devices {self._text!r}: {problem}")
