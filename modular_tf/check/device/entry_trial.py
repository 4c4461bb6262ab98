"""SE_InitPlugin and what follows it, with structs that have just the size of TensorFlow 2.21's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import layout
from modular_tf.check.device.by_slots import (
    ENTRY,
    PLATFORM,
    DeviceSlotCaller,
    as_pointer,
)
from modular_tf.check.expectation import Blocked
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.loading.device_dialect import (
    HOSTED,
    UNWRITTEN_FNS_SIZE,
    UNWRITTEN_PLATFORM_SIZE,
    describe,
    dialects_of_registration,
)
from modular_tf.native.host_struct import unpack_field
from modular_tf.native.library import is_executable
from modular_tf.native.strings import read_string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.calls import CallJournal

_STRUCTS = {
    "params": "SE_PlatformRegistrationParams",
    "platform": "SP_Platform",
    "platform_fns": "SP_PlatformFns",
    "device_fns": "SP_DeviceFns",
    "stream_executor": "SP_StreamExecutor",
}
_CREATED = ("device_fns", "stream_executor")
_REGISTERED = ("platform", "platform_fns")
_PATCH = 1


class EntryTrial:
    """One call of SE_InitPlugin. [one thread]

    Attributes:
        answer: Its status.
        name: The platform's name, as it was right after the call.
        device_type: The type of its devices, likewise.
    """

    def __init__(self, entry: int, journal: CallJournal) -> None:
        """Call SE_InitPlugin at an address, and keep what it left."""
        self._structs = {part: _lent(part) for part in _STRUCTS if part != "params"}
        platform, platform_fns = (self._structs[part].address for part in _REGISTERED)
        params = _lent("params", patch_version=_PATCH, platform=platform, platform_fns=platform_fns)
        self._structs["params"] = params
        self._caller = DeviceSlotCaller(journal)
        self._caller.add(ENTRY, {"SE_InitPlugin": entry})
        self._made: list[str] = []
        self._kept: list[GuardedMemory] = []
        self.answer: Answer = self._caller.ask(
            "SE_InitPlugin", "params", params.pointer, table=ENTRY
        )
        if self.answer.ok:
            self._made += _REGISTERED
        self.name, self.device_type = self.read_names()

    def read_names(self) -> tuple[str | None, str | None]:
        """Return name and device type as they are now, None for what cannot be read."""
        name, device_type = (self.value("platform", field) for field in ("name", "type"))
        return _text(name), _text(device_type)

    def value(self, part: str, field: str) -> int:
        """Return a field of a struct: `params`, `platform`, `platform_fns`, ..."""
        return unpack_field(self._structs[part].raw(), layout(_STRUCTS[part], HOSTED).field(field))

    @property
    def has_own_structs(self) -> bool:
        """Whether the plugin put structs of its own in the place of those that it was lent."""
        return any(
            self.value("params", part) not in {0, self._structs[part].address}
            for part in _REGISTERED
        )

    @property
    def other_layout(self) -> str:
        """The name of the plugin's layout, "" where TensorFlow 2.21 can call its functions."""
        sizes = (self.value(part, "struct_size") for part in _REGISTERED)
        unwritten = UNWRITTEN_PLATFORM_SIZE, UNWRITTEN_FNS_SIZE
        platform, fns = (
            unknown if size == _preset(part) else size  # perhaps it was not set
            for part, size, unknown in zip(_REGISTERED, sizes, unwritten, strict=True)
        )
        words = memoryview(self._structs["platform_fns"].raw()).cast("Q")
        code = frozenset(at for at, word in enumerate(words) if at > 1 and is_executable(word))
        dialects = dialects_of_registration(platform, fns, code)
        return "" if HOSTED in dialects else describe(dialects) or "no TensorFlow"

    def overruns(self, *parts: str) -> Iterator[str]:
        """Yield what was written beside structs."""
        for part in parts:
            where = self._structs[part].breach()
            if where is not None:
                yield f"{_STRUCTS[part]}: {where}"

    def create(self, part: str) -> None:
        """Have `device_fns` or `stream_executor` filled, unless it is; `Blocked` if it cannot."""
        if part in self._made:
            return
        self._learn_slots()
        params = GuardedMemory.words(24, 0, self._structs[part].address)
        self._kept.append(params)
        arguments = self._structs["platform"].pointer, params.pointer
        answer = self._caller.ask(f"create_{part}", "platform, params", *arguments, table=PLATFORM)
        if not answer.ok:
            raise Blocked(f"create_{part} failed: {answer.message}")
        self._made.insert(0, part)

    def destroy(self) -> None:
        """Call the destroy functions of what was made, in TensorFlow's order; twice does nothing.

        Raises `Blocked` where one is missing.
        """
        self._learn_slots()
        made, self._made = self._made, []
        for part in (*_CREATED, *_REGISTERED):
            if part in made:
                own = [self._structs["platform"].pointer] if part in _CREATED else []
                table = PLATFORM if part in _CREATED else ENTRY
                arguments = *own, self._structs[part].pointer
                self._caller.ask_plainly(f"destroy_{part}", part, *arguments, table=table)

    def _learn_slots(self) -> None:
        platform = [f"{verb}_{part}" for part in _CREATED for verb in ("create", "destroy")]
        entry = ["destroy_platform", "destroy_platform_fns"]
        for table, part, names in ((PLATFORM, "platform_fns", platform), (ENTRY, "params", entry)):
            slots = {name: self.value(part, name) for name in names}
            for name, address in slots.items():
                if not is_executable(address):
                    raise Blocked(f"{name} is no function")
            self._caller.add(table, slots)


def _lent(part: str, **values: int) -> GuardedMemory:
    """Return a struct that has its size set, as TensorFlow sets it, and some other fields."""
    shape = layout(_STRUCTS[part], HOSTED)
    content = bytearray(shape.size)
    for name, value in {"struct_size": _preset(part), **values}.items():
        field = shape.field(name)
        content[field.offset : field.end] = value.to_bytes(field.size, sys.byteorder)
    return GuardedMemory(shape.size, bytes(content))


def _preset(part: str) -> int:
    """Return the struct_size that TensorFlow sets."""
    shape = layout(_STRUCTS[part], HOSTED)
    return shape.struct_size or shape.size


def _text(address: int) -> str | None:
    return read_string(as_pointer(address)) if address else None
