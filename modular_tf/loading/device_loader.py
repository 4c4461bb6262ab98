"""From SE_InitPlugin to accepted tables, or to the list of rules that the plugin breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.abi.layouts import Dialect
from modular_tf.codes import Code
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.loading import device_tables as checks
from modular_tf.loading.device_dialect import (
    HOSTED,
    describe,
    dialects_of_registration,
    refine_by_executor,
)
from modular_tf.loading.device_registration import DeviceRegistration
from modular_tf.loading.device_tables import DeviceTables
from modular_tf.native.library import is_executable
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.loading.device_table import DeviceTable

ENTRY_POINT = "SE_InitPlugin"

_SAME_FNS = frozenset({Dialect.DEVICE_V205, Dialect.DEVICE_V207})
"""Older dialects whose platform functions lie where the hosted one has them."""


class ExportingLibrary(Protocol):
    """A mapped library, as far as it matters here."""

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
    """A registration that breaks rules; what had been set up was torn down again.

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
        """Return the refusal as an error, not raised."""
        first, *others = (violation for violation in self.violations if violation.is_error)
        text = f"{self.path}: {first.message} (rule {first.rule_id}: {first.rule.requirement})"
        text += f" The plugin is refused. {first.rule.remedy}"
        if others:
            rest = "; ".join(f"{other.message} ({other.rule_id})" for other in others)
            text += f" Further errors: {rest}."
        error = RefusedDevicePluginError(
            text, code=self.code, plugin=self.plugin, path=self.path, rule=first.rule_id
        )
        error.violations = self.violations
        return error


def read_device_tables(
    library: ExportingLibrary, *, plugin: str
) -> DeviceTables | RefusedDeviceTables:
    """Run a device plugin's SE_InitPlugin and check everything that it leaves.

    Nothing is raised for what the plugin does wrong, short of a crash of its own code. Call it
    once per library: TensorFlow initialises a plugin once, and so do plugins expect it.

    Args:
        library: The plugin, mapped.
        plugin: Its name for users.
    """
    reading = _Reading(library.path, plugin)
    entry = library.symbol(ENTRY_POINT)
    if entry is None:
        reading.found.append(Violation("SE-001", f"{ENTRY_POINT} is not exported"))
    elif reading.attempt("SE-002", lambda: reading.registration.init(entry)):
        reading.check_registration()
    return reading.outcome()


class _Reading:
    """The state of one reading: the rules broken so far, and the tables as they become known."""

    def __init__(self, path: str, plugin: str) -> None:
        self.path = path
        self.plugin = plugin
        self.registration = DeviceRegistration(plugin)
        self.found: list[Violation] = []
        self.code = Code.FAILED_PRECONDITION
        self.accepted: DeviceTables | None = None

    def attempt(self, rule_id: str, call: Callable[[], Iterator[Violation]]) -> bool:
        """Run a call into the plugin; a failure breaks the rule and gives its code."""
        try:
            self.found.extend(call())
        except ModularTFError as error:
            if self.code is Code.FAILED_PRECONDITION:
                self.code = error.code
            self.found.append(Violation(rule_id, error.message))
            return False
        return True

    def check_registration(self) -> None:
        """Check what SE_InitPlugin left, and go on while it makes sense."""
        params = self.registration.params()
        self.found.extend(checks.check_params(params))
        self.registration.own_structs(params)
        dialects = self._registered_dialects()
        if HOSTED in dialects:
            self._check_platform(dialects)
        elif dialects & _SAME_FNS:
            self._name_old_dialect(dialects)
        else:
            self._refuse_dialect(dialects)

    def _registered_dialects(self) -> frozenset[Dialect]:
        platform, fns = self.registration.platform, self.registration.platform_fns
        return dialects_of_registration(platform.size_field, fns.size_field, fns.raw)

    def _check_platform(self, dialects: frozenset[Dialect]) -> None:
        platform = self.registration.platform.table()
        fns = self.registration.platform_fns.table()
        name, device_type = (checks.read_name(platform, field) for field in ("name", "type"))
        self.found.extend(checks.check_platform(platform, name, device_type))
        self.found.extend(checks.check_platform_fns(fns))
        device_fns = self._create_device_fns(platform, fns)
        executor = self._create_executor(platform, fns, dialects)
        if device_fns is None or executor is None or self._has_errors():
            return
        self.accepted = DeviceTables(
            plugin=self.plugin,
            path=self.path,
            dialect=HOSTED,
            name=name or "",
            device_type=device_type or "",
            platform=platform,
            platform_fns=fns,
            device_fns=device_fns,
            executor=executor,
            warnings=tuple(self.found),
            registration=self.registration,
        )

    def _create_device_fns(self, platform: DeviceTable, fns: DeviceTable) -> DeviceTable | None:
        registration = self.registration
        if not _can_create(fns, "device_fns") or not self.attempt(
            "SE-021", lambda: registration.create_device_fns(platform, fns)
        ):
            return None
        table = registration.device_fns.table()
        self.found.extend(checks.check_device_fns(table))
        return table

    def _create_executor(
        self, platform: DeviceTable, fns: DeviceTable, dialects: frozenset[Dialect]
    ) -> DeviceTable | None:
        registration = self.registration
        if not _can_create(fns, "stream_executor") or not self.attempt(
            "SE-023", lambda: registration.create_stream_executor(platform, fns)
        ):
            return None
        executor = registration.executor
        dialects = refine_by_executor(dialects, executor.size_field, executor.raw)
        if HOSTED not in dialects:
            self._refuse_dialect(dialects)
            return None
        table = executor.table()
        unified = platform.has("supports_unified_memory")
        self.found.extend(checks.check_executor(table, unified_memory=unified))
        return table

    def _name_old_dialect(self, dialects: frozenset[Dialect]) -> None:
        """Refuse a plugin of TF 2.5 to 2.8; its executor tells which of them it is."""
        platform = self.registration.platform.table()
        fns = self.registration.platform_fns.table()
        if _can_create(fns, "stream_executor"):
            self._create_executor(platform, fns, dialects)
        if not any(violation.rule_id == "SE-003" for violation in self.found):
            self._refuse_dialect(dialects)

    def _refuse_dialect(self, dialects: frozenset[Dialect]) -> None:
        if not dialects:
            sizes = self.registration.platform.size_field, self.registration.platform_fns.size_field
            text = (
                "SP_Platform.struct_size {} and SP_PlatformFns.struct_size {} belong to different"
            )
            self.found.append(Violation("SE-004", text.format(*sizes) + " layouts"))
            return
        hosts = f"this version of modular_tf hosts {describe([HOSTED])}"
        self.found.append(Violation("SE-003", f"layout of {describe(dialects)}; {hosts}"))

    def _has_errors(self) -> bool:
        return any(violation.is_error for violation in self.found)

    def outcome(self) -> DeviceTables | RefusedDeviceTables:
        """Return the tables, or tear down what was set up and return why."""
        if self.accepted is not None:
            return self.accepted
        self.found.extend(self.registration.tear_down())
        return RefusedDeviceTables(self.plugin, self.path, tuple(self.found), self.code)


def _can_create(fns: DeviceTable, name: str) -> bool:
    """Whether both functions of a pair can be called; what is missing broke a rule already."""
    return all(is_executable(fns.value(f"{verb}_{name}")) for verb in ("create", "destroy"))
