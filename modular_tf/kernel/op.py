"""Operations as functions: looked up once, called with arrays."""

from __future__ import annotations

import weakref
from collections import namedtuple
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.data_types import DataType, imported_numpy
from modular_tf.device.device import DeviceArray
from modular_tf.errors import InvalidArgumentError, ModularTFError, NotFoundError
from modular_tf.kernel.aliases import alias_attrs, aliases_of, name_both, package_for
from modular_tf.kernel.inputs import (
    bind_arguments,
    donated_inputs,
    given_tensor,
    is_number,
    place_input,
)
from modular_tf.kernel.node import attr_key, build_node, convert_value
from modular_tf.kernel.running import prepared_call
from modular_tf.kernel.selection import KernelCandidate, candidates, device_types_of
from modular_tf.kernel.variable import Variable
from modular_tf.native.tensor import call_prepared
from modular_tf.rules import Violation
from modular_tf.rules.kernel import INPUTS_FIT, KERNEL_MATCHES

if TYPE_CHECKING:
    import inspect
    from collections.abc import Iterable, Iterator, Mapping

    from modular_tf.device.device import Device
    from modular_tf.device.streams.stream import Stream
    from modular_tf.kernel.inputs import Given
    from modular_tf.kernel.node import Node
    from modular_tf.kernel.op_definition import ArgDefinition, OpDefinition
    from modular_tf.kernel.prepared_kernel import PreparedKernel
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.running import KernelRunner
    from modular_tf.native.tensor import PreparedCall

__all__ = ["Op"]

_MOST_PLANS = 256
_NOTHING_DONATED: Sequence[DeviceArray] = ()
_MOST_CALLS = 8  # prepared, with the same attributes


class _Plan(NamedTuple):
    """The kernel object that serves calls with inputs of some types and some attributes."""

    moment: object  # of the registry, when it was found
    kernel: weakref.ref[PreparedKernel]


class Op:
    """One operation, on a device or on that of its inputs. [any thread]

    Call it with the inputs by position or by name and the attributes by name, as its `signature`
    says. Types and numbers that the inputs give are not given; what has a default may be left out.

    Inputs are arrays of the device, numpy arrays, objects with the buffer protocol or `__dlpack__`,
    and numbers, also in nested lists, which get the type that the other inputs ask for; lists of
    these for inputs that are several tensors. What is not on the device is copied there; on a host
    device aligned memory is used as it is. No type is converted to another. Strings are `str`,
    `bytes`, or nested lists or numpy arrays of these.

    The result is one array of the device, a named tuple of arrays where there are several outputs,
    a list where an output is a list, None where there is none. An output of strings is a numpy
    array of `bytes` objects.

    Attributes:
        name: Of the operation.
        definition: What the operation takes and gives.
        label: Which kernels it asks for; "" for ordinary ones.
    """

    def __init__(
        self,
        runner: KernelRunner,
        definition: OpDefinition,
        device: Device | None,
        default_device: Any,
        label: str = "",
    ) -> None:
        """Make an operation; `Device.op` and `PluginService.op` do.

        Args:
            runner: The service's.
            definition: Of the operation.
            device: Where it works; None for the device of the inputs.
            default_device: Returns the device where no input is on one.
            label: As above.
        """
        self.name = definition.name
        self.definition = definition
        self.label = label
        self._runner = runner
        self._device = device
        self._default_device = default_device
        self._plans: dict[Any, _Plan] = {}
        self._calls: dict[Any, tuple[PreparedCall, ...]] = {}  # by attributes, the newest first
        outputs = definition.outputs
        self._has_one_output = len(outputs) == 0 or (len(outputs) == 1 and not outputs[0].is_list)

    @property
    def signature(self) -> inspect.Signature:
        """The parameters of a call."""
        return self.definition.signature

    @property
    def __signature__(self) -> inspect.Signature:
        return self.definition.signature

    def __call__(
        self,
        *inputs: Any,
        donate: Sequence[DeviceArray] = _NOTHING_DONATED,
        stream: Stream | None = None,
        out: DeviceArray | None = None,
        **named: Any,
    ) -> Any:
        """Compute it; see the class.

        Args:
            inputs: The inputs, in the order of the definition.
            donate: Inputs, arrays of the device, that are not needed any more: their memory may
                become that of an output, unless another library views it. They are closed once a
                kernel was called, whether it fails or not.
            stream: Where the work is queued; by default the compute stream of the device.
            out: An array of the same device, shape and element type, which gets a copy of the one
                output and is returned: its address stays. It may be an input.
            named: Inputs and attributes by name.

        Raises:
            InvalidArgumentError: An input or attribute does not fit (KN-041 to KN-045), inputs are
                on several devices, or two kernels fit equally (KN-033).
            NotFoundError: No kernel serves the call (KN-034); the message lists those there are.
            ModularTFError: The kernel failed, with its own code (KN-087).
            InternalError: The first call of a kernel wrote to an input in host memory that was
                not donated (KN-093); the array given there may hold other values now.
            ClosedError: An input, the device or the service was closed.
        """
        if out is not None:
            self._check_out(out, donate)
            result = self(*inputs, donate=donate, stream=stream, **named)
            return self._copied(result, out, stream)
        if donate is _NOTHING_DONATED and stream is None:
            outputs = self._call_prepared(inputs, named)
            if outputs is not NotImplemented:
                return outputs
        arguments, attrs = bind_arguments(self.definition, inputs, named)
        return self._run(arguments, attrs, donate, stream)

    def run(
        self,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        *,
        donate: Sequence[DeviceArray] = _NOTHING_DONATED,
        stream: Stream | None = None,
        out: DeviceArray | None = None,
    ) -> Any:
        """Compute it with inputs and attributes apart, whatever their names; see `__call__`."""
        if out is not None:
            self._check_out(out, donate)
            result = self.run(inputs, attrs, donate=donate, stream=stream)
            return self._copied(result, out, stream)
        if donate is _NOTHING_DONATED and stream is None:
            outputs = self._call_prepared(inputs, attrs)
            if outputs is not NotImplemented:
                return outputs
        arguments, _ = bind_arguments(self.definition, inputs, {})  # as many as there are
        return self._run(arguments, attrs, donate, stream)

    def _check_out(self, out: DeviceArray, donate: Sequence[DeviceArray]) -> None:
        """Refuse before the kernel runs, and inputs are given away, what no output can go to."""
        if not isinstance(out, DeviceArray) or not self._has_one_output:
            raise self._no_out()
        _ = out.address  # raises if it was closed
        if isinstance(donate, (list, tuple)) and any(each is out for each in donate):
            text = (
                f"{self.name}: out is donated, and would be closed; it may be an input without that"
            )
            raise InvalidArgumentError(text, operation=self.name)

    def _no_out(self) -> InvalidArgumentError:
        text = f"{self.name}: out takes an array of the device, for an operation of one output"
        return InvalidArgumentError(text, operation=self.name)

    def _copied(self, result: Any, out: DeviceArray, stream: Stream | None) -> DeviceArray:
        if not isinstance(result, DeviceArray):
            raise self._no_out()
        source, target = result.device_memory, out.device_memory
        if stream is None or result.device.is_host or source is None or target is None:
            out.copy_from(result)
            return out
        if (result.shape, result.dtype) != (out.shape, out.dtype):
            raise InvalidArgumentError(
                f"{self.name}: out is {out!r}, and the output {result!r}", operation=self.name
            )
        stream.memcpy_dtod(target, source)
        return out

    def _call_prepared(self, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Compute it in C where such a call was made before; else return NotImplemented."""
        calls = self._calls.get(attr_key(attrs) if attrs else ())
        if calls is None:
            return NotImplemented
        try:
            return call_prepared(calls, tuple(inputs))
        except ModularTFError as error:
            name_both(error, self.name)
            raise

    def _run(
        self,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        donate: Sequence[DeviceArray],
        stream: Stream | None,
    ) -> Any:
        """Compute it the general way; close what is donated once a kernel was called."""
        moment = self._runner.registry.moment  # first: what is looked up is of this one, or newer
        try:
            kernel, given = self._prepared(inputs, attrs, moment)
            flat = [
                each for group in given for each in (group if isinstance(group, list) else (group,))
            ]
            placed = [
                place_input(kernel.site, each, on_host=on_host)
                for each, on_host in zip(flat, kernel.host_inputs, strict=True)
            ]
            donated = frozenset[int]()
            if donate is not _NOTHING_DONATED:
                donated = donated_inputs(self.name, flat, donate)
            if stream is not None:  # on a host device too, where it would not be used
                kernel.site.checked_stream(stream)
            try:
                outputs = self._runner.run(kernel, placed, donated, stream)
            finally:
                for array in donate:
                    array.close()
        except ModularTFError as error:
            name_both(error, self.name)
            raise
        if all(map(_may_be_prepared, inputs)):
            self._prepare_calls(kernel, attrs, moment, inputs)
        return self._result(kernel.node, outputs)

    def explain(self, *inputs: Any, **named: Any) -> tuple[KernelCandidate, ...]:
        """Return each kernel of the operation with the reason for it or against it; runs nothing.

        Where no kernel of its own serves the call, those of a plugin's operation that computes it
        under another name come after them.

        Raises:
            InvalidArgumentError: As a call.
        """
        arguments, given = bind_arguments(self.definition, inputs, named)
        device = self._device_of(arguments)
        registry = self._runner.registry
        found: list[KernelCandidate] = []
        for definition, attrs in self._served_by(device, given):
            types = _types(_given(definition, arguments, attrs))
            node = build_node(definition, types, attrs, label=self.label)
            kernels, device_type = registry.kernels_of(node.op), device.device_type
            found += candidates(kernels, node, device_type, is_pluggable=not device.is_host)
            if any(each.is_selected for each in found):
                break
        return tuple(found)

    # -- steps of a call --------------------------------------------------------------------------

    def _device_of(self, inputs: Sequence[Any]) -> Device:
        if self._device is not None:
            return self._device
        found = {
            each.device.name: each.device
            for group in inputs
            for each in (group if isinstance(group, (list, tuple)) else (group,))
            if isinstance(each, (DeviceArray, Variable))
        }
        if len(found) > 1:
            text = f"{self.name}: the inputs are on {' and '.join(found)}"
            raise Violation(INPUTS_FIT, text).error(
                InvalidArgumentError, operation=self.name, hint="; copy them to one device"
            )
        device: Device = next(iter(found.values())) if found else self._default_device(self.name)
        return device

    def _prepared(
        self, inputs: Sequence[Any], attrs: Mapping[str, Any], moment: object
    ) -> tuple[PreparedKernel, list[Given | list[Given]]]:
        """Return the kernel object that serves a call, and the inputs as tensors.

        Raises NotFoundError if no kernel of the operation does, nor one of an alias.
        """
        device = self._device_of(inputs)
        site = self._runner.site_of(device)
        given = _given(self.definition, inputs, attrs)
        key = _types(given), attr_key(attrs)
        plan = self._plans.get(key)
        if plan is not None and plan.moment is moment:
            kernel = plan.kernel()
            if kernel is not None and kernel.site is site:
                return kernel, given
        failures = []
        for definition, values in self._served_by(device, attrs):
            if definition is not self.definition:
                given = _given(definition, inputs, values)
            types = _types(given)
            node = build_node(definition, types, values, label=self.label)
            try:
                kernel = self._runner.prepare(node, definition, site)
            except NotFoundError as error:
                if error.rule != KERNEL_MATCHES:
                    raise
                failures.append(error)
                continue
            if key[1] is not None and types == key[0]:
                if len(self._plans) >= _MOST_PLANS:
                    self._plans.clear()
                self._plans[key] = _Plan(moment, weakref.ref(kernel))
            return kernel, given
        package = package_for(self.name, device.device_type)
        if package and not self._runner.registry.kernels_of(self.name):
            failures[0].message += f"\n`modular-tf fetch {package}` brings such kernels."
            failures[0].strerror = failures[0].message
        raise failures[0]

    def _served_by(
        self, device: Device, attrs: Mapping[str, Any]
    ) -> Iterator[tuple[OpDefinition, Mapping[str, Any]]]:
        """Yield the operations that may compute this one on a device, each with its attributes."""
        registry = self._runner.registry
        types = device_types_of(device.device_type, is_pluggable=not device.is_host)
        has_own = _has_kernel(registry.kernels_of(self.name), types)
        if has_own:
            yield self.definition, attrs
        for alias in aliases_of(self.name):
            own = registry.find_definition(alias.own)
            if own is not None and _has_kernel(registry.kernels_of(alias.own), types):
                yield own, alias_attrs(alias, self.definition, own, attrs)
                has_own = True
        if not has_own:
            yield self.definition, attrs

    def _prepare_calls(
        self,
        kernel: PreparedKernel,
        attrs: Mapping[str, Any],
        moment: object,
        inputs: Sequence[Any],
    ) -> None:
        """Have later calls with such inputs and attributes run in C, where they can."""
        key = attr_key(attrs)
        known = [each for each in self._calls.get(key, ()) if each.moment is moment]
        if key is None or any(each.kernel() is kernel for each in known):
            return
        is_plain = self._has_one_output and len(kernel.node.output_types) <= 1
        stands_for = [
            each._data_type if isinstance(each, DeviceArray) else 0  # noqa: SLF001
            for each in inputs
        ]
        made = prepared_call(
            kernel, self._runner.registry, moment, stands_for,
            finish=None if is_plain else partial(self._result, kernel.node),
            default_device=None if self._device else partial(self._default_device, self.name),
        )  # fmt: skip
        if made is None:
            return
        if len(self._calls) >= _MOST_PLANS:
            self._calls.clear()
        self._calls[key] = (made, *known[: _MOST_CALLS - 1])

    def _result(self, node: Node, outputs: list[DeviceArray]) -> Any:
        """Return the outputs; those that only the operation of an alias has are left out."""
        definition = self.definition
        if self._has_one_output:
            return outputs[0] if definition.outputs else None
        values: list[Any] = [
            outputs[where.start : where.stop] if arg.is_list else outputs[where.start]
            for arg, where in zip(definition.outputs, node.output_ranges.values(), strict=False)
        ]
        if len(values) == 1:
            return values[0]
        return _result_type(tuple([arg.name for arg in definition.outputs]))(*values)

    def __repr__(self) -> str:
        where = "" if self._device is None else f" on {self._device.name}"
        return f"<Op {self.definition!r}{where}>"


def _has_kernel(kernels: Iterable[KernelRegistration], types: Sequence[str]) -> bool:
    return any(each.device_type in types for each in kernels)


@cache
def _result_type(names: tuple[str, ...]) -> Any:
    """Return the type of several outputs together; to make one takes 100 µs."""
    return namedtuple("Outputs", names, rename=True)  # noqa: PYI024  (by data)


def _given(
    definition: OpDefinition, inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> list[Given | list[Given]]:
    """Return the inputs as tensors: arrays first, since they determine the types of numbers."""
    known = _given_types(definition, attrs) if attrs else {}
    found: list[Any] = [None] * len(inputs)
    numbers = []
    for index, (arg, value) in enumerate(zip(definition.inputs, inputs, strict=True)):
        if is_number(value):
            numbers.append((index, arg, value))
        else:
            found[index] = _tensors(definition, arg, value, known)
    for index, arg, value in numbers:
        found[index] = _tensors(definition, arg, value, known)
    return found


def _types(given: Sequence[Given | list[Given]]) -> tuple[Any, ...]:
    return tuple([
        tuple([one.type for one in each]) if isinstance(each, list) else each.type for each in given
    ])  # fmt: skip


def _may_be_prepared(value: Any) -> bool:
    """Whether an input goes into a prepared call: one tensor, and not a number."""
    numpy = imported_numpy()
    return isinstance(value, DeviceArray) or (numpy is not None and type(value) is numpy.ndarray)


def _given_types(definition: OpDefinition, attrs: Mapping[str, Any]) -> dict[str, DataType]:
    """Return the types that the caller gives by name; they say what int8 is, or a number."""
    found = {}
    for name, value in attrs.items():
        attr = definition.attrs_by_name.get(name)
        if attr is not None and attr.kind == "type" and not attr.is_list:
            converted = convert_value(definition.name, attr, value)
            if isinstance(converted, DataType):
                found[name] = converted
    return found


def _tensors(
    definition: OpDefinition, arg: ArgDefinition, value: Any, known: dict[str, DataType]
) -> Given | list[Given]:
    """Return an input as tensors, whose type is `known` from then on."""
    name = arg.type_attr or ""
    expected = arg.type or known.get(name) or _default(definition, arg)
    if not arg.is_list:
        made = given_tensor(definition.name, arg, value, expected)
        if name:
            known.setdefault(name, made.type)
        return made
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes, memoryview)):
        text = f"{definition.name}: input {arg.name!r} ({arg.type_text}) expects a list of tensors"
        raise Violation(INPUTS_FIT, text).error(InvalidArgumentError, operation=definition.name)
    found: list[Any] = [None] * len(value)
    for numbers in (False, True):
        for index, each in enumerate(value):
            if is_number(each) is numbers:
                found[index] = given_tensor(definition.name, arg, each, expected)
                if name:
                    expected = expected or found[index].type
    if name:
        for each in found:
            known.setdefault(name, each.type)
    return found


def _default(definition: OpDefinition, arg: ArgDefinition) -> DataType | None:
    attr = definition.attrs_by_name.get(arg.type_attr or "")
    default = attr.default if attr is not None and attr.has_default else None
    return default if isinstance(default, DataType) else None
