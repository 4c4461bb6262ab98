"""The registration of a device plugin: what was created so far and how to destroy it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.errors import ModularTFError
from modular_tf.loading.device_dialect import (
    HOSTED,
    UNWRITTEN_EXECUTOR_SIZE,
    UNWRITTEN_FNS_SIZE,
    UNWRITTEN_PLATFORM_SIZE,
    rfc_or_v204,
)
from modular_tf.loading.lent_struct import LentStruct
from modular_tf.native import device_calls
from modular_tf.native.ffi import ffi
from modular_tf.native.host_struct import HostStruct
from modular_tf.native.library import is_executable
from modular_tf.rules import Violation
from modular_tf.rules.device import DESTROY_RETURNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.loading.device_table import DeviceTable

_PARAMS = layout("SE_PlatformRegistrationParams")
_DEVICE_FNS_PARAMS = layout("SE_CreateDeviceFnsParams")
_EXECUTOR_PARAMS = layout("SE_CreateStreamExecutorParams")
_TIMER_FNS = layout("SP_TimerFns")
_ROOM = 128
"""Bytes lent for a params struct: four times what any dialect has."""

_MEMORY_WORDS = frozenset(range(2, 10))
"""The 8-byte words of SP_StreamExecutor that an allocator of the RFC can take the place of."""

_TEAR_DOWN_ORDER = (
    "destroy_device_fns",
    "destroy_stream_executor",
    "destroy_timer_fns",
    "destroy_platform",
    "destroy_platform_fns",
)


@dataclass(frozen=True, slots=True)
class _Destroyer:
    """One destroy function with its arguments."""

    slot: int
    struct: LentStruct
    platform: DeviceTable | None = None  # None: the function takes the struct alone
    exists: Any = field(default_factory=lambda: ffi.new("int32_t *"))


class DeviceRegistration:
    """One call of SE_InitPlugin and all structs created after it. One thread at a time.

    Attributes:
        plugin: The plugin's name for users.
        platform: SP_Platform.
        platform_fns: SP_PlatformFns.
        device_fns: SP_DeviceFns.
        executor: SP_StreamExecutor.
        timer_fns: SP_TimerFns, None before the first use of a timer.
    """

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        self.platform = LentStruct(
            layout("SP_Platform", HOSTED), unwritten_size=UNWRITTEN_PLATFORM_SIZE
        )
        self.platform_fns = LentStruct(
            layout("SP_PlatformFns", HOSTED), unwritten_size=UNWRITTEN_FNS_SIZE
        )
        self.device_fns = LentStruct(layout("SP_DeviceFns"))
        self.executor = _lent_executor()
        self.timer_fns: LentStruct | None = None
        self._params = LentStruct(_PARAMS)
        self._destroyers: dict[str, _Destroyer] = {}
        self._process = os.getpid()

    def init(self, entry: int) -> Iterator[Violation]:
        """Call SE_InitPlugin and collect the structs that it filled.

        Args:
            entry: Address of SE_InitPlugin.

        Yields:
            Rules broken by the pointers that came back.

        Raises:
            ModularTFError: The plugin's own status; then nothing was set up.
        """
        memory = self._params.memory
        memory.set("patch_version", 1)
        memory.set("platform", self.platform.address)
        memory.set("platform_fns", self.platform_fns.address)
        device_calls.init_plugin(entry, memory.address, plugin=self.plugin)
        yield from self._params.collect(memory.address, "params")
        yield from self.platform.collect(memory.get("platform"), "params.platform")
        yield from self.platform_fns.collect(memory.get("platform_fns"), "params.platform_fns")

    def params(self) -> DeviceTable:
        """Return the protected copy of SE_PlatformRegistrationParams."""
        return self._params.table()

    def own_structs(self, params: DeviceTable) -> None:
        """Let `tear_down` destroy the platform and its functions, as `params` says."""
        for slot, struct in (
            ("destroy_platform", self.platform),
            ("destroy_platform_fns", self.platform_fns),
        ):
            destroyer = self._destroyers[slot] = _Destroyer(params.value(slot), struct)
            destroyer.exists[0] = 1

    def tell_rfc_from_v204(self) -> Dialect:
        """Return whether a created struct is an executor or SP_DeviceFns, and store it as such.

        The same word of SP_PlatformFns creates the executor in the RFC and SP_DeviceFns in TF 2.4,
        with parameters of one form. Either way nothing need be created twice.
        """
        filled = self.executor
        code = _first_run(filled.code_words) if filled.is_own else filled.code_words
        dialect = rfc_or_v204(filled.size_field, code)
        if dialect is Dialect.DEVICE_V204:
            self.device_fns, self.executor = filled, _lent_executor()
            self._destroyers["destroy_device_fns"] = self._destroyers.pop("destroy_stream_executor")
        return dialect

    def has_created(self, name: str) -> bool:
        """Whether the plugin has filled `device_fns` or `stream_executor`."""
        destroyer = self._destroyers.get(f"destroy_{name}")
        return destroyer is not None and bool(destroyer.exists[0])

    def create_device_fns(self, platform: DeviceTable, fns: DeviceTable) -> Iterator[Violation]:
        """Let the plugin fill SP_DeviceFns.

        Raises:
            ModularTFError: The plugin's own status.
        """
        params = HostStruct(_DEVICE_FNS_PARAMS, _ROOM, struct_size=_DEVICE_FNS_PARAMS.size)
        yield from self._create("device_fns", self.device_fns, params, platform, fns)

    def create_stream_executor(
        self, platform: DeviceTable, fns: DeviceTable
    ) -> Iterator[Violation]:
        """Let the plugin fill SP_StreamExecutor.

        Raises:
            ModularTFError: The plugin's own status.
        """
        params = HostStruct(_EXECUTOR_PARAMS, _ROOM, struct_size=_EXECUTOR_PARAMS.size)
        yield from self._create("stream_executor", self.executor, params, platform, fns)

    def create_timer_fns(self, platform: DeviceTable, fns: DeviceTable) -> int:
        """Let the plugin fill SP_TimerFns, if it has the functions for that.

        Returns:
            The address of the slot `nanoseconds`, 0 where there is none that is code.

        Raises:
            ModularTFError: The plugin's own status.
        """
        if not (fns.has("create_timer_fns") and fns.has("destroy_timer_fns")):
            return 0
        self.timer_fns = struct = LentStruct(_TIMER_FNS)
        # Unlike the others it has no params struct.
        self._call_create("timer_fns", struct, struct.address, platform, fns)
        nanoseconds = self.timer_fns.memory.get("nanoseconds")
        return nanoseconds if is_executable(nanoseconds) else 0

    def _create(
        self,
        name: str,
        struct: LentStruct,
        params: HostStruct,
        platform: DeviceTable,
        fns: DeviceTable,
    ) -> Iterator[Violation]:
        params.set(name, struct.address)
        self._call_create(name, struct, params.address, platform, fns)
        yield from struct.collect(params.get(name), f"params.{name}")

    def _call_create(
        self, name: str, struct: LentStruct, params: int, platform: DeviceTable, fns: DeviceTable
    ) -> None:
        """Call a create function; record its destroy function first, in case of an interrupt."""
        destroyer = _Destroyer(fns.value(f"destroy_{name}"), struct, platform)
        self._destroyers[f"destroy_{name}"] = destroyer
        device_calls.create(
            fns.value(f"create_{name}"),
            platform.address,
            params,
            plugin=self.plugin,
            operation=f"create_{name}",
            exists=destroyer.exists,
        )

    def tear_down(self) -> list[Violation]:
        """Call the destroy functions of all that exists, in TensorFlow's order.

        Safe to call twice; after an interrupt, a second call does what is left.

        Order: device functions, stream executor, timer functions, platform, platform functions. A
        forked child calls none of them: what they would release belongs to the parent.

        Returns:
            The errors; the other functions were called nevertheless.
        """
        if os.getpid() != self._process:
            return []
        failures = (
            self._destroy(operation, self._destroyers[operation])
            for operation in _TEAR_DOWN_ORDER
            if operation in self._destroyers
        )
        return [failure for failure in failures if failure is not None]

    def _destroy(self, operation: str, destroyer: _Destroyer) -> Violation | None:
        slot, struct, platform = destroyer.slot, destroyer.struct.filled_at, destroyer.platform
        if not is_executable(slot):
            return None  # broke a rule when the plugin was checked
        try:
            if platform is None:
                device_calls.destroy_registered(
                    slot,
                    struct,
                    plugin=self.plugin,
                    operation=operation,
                    exists=destroyer.exists,
                )
            else:
                device_calls.destroy(
                    slot,
                    platform.address,
                    struct,
                    plugin=self.plugin,
                    operation=operation,
                    exists=destroyer.exists,
                )
        except ModularTFError as error:
            return Violation(DESTROY_RETURNS, error.message)
        return None


def _lent_executor() -> LentStruct:
    return LentStruct(layout("SP_StreamExecutor", HOSTED), unwritten_size=UNWRITTEN_EXECUTOR_SIZE)


def _first_run(code: frozenset[int]) -> frozenset[int]:
    """Return the words before the first two without code, where another struct may begin.

    An executor may leave the slots of memory in front to an allocator.
    """
    begin = 2 if _MEMORY_WORDS & code else max(_MEMORY_WORDS) + 1
    end = next(word for word in count(begin) if not {word, word + 1} & code)
    return frozenset(word for word in code if word < end)
