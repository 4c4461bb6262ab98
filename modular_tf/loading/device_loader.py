"""Reading a device plugin's tables: SE_InitPlugin, the checks, and tables or broken rules."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.abi.status_codes import Code
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.loading import device_tables as checks
from modular_tf.loading.device_dialect import (
    HOSTED,
    UNWRITTEN_EXECUTOR_SIZE,
    UNWRITTEN_FNS_SIZE,
    UNWRITTEN_PLATFORM_SIZE,
    describe,
    dialects_of_registration,
    newest,
    refine_by_executor,
    sizes_decide,
)
from modular_tf.loading.device_tables import DeviceTable, DeviceTables, LentStruct
from modular_tf.native import device_calls
from modular_tf.native.ffi import ffi
from modular_tf.native.host_struct import HostStruct
from modular_tf.native.library import is_executable
from modular_tf.rules import Rule, Violation
from modular_tf.rules import device as rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ENTRY_POINT = "SE_InitPlugin"
_PARAMS = layout("SE_PlatformRegistrationParams")
_PARAMS_OF = {
    "device_fns": layout("SE_CreateDeviceFnsParams"),
    "stream_executor": layout("SE_CreateStreamExecutorParams"),
}
_TIMER_FNS = layout("SP_TimerFns")
_ROOM = 128
"""Bytes lent for a params struct: four times what any dialect has."""

_TEAR_DOWN_ORDER = (
    "destroy_device_fns",
    "destroy_stream_executor",
    "destroy_timer_fns",
    "destroy_platform",
    "destroy_platform_fns",
)


class ExportingLibrary(Protocol):
    """The interface of a mapped library that this module needs."""

    @property
    def path(self) -> str:
        """The file that the user knows."""

    def symbol(self, name: str) -> int | None:
        """Return the address of an exported symbol."""


class RefusedDevicePluginError(PluginError):
    """A device plugin breaks rules; `rule` is the first of them."""

    violations: tuple[Violation, ...] = ()  # every broken rule, errors and warnings

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"violations": self.violations}


@dataclass(frozen=True, slots=True)
class RefusedDeviceTables:
    """A registration that breaks rules; it was torn down again."""

    plugin: str
    path: str
    violations: tuple[Violation, ...]  # errors and warnings, in the order of the checks
    code: Code = Code.FAILED_PRECONDITION  # or the plugin's own status, where that was the reason

    def error(self) -> RefusedDevicePluginError:
        """Return the broken rules as an exception."""
        first, *others = (violation for violation in self.violations if violation.is_error)
        text = f"{self.path}: {first.in_full} The plugin is refused. {first.remedy}"
        if others:
            rest = "; ".join(f"{other.message} ({other.rule_id})" for other in others)
            text += f" Further errors: {rest}."
        error = RefusedDevicePluginError(
            text, code=self.code, plugin=self.plugin, path=self.path, rule=first.rule
        )
        error.violations = self.violations
        return error


def read_device_tables(
    library: ExportingLibrary, *, plugin: str
) -> DeviceTables | RefusedDeviceTables:
    """Return a device plugin's accepted tables, or the rules that they break.

    Broken rules are not raised. Call it once per library: plugins expect SE_InitPlugin to be called
    once, as TensorFlow does.
    """
    reading = _Reading(library.path, plugin)
    entry = library.symbol(ENTRY_POINT)
    if entry is None:
        reading.found.append(
            Violation(rules.ENTRY_POINT_EXPORTED, f"{ENTRY_POINT} is not exported")
        )
    elif reading.attempt(rules.ENTRY_POINT_SUCCEEDS, lambda: reading.registration.init(entry)):
        reading.check_registration()
    return reading.outcome()


class _Reading:
    """The state of reading one plugin: the rules broken so far and the tables known so far."""

    def __init__(self, path: str, plugin: str) -> None:
        self.path = path
        self.plugin = plugin
        self.registration = DeviceRegistration(plugin)
        self.found: list[Violation] = []
        self.code = Code.FAILED_PRECONDITION
        self.accepted: DeviceTables | None = None

    def attempt(self, broken: Rule, call: Callable[[], Iterator[Violation]]) -> bool:
        """Return whether a call into the plugin succeeds; a failure breaks the given rule."""
        try:
            self.found.extend(call())
        except ModularTFError as error:
            if self.code is Code.FAILED_PRECONDITION:
                self.code = error.code
            self.found.append(Violation(broken, error.message))
            return False
        return True

    def check_registration(self) -> None:
        """Check the registration, step by step while the plugin's structs can be read."""
        registration = self.registration
        params = registration.params()
        self.found.extend(checks.check_params(params))
        registration.own_structs(params)
        lent, lent_fns = registration.platform, registration.platform_fns
        dialects = dialects_of_registration(
            lent.size_field, lent_fns.size_field, lent_fns.code_words
        )
        if not dialects:
            self._refuse_mixed(
                f"SP_Platform.struct_size {lent.size_field} and SP_PlatformFns.struct_size"
                f" {lent_fns.size_field}, or the slots, belong to different layouts, or to that of"
                " TensorFlow 2.4"
            )
            return
        dialect = newest(dialects)  # SP_PlatformFns has the same layout in all that are possible
        if dialect is Dialect.DEVICE_RFC:
            self.found = [checks.in_words_of_rfc(violation) for violation in self.found]
        platform = lent.table(layout("SP_Platform", dialect))
        given_fns = lent_fns.table(layout("SP_PlatformFns", dialect))
        self.found.extend(checks.check_platform(platform, *_names(platform)))
        wrong_fns = tuple(checks.check_platform_fns(given_fns))
        self.found.extend(wrong_fns)
        # Slots that may be other functions than those that are expected are not called.
        if any(violation.rule == rules.ONE_ALLOCATOR for violation in wrong_fns):
            return
        is_certain = sizes_decide(lent.size_field, lent_fns.size_field)
        if not is_certain and any(violation.is_error for violation in wrong_fns):
            return
        fns = given_fns.in_layout(layout("SP_PlatformFns", HOSTED))
        device_fns = self._create_device_fns(platform, fns, dialect)
        dialects = self._create_executor(platform, fns, dialects)
        if device_fns is not None and dialects:
            self._accept(newest(dialects), device_fns)

    def _accept(self, dialect: Dialect, device_fns: DeviceTable) -> None:
        """Check the executor, whose layout is known now, and accept tables without errors."""
        registration = self.registration
        platform = registration.platform.table(layout("SP_Platform", dialect))
        fns = registration.platform_fns.table(layout("SP_PlatformFns", dialect))
        executor = registration.executor.table(layout("SP_StreamExecutor", dialect))
        unified = platform.has("supports_unified_memory")
        own_allocator = checks.allocator_of(fns) is not None
        self.found.extend(
            checks.check_executor(executor, unified_memory=unified, own_allocator=own_allocator)
        )
        if any(violation.is_error for violation in self.found):
            return
        name, device_type = _names(platform)
        self.accepted = DeviceTables(
            plugin=self.plugin,
            path=self.path,
            dialect=dialect,
            name=name or "",
            device_type=device_type or "",
            platform=platform,
            platform_fns=fns.in_layout(layout("SP_PlatformFns", HOSTED)),
            device_fns=device_fns,
            executor=executor.in_layout(layout("SP_StreamExecutor", HOSTED)),
            given_fns=fns,
            given_executor=executor,
            warnings=tuple(self.found),
            registration=registration,
        )

    def _create_device_fns(
        self, platform: DeviceTable, fns: DeviceTable, dialect: Dialect
    ) -> DeviceTable | None:
        """Return SP_DeviceFns, an empty one for the RFC, None where they cannot be created."""
        registration = self.registration
        if dialect is Dialect.DEVICE_RFC:
            return DeviceTable(layout("SP_DeviceFns"), bytes(layout("SP_DeviceFns").size), None)
        if not _can_create(fns, "device_fns") or not self.attempt(
            rules.CREATE_DEVICE_FNS_SUCCEEDS,
            lambda: registration.create("device_fns", registration.device_fns, platform, fns),
        ):
            return None
        table = registration.device_fns.table(layout("SP_DeviceFns"))
        self.found.extend(checks.check_device_fns(table))
        return table

    def _create_executor(
        self, platform: DeviceTable, fns: DeviceTable, dialects: frozenset[Dialect]
    ) -> frozenset[Dialect]:
        """Let the plugin fill the executor, and return the dialects that are still possible."""
        registration, executor = self.registration, self.registration.executor
        if not _can_create(fns, "stream_executor") or not self.attempt(
            rules.CREATE_EXECUTOR_SUCCEEDS,
            lambda: registration.create("stream_executor", executor, platform, fns),
        ):
            return frozenset()
        left = refine_by_executor(dialects, executor.size_field, executor.code_words)
        if not left:
            self._refuse_mixed(
                f"SP_StreamExecutor.struct_size {executor.size_field} does not belong to the"
                f" layout of {describe(dialects)}, which the platform has"
            )
        return left

    def _refuse_mixed(self, text: str) -> None:
        self.found.append(Violation(rules.ONE_LAYOUT, text))

    def outcome(self) -> DeviceTables | RefusedDeviceTables:
        """Return the tables, or tear the registration down and return the broken rules."""
        if self.accepted is not None:
            return self.accepted
        self.found.extend(self.registration.tear_down())
        return RefusedDeviceTables(self.plugin, self.path, tuple(self.found), self.code)


def _names(platform: DeviceTable) -> tuple[str | None, str | None]:
    """Return the platform's name and device type, None for what cannot be read."""
    return checks.read_name(platform, "name"), checks.read_name(platform, "type")


def _can_create(fns: DeviceTable, name: str) -> bool:
    """Whether both functions of a pair can be called; a missing one has broken a rule already."""
    return all(is_executable(fns.value(f"{verb}_{name}")) for verb in ("create", "destroy"))


@dataclass(frozen=True, slots=True)
class _Destroyer:
    """One destroy function with its arguments."""

    slot: int
    struct: LentStruct
    platform: DeviceTable | None = None  # None: the function takes the struct alone
    exists: Any = field(default_factory=lambda: ffi.new("int32_t *"))


class DeviceRegistration:
    """One call of SE_InitPlugin and all structs created after it. One thread at a time."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        self.platform = LentStruct(
            layout("SP_Platform", HOSTED), unwritten_size=UNWRITTEN_PLATFORM_SIZE
        )
        self.platform_fns = LentStruct(
            layout("SP_PlatformFns", HOSTED), unwritten_size=UNWRITTEN_FNS_SIZE
        )
        self.device_fns = LentStruct(layout("SP_DeviceFns"))
        self.executor = LentStruct(
            layout("SP_StreamExecutor", HOSTED), unwritten_size=UNWRITTEN_EXECUTOR_SIZE
        )
        self.timer_fns: LentStruct | None = None
        self._params = LentStruct(_PARAMS)
        self._destroyers: dict[str, _Destroyer] = {}
        self._process = os.getpid()

    def init(self, entry: int) -> Iterator[Violation]:
        """Call SE_InitPlugin, collect the structs that it fills, and yield what is wrong there."""
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
        for struct, lent in (("platform", self.platform), ("platform_fns", self.platform_fns)):
            slot = f"destroy_{struct}"
            self._destroyers[slot] = _Destroyer(params.value(slot), lent)
            self._destroyers[slot].exists[0] = 1

    def create(
        self, name: str, struct: LentStruct, platform: DeviceTable, fns: DeviceTable
    ) -> Iterator[Violation]:
        """Let the plugin fill `device_fns` or `stream_executor`; its own status is raised."""
        params = HostStruct(_PARAMS_OF[name], _ROOM, struct_size=_PARAMS_OF[name].size)
        params.set(name, struct.address)
        self._call_create(name, struct, params.address, platform, fns)
        yield from struct.collect(params.get(name), f"params.{name}")

    def create_timer_fns(self, platform: DeviceTable, fns: DeviceTable) -> int:
        """Return the address of the slot `nanoseconds` of new SP_TimerFns, 0 for none."""
        if not (fns.has("create_timer_fns") and fns.has("destroy_timer_fns")):
            return 0
        self.timer_fns = struct = LentStruct(_TIMER_FNS)
        # Unlike the others it has no params struct.
        self._call_create("timer_fns", struct, struct.address, platform, fns)
        nanoseconds = self.timer_fns.memory.get("nanoseconds")
        return nanoseconds if is_executable(nanoseconds) else 0

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
        """Call the destroy functions of all that exists, in TensorFlow's order; return failures.

        Safe to call twice; after an interrupt, a second call does what is left. A forked child
        calls none of them: what they would release belongs to the parent. After an error the other
        functions are called nevertheless.
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
        call = partial(device_calls.destroy_registered, slot, struct)
        if platform is not None:
            call = partial(device_calls.destroy, slot, platform.address, struct)
        try:
            call(plugin=self.plugin, operation=operation, exists=destroyer.exists)
        except ModularTFError as error:
            return Violation(rules.DESTROY_RETURNS, error.message)
        return None
