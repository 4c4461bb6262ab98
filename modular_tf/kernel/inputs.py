"""The tensors that go into a call: what the caller gives, as kernels can read it."""

from __future__ import annotations

from array import array as elements_of
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.data_types import DATA_TYPES, DataType, by_name, imported_numpy
from modular_tf.device.arrays.array_content import (
    MOST_DIMENSIONS,
    NUMBERS,
    ArrayContent,
    content_of,
    content_of_numbers,
    flattened,
)
from modular_tf.device.device import DeviceArray
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.outputs import STRING, STRING_BYTES
from modular_tf.kernel.site import KernelInput
from modular_tf.kernel.variable import Variable
from modular_tf.native.ffi import ffi
from modular_tf.native.fresh_host_memory import address_of, fresh_host_memory
from modular_tf.rules import Violation
from modular_tf.rules.kernel import INPUTS_FIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modular_tf.kernel.op_definition import ArgDefinition, OpDefinition
    from modular_tf.kernel.site import KernelSite

__all__ = [
    "Given",
    "StringContent",
    "bind_arguments",
    "donated_inputs",
    "given_tensor",
    "is_number",
    "place_input",
]

_ALIGNMENT = 64  # of the memory of all tensors that kernels get


class StringContent(NamedTuple):
    """A tensor of strings; each element is a TF_TString that views a part of the text."""

    shape: tuple[int, ...]
    elements: memoryview  # their memory, aligned
    text: bytes


class Given(NamedTuple):
    """A tensor as the caller gave it; an `ArrayContent` is one of the host."""

    type: DataType
    shape: tuple[int, ...]
    source: DeviceArray | ArrayContent | StringContent | Variable


def bind_arguments(
    definition: OpDefinition, positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs of a call in the order of the definition, and its attributes.

    Raises InvalidArgumentError if there are too many inputs, too few, or one is given twice
    (KN-043).
    """
    if (
        len(positional) == len(definition.inputs)
        and named.keys() <= definition.attrs_by_name.keys()
    ):
        return list(positional), dict(named)
    names = [arg.name for arg in definition.inputs]
    attrs = {key.removesuffix("_") if key.removesuffix("_") in definition.attrs_by_name
             and key not in definition.attrs_by_name else key: value
             for key, value in named.items()}  # fmt: skip
    inputs = dict(zip(names, positional, strict=False))
    for name in names:
        for key in (name, f"{name}_"):
            if key in attrs and key not in definition.attrs_by_name:
                if name in inputs:
                    raise _misfit(definition, f"input {name!r} is given twice")
                inputs[name] = attrs.pop(key)
    missing = [name for name in names if name not in inputs]
    if len(positional) > len(names) or missing:
        found = f"{len(positional)} are given by position" if not missing else ""
        lacks = f"missing: {', '.join(missing)}" if missing else ""
        raise _misfit(definition, f"expects {definition!r}; {found or lacks}")
    return [inputs[name] for name in names], attrs


def _misfit(definition: OpDefinition, text: str) -> InvalidArgumentError:
    error: InvalidArgumentError = Violation(INPUTS_FIT, f"{definition.name}: {text}").error(
        InvalidArgumentError, operation=definition.name
    )
    return error


def given_tensor(op: str, arg: ArgDefinition, value: Any, expected: DataType | None) -> Given:
    """Return a caller's value as a tensor: an array, numbers or text, also in nested lists.

    `expected` is the type that numbers, or an array of plain integers for a quantized type, are to
    have; None where nothing determines that. Raises InvalidArgumentError if a number does not fit,
    or elements are of no type, TypeError for other values.
    """
    if isinstance(value, DeviceArray):
        if value._data_type:  # noqa: SLF001  (kernels set it)
            return Given(value.data_type, value.shape, value)
        return Given(_expected_or_own(value.dlpack_dtype, expected), value.shape, value)
    if isinstance(value, Variable):
        return Given(value.type if arg.is_ref else by_name("resource"), (), value)
    if _is_text(value, expected):
        text = _string_content(op, arg.name, value)
        return Given(STRING, text.shape, text)
    if is_number(value):
        try:
            kind, numbers = content_of_numbers(value, expected)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{op}: input {arg.name!r} ({arg.type_text}): {error.message}", operation=op
            ) from None
        return Given(kind, numbers.shape, numbers)
    try:
        content = content_of(value)
    except TypeError as error:
        raise TypeError(
            f"{op}: input {arg.name!r} ({arg.type_text}): expected an array, numbers or text,"
            f" found {type(value).__name__!r}"
        ) from error
    return Given(_expected_or_own(content.dtype, expected), content.shape, content)


def _is_text(value: Any, expected: DataType | None) -> bool:
    """Whether a caller's value is a tensor of strings; bytes are one where that is expected."""
    for _ in range(MOST_DIMENSIONS):
        if not isinstance(value, (list, tuple)):
            break
        if not value:
            return False
        value = value[0]
    if isinstance(value, str):
        return True
    if isinstance(value, bytes):
        return expected is STRING
    numpy = imported_numpy()  # an array of numpy's exists only where that was imported
    return numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "SUO"


def _string_content(op: str, name: str, value: Any) -> StringContent:
    """Return text as elements of a tensor; `str` becomes UTF-8, and what cannot, its bytes.

    The value is `str` or `bytes`, or nested lists or a numpy array of these. Raises
    InvalidArgumentError, which names the operation and the input, if an element is something else.
    """
    is_numpy = hasattr(value, "ravel")
    shape, found = (value.shape, value.ravel().tolist()) if is_numpy else flattened(value)
    texts = []
    for index, each in enumerate(found):
        if not isinstance(each, (str, bytes)):
            raise InvalidArgumentError(
                f"{op}: input {name!r}: expected str or bytes, found {type(each).__name__!r} as"
                f" element {index}",
                operation=op,
            )
        texts.append(each.encode("utf-8", "surrogateescape") if isinstance(each, str) else each)
    text = b"".join(texts)
    address = address_of(text)
    words = elements_of("Q")
    for each in texts:
        words.extend((len(each) << 2 | 3, address, 0))  # 3: a view
        address += len(each)
    elements = fresh_host_memory(len(texts) * STRING_BYTES)
    elements[:] = words.tobytes()
    return StringContent(shape, elements, text)


_BY_DLPACK = {
    each.dlpack: each for each in reversed(DATA_TYPES) if each.dlpack and not each.is_quantized
}


def _expected_or_own(dlpack: tuple[int, int, int], expected: DataType | None) -> DataType:
    if expected is not None and expected.dlpack == dlpack:
        return expected  # qint8 is int8 for numpy
    found = _BY_DLPACK.get(dlpack)
    if found is None:
        raise InvalidArgumentError(f"elements of DLPack type {dlpack} have no type for kernels")
    return found


def is_number(value: Any, depth: int = 0) -> bool:
    """Whether a value, or all in its lists, are numbers without a type; numpy's have one."""
    if isinstance(value, (list, tuple)):
        return depth < MOST_DIMENSIONS and all(is_number(each, depth + 1) for each in value)
    return isinstance(value, NUMBERS) and not hasattr(value, "dtype")


def place_input(site: KernelSite, given: Given, *, on_host: bool) -> KernelInput:
    """Return a tensor in the memory where a kernel wants it, copied only if it has to be.

    Raises InvalidArgumentError if it is on another device.
    """
    source = given.source
    if isinstance(source, Variable):
        return KernelInput(0, 0, (), given.type, True, source, source.open_native())  # noqa: FBT003
    if not isinstance(source, DeviceArray):
        if on_host or site.is_host or isinstance(source, StringContent):
            return _on_host(given, source)
        return _on_device(given, site.device.put(source))
    if source._executor is not site.executor:  # noqa: SLF001  (of this package)
        there, here = source.device.name, site.device.name
        other = "that of another plugin service" if there == here else here
        raise InvalidArgumentError(
            f"an input is on {there}, and the kernel works on {other}; give array.copy_to(device)"
        )
    made = _on_device(given, source, is_on_host=site.is_host)
    is_aligned = made.address % _ALIGNMENT == 0 or not made.n_bytes  # a part may begin anywhere
    if site.is_host and is_aligned:
        return made
    if site.is_host or on_host:
        return _on_host(given, content_of(source.to_host()))
    memory = source.device_memory
    if memory is None or (memory.is_borrowed and not is_aligned):  # pinned memory, or a part
        return _on_device(given, source.copy_to(site.device))
    return made


def _on_device(given: Given, array: DeviceArray, *, is_on_host: bool = False) -> KernelInput:
    memory = array.device_memory
    hold = None if memory is None else memory.hold
    address, kept = array.address, (array, hold)
    return KernelInput(address, array.nbytes, given.shape, given.type, is_on_host, kept)


def _on_host(given: Given, content: ArrayContent | StringContent) -> KernelInput:
    if isinstance(content, StringContent):
        elements, text = content.elements, content.text
        address, size = address_of(elements), len(elements)
        return KernelInput(address, size, content.shape, STRING, True, [elements, text])  # noqa: FBT003
    data = content.bytes_in_layout(is_padded=True)
    view = ffi.from_buffer("char[]", data)
    address = int(ffi.cast("uintptr_t", view))
    size = len(view)
    kept: Any = view
    if address % _ALIGNMENT and size:
        kept = fresh_host_memory(size)
        kept[:] = memoryview(data).cast("B")
        address = int(ffi.cast("uintptr_t", ffi.from_buffer("char[]", kept)))
    return KernelInput(address, size, given.shape, given.type, True, kept)  # noqa: FBT003


def donated_inputs(op: str, flat: Sequence[Given], donate: Sequence[DeviceArray]) -> frozenset[int]:
    """Return the indices of donated inputs, but of those that others view: they stay as they are.

    Raises InvalidArgumentError if `donate` is no list, or one of it is no input, or two of them.
    """
    if not isinstance(donate, (list, tuple)):
        found = "one array" if isinstance(donate, DeviceArray) else repr(type(donate).__name__)
        text = f"{op}: donate takes a list of arrays; found {found}: give donate=[array]"
        raise InvalidArgumentError(text, operation=op)
    indices = []
    for array in donate:
        at = [index for index, each in enumerate(flat) if each.source is array]
        if len(at) != 1:
            shown = f"{type(array).__name__!r} object"
            hint = "; an array is put there by device.put(array)"
            if isinstance(array, DeviceArray):
                shown, hint = repr(array), ""
            found = f"{shown} is {f'{len(at)} inputs' if at else 'no input'} of this call"
            text = f"{op}: a donated array must be one input, an array of the device; {found}{hint}"
            raise InvalidArgumentError(text, operation=op)
        if not array.may_be_seen:  # others must see the memory unchanged
            indices += at
    return frozenset(indices)
