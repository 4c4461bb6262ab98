"""An allocator of the RFC of 2020-09-08: creating, checking and destroying it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.errors import FailedPreconditionError, ModularTFError, error_from_code
from modular_tf.loading.device_tables import LentStruct, allocator_of, check_code
from modular_tf.native import device_calls
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.host_struct import HostStruct
from modular_tf.rules import Violation
from modular_tf.rules.device import (
    ALLOCATOR_SLOTS_SET,
    CREATE_ALLOCATOR_SUCCEEDS,
    DESTROY_RETURNS,
    null_field,
)

if TYPE_CHECKING:
    from modular_tf.loading.device_tables import DeviceTable, DeviceTables

_RFC = Dialect.DEVICE_RFC
_ROOM = 128
_STRUCTS = {
    "allocator": ("SP_Allocator", "SP_AllocatorFns", "SE_CreateAllocatorParams"),
    "custom_allocator": (
        "SP_CustomAllocator",
        "SP_CustomAllocatorFns",
        "SE_CreateCustomAllocatorParams",
    ),
}
_UNIFIED = ("unified_memory_allocate", "unified_memory_deallocate")


def create_allocator(tables: DeviceTables) -> PluginAllocator | None:
    """Return a plugin's allocator, newly created; None for a plugin that offers none.

    Raises the plugin's own status as a `ModularTFError` (SE-046), and `FailedPreconditionError` if
    what it left is not usable (SE-008, SE-029, SE-047); it was destroyed again then.
    """
    kind = allocator_of(tables.given_fns)
    return None if kind is None else PluginAllocator(tables, kind)


class PluginAllocator:
    """A created allocator, which serves all devices of its platform.

    The caller lets one thread at a time create and destroy it; its functions are called from any.
    Its kind is "allocator" or "custom_allocator", and `fns` are those of that kind.
    """

    def __init__(self, tables: DeviceTables, kind: str) -> None:
        """Create it by the plugin's function; errors as in `create_allocator`."""
        self.kind = kind
        self.warnings: tuple[Violation, ...] = ()
        self._tables = tables
        struct, fns, params_name = _STRUCTS[kind]
        self._struct = LentStruct(layout(struct, _RFC))
        self._exists = ffi.new("int32_t *")
        self._fns = LentStruct(layout(fns, _RFC))
        params = HostStruct(layout(params_name, _RFC), _ROOM, struct_size=32)
        params.set(kind, self._struct.address)
        params.set(f"{kind}_fns", self._fns.address)
        operation = f"create_{kind}"
        try:
            device_calls.create(
                tables.given_fns.value(operation),
                tables.platform.address,
                params.address,
                plugin=tables.plugin,
                operation=operation,
                exists=self._exists,
            )
        except ModularTFError as error:
            raise error_from_code(
                error.code,
                f"{tables.name}: {error.message}",
                plugin=tables.plugin,
                operation=operation,
                rule=CREATE_ALLOCATOR_SUCCEEDS,
            ) from None
        found = [*self._struct.collect(params.get(kind), f"params.{kind}")]
        found += self._fns.collect(params.get(f"{kind}_fns"), f"params.{kind}_fns")
        self.fns: DeviceTable = self._fns.table()
        found += [
            null_field(ALLOCATOR_SLOTS_SET, fns, slot.name)
            for slot in self.fns.layout.slots
            if not self.fns.has(slot.name)
            and (self.has_unified_memory or slot.name not in _UNIFIED)
        ]
        found += check_code(self.fns)
        if wrong := [violation for violation in found if violation.is_error]:
            self.destroy()
            raise FailedPreconditionError(
                f"{tables.name}: {wrong[0].in_full} (plugin {tables.plugin})",
                plugin=tables.plugin,
                operation=operation,
                rule=wrong[0].rule,
            )
        self.warnings = tuple(found)

    @property
    def is_custom(self) -> bool:
        """Whether it allocates each piece itself, without an arena of the host."""
        return self.kind == "custom_allocator"

    @property
    def address(self) -> int:
        """The address of the struct that its functions are called with."""
        return self._struct.filled_at

    @property
    def has_unified_memory(self) -> bool:
        """Whether it allocates unified memory; a custom allocator does not."""
        return not self.is_custom and self._struct.table().has("supports_unified_memory")

    def attach_to(self, executor: Any) -> Any:
        """Make a new native executor use this allocator; return the native error."""
        return lib.mtf_executor_set_allocator(
            executor,
            lib.MTF_CUSTOM_ALLOCATOR if self.is_custom else lib.MTF_PLAIN_ALLOCATOR,
            ffi.cast("void *", self.fns.address),
            ffi.cast("void *", self._struct.filled_at),
            self.has_unified_memory,
        )

    def destroy(self) -> list[Violation]:
        """Call the destroy function once and return what went wrong; all memory is free by then."""
        tables, operation = self._tables, f"destroy_{self.kind}"
        try:
            device_calls.destroy_allocator(
                tables.given_fns.value(operation),
                tables.platform.address,
                self._struct.filled_at,
                self._fns.filled_at,
                plugin=tables.plugin,
                operation=operation,
                exists=self._exists,
            )
        except ModularTFError as error:
            return [Violation(DESTROY_RETURNS, error.message)]
        return []
