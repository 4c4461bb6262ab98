"""Reading what a plugin's `TF_InitKernel` registers: kernels, and definitions of operations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import is_executable
from modular_tf.native.plugin_names import named
from modular_tf.native.status import take_error
from modular_tf.native.strings import decode_pointer
from modular_tf.rules import Violation
from modular_tf.rules.kernel import (
    COMPUTE_SET,
    CONSTRAINT_TYPE_SERVED,
    DEFINITION_WELL_FORMED,
    KERNEL_INIT_RETURNS,
    KERNELS_REGISTERED,
)
from modular_tf.rules.loading import INIT_SYMBOL_IS_CODE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from modular_tf.native.library import Library

KERNEL_INIT = "TF_InitKernel"
_ENTRIES = (KERNEL_INIT, "InitPlugin")  # the second is that of the first draft of kernels


class NativeKernel(NamedTuple):
    """One kernel that a plugin has registered."""

    native: Any  # its definition in the native core, which lives as long as the process
    op: str
    device_type: str
    name: str
    constraints: tuple[tuple[str, int], ...]  # attributes, with the number of the type of each
    host_args: tuple[str, ...]  # the inputs and outputs that it wants in host memory
    label: str  # what a call asks for by name, "" for ordinary kernels
    priority: int  # of several that match, the highest is used
    asynchronous: bool  # whether it may end after its function has returned


class KernelOffer(NamedTuple):
    """What a plugin has registered in `TF_InitKernel`."""

    kernels: tuple[NativeKernel, ...] = ()  # in the plugin's order
    # Records of the operations that it defined; bytes that are not UTF-8 are surrogates.
    op_definitions: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()  # of the plugin as a whole; an error leaves no kernel


_REPORTED: Mapping[str, Callable[[str], Violation]] = {
    rule.id: partial(Violation, rule) for rule in (CONSTRAINT_TYPE_SERVED, DEFINITION_WELL_FORMED)
}
"""What `TF_InitKernel` does wrong and is reported, although it harms only one registration."""
_lock = ForkLock()
_offers: dict[int, KernelOffer] = {}
_attributed = (0, 0)
"""How many kernels and definitions belong to the libraries that were initialised so far."""


def init_kernels(library: Library, *, plugin: str) -> KernelOffer:
    """Return what a mapped library registers; its `TF_InitKernel` is called once. [any thread]

    A second call would register all kernels again, and some plugins end the process then. So the
    first result counts for all services of the process. What the library's constructors registered
    belongs to it as well. Its devices were registered before, if it has any.
    """
    handle = int(ffi.cast("uintptr_t", library.handle))
    with _lock:
        offer = _offers.get(handle)
        if offer is None:
            offer = _offers[handle] = _init(library, plugin)
    return offer


def _init(library: Library, plugin: str) -> KernelOffer:
    global _attributed  # noqa: PLW0603  (under the lock)
    entry = next(filter(None, map(library.symbol, _ENTRIES)), None)
    if entry is None or not is_executable(entry):
        message = f"{library.path}: {KERNEL_INIT} is not a function"
        return KernelOffer(violations=(Violation(INIT_SYMBOL_IS_CODE, message),))
    before = _attributed
    error = lib.mtf_init_kernels(ffi.cast("void *", entry), named(plugin))
    _attributed = int(lib.mtf_kernel_count()), int(lib.mtf_op_definition_count())
    if not error:
        return _registered(*before, *_attributed)
    cause = take_error(error, plugin=plugin, operation=KERNEL_INIT)
    if cause.rule is None:
        return KernelOffer(violations=(Violation(KERNEL_INIT_RETURNS, cause.message),))
    found = _registered(*before, *_attributed)
    if cause.rule not in _REPORTED:  # it is in the log
        return found
    return found._replace(violations=(_REPORTED[cause.rule](cause.message), *found.violations))


def _registered(
    kernels_before: int, definitions_before: int, kernels_until: int, definitions_until: int
) -> KernelOffer:
    registered = [_kernel_at(index) for index in range(kernels_before, kernels_until)]
    violations = tuple(each for each in registered if isinstance(each, Violation))
    kernels = tuple(each for each in registered if not isinstance(each, Violation))
    if not registered:
        message = f"{KERNEL_INIT} has registered no kernel"
        return KernelOffer((), (), (Violation(KERNELS_REGISTERED, message),))
    records = map(_definition_at, range(definitions_before, definitions_until))
    return KernelOffer(kernels, tuple(records), violations)


def _definition_at(index: int) -> str:
    size = ffi.new("size_t *")
    start = lib.mtf_op_definition_at(index, size)
    return bytes(ffi.buffer(start, size[0])).decode("utf-8", "surrogateescape")


def _kernel_at(index: int) -> NativeKernel | Violation:
    """Return a kernel, or why it is none."""
    facts = ffi.new("mtf_kernel_facts *")
    native = lib.mtf_kernel_at(index, facts)
    if not is_executable(int(facts.compute)):
        op = decode_pointer(facts.op)
        text = f"kernel of {op}: expected a function `compute`, found {int(facts.compute):#x}"
        return Violation(COMPUTE_SET, text)
    number = ffi.new("int32_t *")
    constraints = []
    for at in range(facts.n_constraints):
        name = decode_pointer(lib.mtf_kernel_constraint_at(native, at, number)) or ""
        constraints.append((name, int(number[0])))
    host_args = (lib.mtf_kernel_host_arg_at(native, at) for at in range(facts.n_host_args))
    return NativeKernel(
        native,
        decode_pointer(facts.op) or "",
        decode_pointer(facts.device_type) or "",
        decode_pointer(facts.name) or "",
        tuple(constraints),
        tuple(decode_pointer(name) or "" for name in host_args),
        decode_pointer(facts.label) or "",
        int(facts.priority),
        bool(facts.is_asynchronous),
    )
