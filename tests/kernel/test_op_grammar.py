"""Specifications of ops are read in full, and what is wrong with one is reported with its place."""

from __future__ import annotations

import pytest

from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.op_definition import OpDefinition
from modular_tf.kernel.op_grammar import read_op_definition
from tests.fixtures.op_definitions import register
from tests.kernel.spec_writer import arg_spec, attr_spec, record

INVALID_ARGUMENT = 3
NUMBERS = (
    "float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,bfloat16,qint16,"
    "quint16,uint16,complex128,half,uint32,uint64"
)
REAL_NUMBERS = "float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64"
QUANTIZED = "qint8,quint8,qint32,qint16,quint16"


def read(*specs, name="Op"):
    """Read a definition of specifications, each after its letter."""
    return read_op_definition("\0".join([name, "", *specs]))


ATTRS = {
    # types
    " a_B9 \t:\n list ( int ) ": "a_B9:list(int)",
    # sets
    "a: numbertype": f"a:{{{NUMBERS}}}",
    "a: numerictype": f"a:{{{NUMBERS}}}",
    "a: realnumbertype": f"a:{{{REAL_NUMBERS}}}",
    "a: realnumerictype": f"a:{{{REAL_NUMBERS}}}",
    "a: quantizedtype": f"a:{{{QUANTIZED}}}",
    "a: {float32, float64, float16}": "a:{float,double,half}",
    "a: {quantizedtype, float}": f"a:{{{QUANTIZED},float}}",
    "a: {float, resource, variant,}": "a:{float,resource,variant}",
    "a: list({float,half})": "a:list({float,half})",
    "a: {'SAME',}": 'a:{"SAME"}',
    "a: list({'x', 'y'}) >= 2": 'a:list({"x","y"})>=2',
    # minima
    "a: list(int) >= 1 = [1, 2]": "a:list(int)>=1=[1,2]",
    # defaults
    "a: int = -9223372036854775808": "a:int=-9223372036854775808",
    "a: int = 0x1F": "a:int=31",
    "a: int = 017": "a:int=15",
    "a: float = 0.1": "a:float=0.1",
    "a: float = -1.5f": "a:float=-1.5",
    "a: float = 123456789": "a:float=123456790.0",
    "a: float = 1e99": "a:float=inf",
    "a: float = -inf": "a:float=-inf",
    "a: float = Infinity": "a:float=inf",
    "a: bool = False": "a:bool=false",
    "a: string = 'it''s' \"x\"": 'a:string="itsx"',
    "a: string = '\"\\\\'": r'a:string="\042\134"',
    "a: string = '\\n\\x7c\\073;|\\101'": r'a:string="\012|;;|A"',
    r"a: string = '|;\"\\\n\377'": r'a:string="|;\042\134\012\377"',
    "a: list(type) = [DT_FLOAT, 'DT_INT32', half]": "a:list(type)=[float,int32,half]",
    "a: shape = {dim{size:2} dim { size: -1 }}": "a:shape={dim{size:2}dim{size:-1}}",
    "a: shape = {dim:{size:2, name:'n'}; dim <size:3>}": "a:shape={dim{size:2}dim{size:3}}",
    "a: shape = {dim: [{size:2}, {size:3}], dim {}}": "a:shape={dim{size:2}dim{size:3}dim{size:0}}",
    "a: list(shape) = [{}, {unknown_rank:true}]": "a:list(shape)=[{},{unknown_rank:true}]",
    "a: tensor = {dtype: DT_INT32, a {} b: [1, 2]}": "a:tensor={dtype: DT_INT32, a {} b: [1, 2]}",
    "a: func = {name: 'f' attr {key: 'T' value {type: DT_FLOAT}}}": 'a:func={name:"f"}',
}


@pytest.mark.parametrize(("spec", "expected"), ATTRS.items())
def test_an_attribute_is_read(spec, expected):
    assert attr_spec(read(f"a{spec}").attrs[0]) == expected


def test_what_a_plugin_registers_is_read_and_a_fault_in_it_is_reported():
    found = register(b"Registered", [b"a: string = '\xff'"])

    assert (found.code, found.message) == (0, "")
    assert found.definition.attrs[0].default == "\udcff"
    found = register(b"Faulty", [b"a: int = 1.5"])
    place = 'op Faulty, attribute "a: int = 1.5", character 11: expected the end'
    assert (found.code, found.message[: len(place)]) == (INVALID_ARGUMENT, place)


BAD_ATTRS = [
    ("", 1, "the name of an attribute"),
    ("float: int", 1, "a name that no type has"),
    ("a int", 3, "':'"),
    ("a:", 3, "the type of an attribute"),
    ("a: list(int", 12, "')'"),
    ("a: {float", 10, "'}'"),
    ("a: {float, 'x'}", 12, "the name of a type"),
    ("a: {'x', float}", 10, "a string in quotes"),
    ("a: {'x", 5, "a string that ends"),
    ("a: string = 'x\ny'", 13, "a string that ends"),
    (r"a: string = '\q'", 14, "an escape of C"),
    (r"a: string = '\xg'", 16, "a byte's number"),
    (r"a: string = '\777'", 15, "a byte's number"),
    ("a: string = '\\", 14, "an escape of C"),
    ("a: int = 1 2", 12, "the end"),
    ("a: int = 9223372036854775808", 10, "a whole number"),
    ("a: int = 08", 10, "a whole number"),
    ("a: int >= x", 11, "a whole number"),
    ("a: float >= 1", 10, "no minimum"),
    ("a: list(int) >= -1", 17, "a length of at least 0"),
    ("a: int >= 2 = 1", 15, "a default of at least 2"),
    ("a: list(int) >= 2 = [1]", 21, "a default of a length of at least 2"),
    ("a: float = 1..2", 12, "a number"),
    ("a: bool = yes", 11, "true or false"),
    ("a: type = DT_QUUX", 11, "the name of a type"),
    ("a: list({'x'}) = ['x', 'y']", 18, "a default that is allowed"),
    ("a: list(int) = 1", 16, "'['"),
    ("a: list(int) = [1,]", 19, "a whole number"),
    ("a: shape = [2,-1]", 12, "a shape"),
    ("a: shape = {dim{size:-2}}", 22, "a size of at least -1"),
    ("a: shape = {dim{width:2}}", 23, "the value of size or name"),
    ("a: shape = {rank:2}", 18, "the value of dim or unknown_rank"),
    ("a: shape = {", 13, "a field or '}'"),
    ("a: shape = {unknown_rank:true dim{size:1}}", 12, "dimensions or no rank"),
    ("a: tensor = {dtype: }", 21, "a value"),
    ("a: tensor = " + "{a" * 40, 79, "fewer levels"),
    ("a: tensor = {a:" + "[" * 40, 48, "fewer levels"),
    ("a: func = 'f'", 11, "'{'"),
]


@pytest.mark.parametrize(("spec", "position", "expected"), BAD_ATTRS)
def test_a_faulty_attribute_is_refused(spec, position, expected):
    with pytest.raises(InvalidArgumentError) as raised:
        read(f"a{spec}")
    assert raised.value.message.startswith("op Op, attribute ")
    assert f", character {position}: expected {expected}" in raised.value.message


@pytest.mark.parametrize(
    ("start", "digits", "expected"),
    [
        ("a: int = ", "1" * 5000, "a whole number"),  # more than int() takes
        ("a: float = ", "1" * 500_000 + "x", "a number"),  # in time that grows with the length
    ],
    ids=["default", "float"],
)
def test_a_number_of_very_many_digits_is_refused(start, digits, expected):
    with pytest.raises(
        InvalidArgumentError, match=f"character {len(start) + 1}: expected {expected}"
    ):
        read_op_definition(record(f"Digits||{start}{digits}||"))


ATTRS_OF_ARGUMENTS = "aT: type", "aN: int >= 0", "aTs: list(type) >= 0", "as: string"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("x: float32", "x:float"),
        ("x: Ts", "x:Ts"),
        ("x: N * T", "x:N*T"),
        ("x: Ref ( uint8 )", "x:Ref(uint8)"),
        ("x: Ref(N * T)", "x:Ref(N*T)"),
    ],
)
def test_an_argument_is_read(spec, expected):
    assert arg_spec(read(*ATTRS_OF_ARGUMENTS, f"i{spec}").inputs[0]) == expected


@pytest.mark.parametrize(
    ("spec", "position", "expected"),
    [
        ("", 1, "the name of an argument"),
        ("x:", 3, "a type or the name of an attribute"),
        ("x: U", 4, "a type or an attribute of this op"),
        ("x: s", 4, "an attribute that is a type or a list of types"),
        ("x: T * T", 4, "an attribute that is an int"),
        ("x: N * Ts", 8, "one type behind a count"),
        ("x: Ref(T", 9, "')'"),
        ("x: T U", 6, "the end"),
        ("x: 2 * T", 4, "an attribute of this op"),
        ("out: T", 1, "a name that is not taken"),
    ],
)
def test_a_faulty_argument_is_refused(spec, position, expected):
    with pytest.raises(InvalidArgumentError) as raised:
        read(*ATTRS_OF_ARGUMENTS, "iout: T", f"o{spec}")
    assert raised.value.message.startswith(f'op Op, output "{spec}", ')
    assert f", character {position}: expected {expected}" in raised.value.message


@pytest.mark.parametrize(
    ("attr", "argument", "expected"),
    [
        ("N: int", "x: N * float", "N:int>=1"),
        ("T: list(type)", "x: T", "T:list(type)>=1"),
        ("T: list({float, half})", "x: T", "T:list({float,half})>=1"),
    ],
)
def test_counts_and_lists_of_types_are_at_least_1(attr, argument, expected):
    assert attr_spec(read(f"a{attr}", f"i{argument}").attrs[0]) == expected


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (["aa: int", "a a: float"], ", character 2: expected a name that is not taken in this op"),
        (["aN: int = 0", "ix: N * float"], "of at least 1"),
        (["aT: list(type) = []", "ix: T"], "of at least 1"),
    ],
)
def test_attributes_that_contradict_the_op_are_refused(specs, expected):
    with pytest.raises(InvalidArgumentError, match=expected):
        read(*specs)


@pytest.mark.parametrize(
    ("name", "position"),
    [("", 1), ("matMul", 1), ("A>b", 3), ("A|b", 2)],
)
def test_an_op_is_named_in_camel_case(name, position):
    for good in ("A", "MatMul2D", "__A", "Acme>Scale", "A_b"):
        assert read(name=good) == OpDefinition(good)
    with pytest.raises(InvalidArgumentError) as raised:
        read(name=name)
    shown = name.replace("|", "\\x7c")
    assert raised.value.message == (
        f'op "{shown}", character {position}: '
        "expected a name in CamelCase, such as MatMul or _FusedMatMul"
    )


def test_flags_say_what_an_op_is():
    found = read_op_definition("A\0SCU")
    assert found == OpDefinition(
        "A", is_stateful=True, is_commutative=True, allows_uninitialized_input=True
    )
    assert read_op_definition("A\0AD") == OpDefinition("A", is_aggregate=True, is_deprecated=True)


def test_definitions_with_what_is_no_number_can_be_equal():
    first, second = (read_op_definition(record("A||a:float=nan||")) for _ in range(2))

    assert first == second


def test_names_that_are_one_parameter_in_python_are_refused():
    with pytest.raises(InvalidArgumentError, match="found in and in_"):
        read_op_definition(record("A||in_:int|in:float|"))
