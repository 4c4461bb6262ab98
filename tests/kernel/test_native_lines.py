"""The native code makes of the specifications of an operation the line that the table has.

The specifications are made from the table, in the grammar in which plugins write them.
"""

from __future__ import annotations

import pytest

from modular_tf.kernel.canonical_line import read_op_definition
from modular_tf.kernel.standard_ops import standard_ops
from tests.fixtures.op_definitions import register
from tests.kernel.canonical_writer import canonical_line

OK = 0
SUFFIX = "OfTheTable"  # an operation has one definition per process, and other tests define some


def _quoted(text):
    content = text.encode("utf-8", "surrogateescape")
    return "'" + "".join(map(_character, content)) + "'"


def _character(byte):
    return chr(byte) if byte < 0x80 and chr(byte).isalnum() else f"\\{byte:03o}"


def _shape(sizes):
    if sizes is None:
        return "{ unknown_rank: true }"
    return f"{{ {' '.join(f'dim {{ size: {size} }}' for size in sizes)} }}"


WRITERS = {
    "string": _quoted,
    "bool": lambda value: "true" if value else "false",
    "type": lambda value: f"DT_{value.name.upper()}",
    "shape": _shape,
    "tensor": lambda value: value.text,
    "func": lambda value: f"{{ name: {_quoted(value.name)} }}",
}


def _attr_spec(attr):
    write = WRITERS.get(attr.kind, repr)
    kind = attr.kind
    if attr.allowed is not None:
        values = (_quoted(each) if kind == "string" else each.name for each in attr.allowed)
        kind = f"{{ {', '.join(values)} }}"
    spec = f"{attr.name}: list({kind})" if attr.is_list else f"{attr.name}: {kind}"
    if attr.minimum is not None:
        spec += f" >= {attr.minimum}"
    if not attr.has_default:
        return spec.encode()
    if not attr.is_list:
        return f"{spec} = {write(attr.default)}".encode()
    return f"{spec} = [{', '.join(map(write, attr.default))}]".encode()


def _arg_spec(arg):
    element = arg.type_attr or arg.type_list_attr or arg.type.name
    text = f"{arg.number_attr} * {element}" if arg.number_attr else element
    return f"{arg.name}: {f'Ref({text})' if arg.is_ref else text}".encode()


def _registered(definition):
    return register(
        f"{definition.name}{SUFFIX}".encode(),
        [_attr_spec(each) for each in definition.attrs],
        [_arg_spec(each) for each in definition.inputs],
        [_arg_spec(each) for each in definition.outputs],
    )


def _without_name_and_flags(line):
    return line.split("|")[2:]


@pytest.mark.parametrize("initial", sorted({name.strip("_")[0] for name in standard_ops()}))
def test_specifications_of_standard_operations_give_the_lines_of_the_table(initial):
    table = standard_ops()
    for name in table:
        if name.strip("_")[0] == initial:
            definition = table.get(name)
            registered = _registered(definition)
            assert (registered.code, registered.message) == (OK, "")
            expected = _without_name_and_flags(canonical_line(definition))
            assert _without_name_and_flags(registered.line) == expected
            assert canonical_line(read_op_definition(registered.line)) == registered.line


def test_what_the_table_lacks_is_read_as_the_native_code_writes_it():
    attrs = [
        rb"s: string = '|;\"\\\n\377'",
        b"f: list(float) = [0.1, 1e-7, -inf, nan, 3.4028235e38, 1e16]",
        b"h: list(shape) = [{unknown_rank: true}, {}, {dim {size: -1}}]",
        b"t: tensor = { dtype: DT_FLOAT tensor_shape {} float_val: 1 }",
        b"g: list(func) = [{name: 'f'}]",
        b"i: int >= -3 = -2",
        b"l: list({'a', 'b'}) >= 1 = ['b']",
        b"n: int",
    ]
    registered = register(b"EveryKindOfValue", attrs, [b"x: Ref(n * bfloat16)"])
    definition = read_op_definition(registered.line)

    assert (registered.code, registered.message) == (OK, "")
    assert canonical_line(definition) == registered.line
    assert definition.attrs_by_name["s"].default == '|;"\\\n\udcff'
    assert definition.attrs_by_name["n"].minimum == 1
