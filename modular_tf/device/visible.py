"""The user's selection of visible devices and enabled types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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

    def __init__(self, text: str | None = None, most: Mapping[str, int] | None = None) -> None:
        """Parse a selection of visible devices, a comma list; None or blank selects everything.

        `most` is TensorFlow's `device_count`: how many devices of a type are visible at most.
        Raises InvalidArgumentError if an entry is malformed or a duplicate, or some have a type and
        others none.
        """
        self._text = text or ""
        self._most = dict(most or {})
        self._chosen: dict[str | None, list[int]] = {}
        for entry in filter(None, (part.strip() for part in self._text.split(","))):
            self._add(entry)
        if None in self._chosen and len(self._chosen) > 1:
            raise self._error("some entries have a type and others none")

    @classmethod
    def of(
        cls, entries: str | Iterable[str | int] | None, most: Mapping[str, int] | None = None
    ) -> VisibleDevices:
        """Return the selection in a comma list or its parts, cut as `most` says."""
        if entries is None or isinstance(entries, str):
            return cls(entries, most)
        return cls(",".join(map(str, entries)), most)

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
