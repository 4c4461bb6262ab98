"""Executions of kernels: a node, a kernel, a device, and the tensors that go through them."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.abi.data_types import by_number, quantized_number
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.arrays.dlpack_devices import note_device
from modular_tf.device.device import DeviceArray
from modular_tf.device.device_core import call_and_own
from modular_tf.errors import ClosedError, ModularTFError
from modular_tf.events import EventLog
from modular_tf.kernel.outputs import is_lent, take_outputs
from modular_tf.kernel.prepared_kernel import PreparedKernel
from modular_tf.kernel.selection import select
from modular_tf.kernel.site import KernelSite
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.tensor import PreparedCall, support_calls
from modular_tf.rules.kernel import DONE_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from modular_tf.abi.data_types import DataType
    from modular_tf.device.device import Device
    from modular_tf.device.executor import Executor
    from modular_tf.device.streams.stream import Stream
    from modular_tf.kernel.node import Node
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.kernel.site import KernelInput

_MOST_PREPARED = 1024
_MOST_OPS = 256
_SLICE_NS = 50_000_000  # of a wait for an asynchronous kernel; signal handlers run between two
_SILENT_SLICES = 200  # 10 s, after which the log says what is waited for

_DIMS, _INPUTS, _POINTER = map(ffi.typeof, ("int64_t[]", "mtf_kernel_input[]", "void *"))
cast = ffi.cast

_log = EventLog("kernel.running")
_Made = TypeVar("_Made")

_MOST_AT_ONCE = 64
retained: dict[int, Any] = {}
"""What keeps each input that a kernel has, by the number of its keeper."""
_for_good: list[Any] = []


class KernelRunner:
    """The kernel objects of one service, and their executions. [any thread]

    Kernel objects are kept for the next call with the same node, at most 1 024; the oldest one
    goes first. They end with the service.
    """

    def __init__(self, registry: KernelRegistry) -> None:
        self.registry = registry
        self._sites: dict[Executor, KernelSite] = {}
        self._prepared: OrderedDict[Any, PreparedKernel] = OrderedDict()
        self._ops: tuple[object, dict[Hashable, Any]] = None, {}  # of one moment of the registry
        self._lock = ForkLock()
        self._closed = False

    def site_of(self, device: Device) -> KernelSite:
        """Return a device as kernels see it; raises as `Device.executor`."""
        executor = device.executor
        site = self._sites.get(executor)
        if site is None:
            self._forget_closed()
            site = self._sites.setdefault(executor, KernelSite(device))
        return site

    def prepare(self, node: Node, definition: OpDefinition, site: KernelSite) -> PreparedKernel:
        """Return a kernel object for a node on a device, made where there is none.

        Raises:
            NotFoundError: No kernel serves it (KN-034, KN-038).
            InvalidArgumentError: Two do that nothing ranks (KN-033, KN-036).
            ModularTFError: The plugin cannot make it, with its own code (KN-060).
            ClosedError: The service, or the device, was closed.
        """
        key = node.key, site.executor, self.registry.moment
        found = self._prepared.get(key)
        if found is not None:
            return found
        self._check_open(node)
        registration = select(
            self.registry.kernels_of(node.op), node, site.device.device_type,
            is_pluggable=not site.is_host,
        )  # fmt: skip
        with self._lock:  # one at a time: plugins make several where they are asked twice
            self._check_open(node)
            found = self._prepared.get(key)
            if found is None:
                found = PreparedKernel(registration, node, definition, site)
                self._drop_outdated()
                self._prepared[key] = found
        return found

    def cached_op(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return an operation that was made before, with the nodes and calls that it keeps.

        All are made anew after each change of the registry, which may change definitions.
        """
        moment, ops = self._ops
        if moment is not self.registry.moment or len(ops) >= _MOST_OPS:
            moment, ops = self._ops = self.registry.moment, {}
        found: _Made | None = ops.get(key)
        if found is None:
            found = make()
            if not self._closed:
                ops[key] = found
        return found

    def _check_open(self, node: Node) -> None:
        if self._closed:
            raise ClosedError("the plugin service is closed", operation=node.op)

    def _drop_outdated(self) -> None:
        """Drop kernel objects of earlier states of the registry, and the oldest of too many."""
        moment = self.registry.moment
        for key in [key for key in self._prepared if key[2] is not moment]:
            del self._prepared[key]
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.popitem(last=False)

    def run(
        self, kernel: PreparedKernel, inputs: Sequence[KernelInput], donated: frozenset[int],
        stream: Stream | None,
    ) -> list[DeviceArray]:  # fmt: skip
        """Have a kernel compute, and return its outputs.

        On a device the work is queued on the stream, None for the device's compute stream: this
        returns before it is done, and what it uses is kept until then. The kernel may overwrite the
        `donated` inputs with an output.
        """
        if donated:
            donated = frozenset(each for each in donated if not is_lent(inputs[each]))
        described = _described(inputs, donated)
        site = kernel.site
        if site.is_host:
            site.executor.await_streams()
            return self._outputs(kernel, inputs, described[0], ffi.NULL, donated)
        chosen = site.executor.context.compute if stream is None else site.checked_stream(stream)
        used: list[object] = [kernel, *inputs]
        with chosen.work(used) as native:
            try:
                return self._outputs(kernel, inputs, described[0], native, donated)
            finally:
                used += _deferred_memories(site, native)

    def _outputs(
        self,
        kernel: PreparedKernel,
        inputs: Sequence[KernelInput],
        described: Any,
        stream: Any,
        donated: frozenset[int],
    ) -> list[DeviceArray]:
        """Return what the kernel computes; an interrupt on the way keeps the inputs for good."""
        arguments = kernel.native, stream, described, len(inputs)
        try:
            result = call_and_own(lib.mtf_kernel_run, arguments, lib.mtf_kernel_result_free)
            if not result:
                keep_retained_by_failed(inputs)
                kernel.raise_failure()
            if not lib.mtf_kernel_outputs(result):
                self._await(kernel, result, inputs)
            keep_retained(result, inputs)
            return take_outputs(result, len(kernel.node.output_types), kernel.site, inputs, donated)
        except ModularTFError:
            raise
        except BaseException:
            # It is unknown which of them the kernel has kept, or reads.
            _for_good.append([given.kept for given in inputs])
            raise

    def _await(self, kernel: PreparedKernel, result: Any, inputs: Sequence[KernelInput]) -> None:
        """Wait for an asynchronous kernel."""
        for slices in count(1):
            if lib.mtf_kernel_wait(result, _SLICE_NS):
                break
            if slices == _SILENT_SLICES:
                registration = kernel.registration
                _log.warning(
                    "kernel.not_done",
                    plugin=registration.plugin,
                    op=kernel.node.op,
                    kernel=registration.name,
                    rule=DONE_ONCE,
                )
        error = lib.mtf_kernel_finish(result)
        if error:
            keep_retained(result, inputs)
            raise kernel.failure(error, "compute")

    def _forget_closed(self) -> None:
        """End the kernel objects of devices that were closed, such as those of a renewed plugin."""
        with self._lock:
            self._ops = None, {}
            for executor in [each for each in self._sites if each.closed]:
                for key in [key for key in self._prepared if key[1] is executor]:
                    del self._prepared[key]
                self._sites.pop(executor, None)

    def close(self) -> None:
        """End all kernel objects and variables when no call uses them. Safe to call twice."""
        with self._lock:
            self._closed = True
            self._ops = None, {}
            self._prepared.clear()
            for variable in [
                each for site in self._sites.values() for each in site.variables.all()
            ]:
                variable.close()
            self._sites.clear()


def _described(inputs: Sequence[KernelInput], donated: frozenset[int]) -> tuple[Any, Any]:
    """Return native inputs, and what has to live as long."""
    kept = [ffi.new(_DIMS, given.shape) for given in inputs]
    made = ffi.new(_INPUTS, [
        (
            cast(_POINTER, given.address), given.n_bytes, dims, len(given.shape), given.type.number,
            given.is_on_host, index in donated, given.variable or ffi.NULL, 0,
        )
        for index, (given, dims) in enumerate(zip(inputs, kept, strict=True))
    ])  # fmt: skip
    return made, kept


def _deferred_memories(site: KernelSite, stream: Any) -> list[Any]:
    """Return the memory that kernels gave back while their work was queued on a stream."""
    found = []
    arguments = site.native, stream
    while memory := call_and_own(lib.mtf_kernel_take_deferred, arguments, lib.mtf_memory_free):
        found.append(memory)
    return found


# -- inputs that kernels keep after the call that brought them, such as weights --------------------


def keep_retained(result: Any, inputs: Sequence[KernelInput]) -> None:
    """Keep the inputs that a kernel has handles of; drop those that none has any more. [any thread]

    `result` is that of an execution that is over.
    """
    for index, given in enumerate(inputs):
        number = lib.mtf_kernel_keeper(result, index)
        if number:
            retained[number] = given.kept
    if retained:
        drop_released()


def keep_retained_by_failed(inputs: Sequence[KernelInput]) -> None:
    """Keep what the kernel has that failed last on this thread, before its error is raised."""
    failed = call_and_own(lib.mtf_kernel_take_failed, (), lib.mtf_kernel_result_free)
    if failed:
        keep_retained(failed, inputs)


def drop_released() -> None:
    """Drop the inputs that no kernel has any more."""
    numbers = ffi.new("uint64_t[]", _MOST_AT_ONCE)
    while count := lib.mtf_kernel_take_released(numbers, _MOST_AT_ONCE):
        for number in numbers[0:count]:
            retained.pop(number, None)


# -- calls that were made before, for devices in host memory: they run in C from then on -----------

MOST_TENSORS = 8
"""How many inputs, and how many outputs, a prepared call has at most."""

_FUNCTIONS = (
    "mtf_kernel_run", "mtf_kernel_outputs", "mtf_kernel_take_memory", "mtf_memory_free",
    "mtf_kernel_take_buffer", "mtf_kernel_buffer_free", "mtf_kernel_keeper",
    "mtf_kernel_result_free", "mtf_executor_is_open", "mtf_kernel_take_failed",
)  # fmt: skip


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


support_calls(
    tuple(_address(ffi.addressof(lib, name)) for name in _FUNCTIONS),
    DeviceArray,
    retained,
    drop_released,
)


def prepared_call(
    kernel: PreparedKernel,
    registry: KernelRegistry,
    moment: object,
    given: Sequence[int],
    *,
    finish: Callable[[list[DeviceArray]], Any] | None,
    default_device: Callable[[], Any] | None,
) -> PreparedCall | None:
    """Return what calls of a kernel need again; None for those that have to go the general way.

    `moment` is the registry's before the kernel was looked up there. `given` are the `_data_type`
    of each input, 0 for arrays of numpy. `finish` returns the result of a list of arrays; None
    where it is the only one. `default_device` returns the device of calls without inputs on one.
    """
    site, node = kernel.site, kernel.node
    inputs, outputs = _elements(node.input_types), _elements(node.output_types)
    if not site.is_host or kernel.registration.asynchronous or inputs is None or outputs is None:
        return None
    device = site.device
    place = device.dlpack_place
    note_device(place, site.executor)
    return PreparedCall(
        kernel=weakref.ref(kernel), native=_address(kernel.native),
        executor=site.executor, native_executor=_address(site.executor.native),
        device=device, place=place,
        inputs=tuple([(*one, stands_for) for one, stands_for in zip(inputs, given, strict=True)]),
        outputs=tuple([(*each[:3], quantized_number(by_number(each[3]))) for each in outputs]),
        registry=registry, moment=moment, finish=finish, default_device=default_device,
    )  # fmt: skip


def _elements(types: Sequence[DataType]) -> tuple[tuple[int, int, int, int], ...] | None:
    """Return DLPack's and TensorFlow's numbers of types; None for too many, or odd ones."""
    made = tuple([(*each.dlpack, each.number) for each in types if each.dlpack is not None])
    is_plain = len(made) == len(types) <= MOST_TENSORS
    return made if is_plain and all(bits % 8 == 0 for _, bits, _, _ in made) else None
