"""Reading a device plugin's tables: SE_InitPlugin, the checks, and tables or broken rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.abi.status_codes import Code
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.loading import device_tables as checks
from modular_tf.loading.device_dialect import (
    HOSTED,
    RFC_OR_V204,
    describe,
    dialects_of_registration,
    newest,
    refine_by_executor,
    sizes_tell,
)
from modular_tf.loading.device_registration import DeviceRegistration
from modular_tf.loading.device_table import DeviceTable
from modular_tf.loading.device_tables import DeviceTables
from modular_tf.native.library import is_executable
from modular_tf.rules import Rule, Violation
from modular_tf.rules import device as rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.loading.lent_struct import LentStruct

ENTRY_POINT = "SE_InitPlugin"


class ExportingLibrary(Protocol):
    """The interface of a mapped library that this module needs."""

    @property
    def path(self) -> str:
        """The file that the user knows."""

    def symbol(self, name: str) -> int | None:
        """Return the address of an exported symbol."""


class RefusedDevicePluginError(PluginError):
    """A device plugin breaks rules; `rule` is the first of them.

    Attributes:
        violations: Every broken rule, errors and warnings.
    """

    violations: tuple[Violation, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"violations": self.violations}


@dataclass(frozen=True, slots=True)
class RefusedDeviceTables:
    """A registration that breaks rules; it was torn down again.

    Attributes:
        plugin: The plugin's name for users.
        path: Its file.
        violations: Every broken rule, errors and warnings, in the order of the checks.
        code: The plugin's own status where that was the reason, else FAILED_PRECONDITION.
    """

    plugin: str
    path: str
    violations: tuple[Violation, ...]
    code: Code = Code.FAILED_PRECONDITION

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

    Args:
        library: The plugin, mapped.
        plugin: Its name for users.
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
        params = self.registration.params()
        self.found.extend(checks.check_params(params))
        self.registration.own_structs(params)
        platform, fns = self.registration.platform, self.registration.platform_fns
        dialects = dialects_of_registration(platform.size_field, fns.size_field, fns.code_words)
        if dialects == RFC_OR_V204:
            dialects = self._ask_rfc_or_v204()
        elif not dialects:
            self._refuse_mixed(
                f"SP_Platform.struct_size {platform.size_field} and SP_PlatformFns.struct_size"
                f" {fns.size_field}, or the slots, belong to different layouts"
            )
        if dialects:
            self._check_platform(dialects)

    def _ask_rfc_or_v204(self) -> frozenset[Dialect]:
        """Return the dialect by the call that the two have in common; none if it fails."""
        registration = self.registration
        platform = registration.platform.table(layout("SP_Platform", Dialect.DEVICE_V204))
        fns = registration.platform_fns.table(layout("SP_PlatformFns", Dialect.DEVICE_RFC))
        asked = self.attempt(
            rules.LAYOUT_QUERY_SUCCEEDS, lambda: registration.create_stream_executor(platform, fns)
        )
        readable = not any(violation.rule == rules.STRUCTS_READABLE for violation in self.found)
        return frozenset({registration.tell_rfc_from_v204()} if asked and readable else ())

    def _check_platform(self, dialects: frozenset[Dialect]) -> None:
        """Check all tables; SP_PlatformFns has the same layout in all `dialects`."""
        if newest(dialects) is Dialect.DEVICE_RFC:
            self.found = [checks.in_words_of_rfc(violation) for violation in self.found]
        platform = self._given("platform", "SP_Platform", newest(dialects))
        given_fns = self._given("platform_fns", "SP_PlatformFns", newest(dialects))
        self.found.extend(checks.check_platform(platform, *_names(platform)))
        wrong_fns = tuple(checks.check_platform_fns(given_fns))
        self.found.extend(wrong_fns)
        if not self._may_call(wrong_fns):
            return
        fns = given_fns.in_layout(layout("SP_PlatformFns", HOSTED))
        device_fns = self._create_device_fns(platform, fns, newest(dialects))
        dialects = self._create_executor(platform, fns, dialects)
        if device_fns is not None and dialects:
            self._accept(newest(dialects), device_fns)

    def _accept(self, dialect: Dialect, device_fns: DeviceTable) -> None:
        """Check the executor, whose layout is known now, and accept tables without errors."""
        platform = self._given("platform", "SP_Platform", dialect)
        fns = self._given("platform_fns", "SP_PlatformFns", dialect)
        executor = self._given("executor", "SP_StreamExecutor", dialect)
        unified = platform.has("supports_unified_memory")
        own_allocator = checks.has_allocator(fns)
        self.found.extend(
            checks.check_executor(executor, unified_memory=unified, own_allocator=own_allocator)
        )
        if self._has_errors():
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
            registration=self.registration,
        )

    def _may_call(self, wrong_fns: tuple[Violation, ...]) -> bool:
        """Whether the slots seem to be the expected functions, so that they can be called."""
        platform, fns = self.registration.platform, self.registration.platform_fns
        if any(violation.rule == rules.ONE_ALLOCATOR for violation in wrong_fns):
            return False  # perhaps these are no allocators
        return sizes_tell(platform.size_field, fns.size_field) or not any(
            violation.is_error for violation in wrong_fns
        )

    def _given(self, part: str, struct: str, dialect: Dialect) -> DeviceTable:
        lent: LentStruct = getattr(self.registration, part)
        return lent.table(layout(struct, dialect))

    def _create_device_fns(
        self, platform: DeviceTable, fns: DeviceTable, dialect: Dialect
    ) -> DeviceTable | None:
        """Return SP_DeviceFns, an empty one for the RFC, None where they cannot be created."""
        registration = self.registration
        if dialect is Dialect.DEVICE_RFC:
            return DeviceTable(layout("SP_DeviceFns"), bytes(layout("SP_DeviceFns").size), None)
        if not registration.has_created("device_fns") and (
            not _can_create(fns, "device_fns")
            or not self.attempt(
                rules.CREATE_DEVICE_FNS_SUCCEEDS,
                lambda: registration.create_device_fns(platform, fns),
            )
        ):
            return None
        table = registration.device_fns.table(layout("SP_DeviceFns"))
        self.found.extend(checks.check_device_fns(table))
        return table

    def _create_executor(
        self, platform: DeviceTable, fns: DeviceTable, dialects: frozenset[Dialect]
    ) -> frozenset[Dialect]:
        """Let the plugin fill the executor, and return the dialects that are still possible."""
        registration = self.registration
        if not registration.has_created("stream_executor") and (
            not _can_create(fns, "stream_executor")
            or not self.attempt(
                rules.CREATE_EXECUTOR_SUCCEEDS,
                lambda: registration.create_stream_executor(platform, fns),
            )
        ):
            return frozenset()
        executor = registration.executor
        left = refine_by_executor(dialects, executor.size_field, executor.code_words)
        if not left:
            self._refuse_mixed(
                f"SP_StreamExecutor.struct_size {executor.size_field} does not belong to the"
                f" layout of {describe(dialects)}, which the platform has"
            )
        return left

    def _refuse_mixed(self, text: str) -> None:
        self.found.append(Violation(rules.ONE_LAYOUT, text))

    def _has_errors(self) -> bool:
        return any(violation.is_error for violation in self.found)

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
