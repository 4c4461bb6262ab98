"""Inputs and attributes of operations, as the words of `run` name them."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.cli.kernels.words import WordError, attributes, inputs, output_files
from modular_tf.kernel.canonical_line import read_op_definition
from modular_tf.kernel.op_definition import TensorText
from modular_tf.kernel.standard_ops import standard_ops

KINDS = (
    "Kinds||s:string;i:int;f:float;b:bool;t:type;h:shape;x:tensor;u:func;ls:list(string);"
    "li:list(int)>=2;lf:list(float);lb:list(bool);lt:list(type);lh:list(shape);"
    'one:string{"a","b"}||'
)


@pytest.fixture
def definition():
    return read_op_definition(KINDS, "a test")


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("s=a=b", "a=b"),
        ("s=", ""),
        ("i=-3", -3),
        ("i=0x10", 16),
        ("f=1e-3", 1e-3),
        ("f=inf", float("inf")),
        ("b=True", True),
        ("b=0", False),
        ("t=half", "half"),
        ("h=2,-1", [2, -1]),
        ("h=[]", []),
        ("h=?", None),
        ("u=body", "body"),
        ("ls=a, b", ["a", "b"]),
        ("ls=", []),
        ("li=[1,2,3]", [1, 2, 3]),
        ("lf=1,2.5", [1.0, 2.5]),
        ("lb=true,false", [True, False]),
        ("lt=float,int32", ["float", "int32"]),
        ("lh=[[2,-1],?,[]]", [[2, -1], None, []]),
        ("one=b", "b"),
    ],
)
def test_a_value_is_read_by_the_kind_of_its_attribute(definition, word, value):
    assert list(attributes([word], [definition]).values()) == [value]


@pytest.mark.parametrize(
    "word",
    [
        "i=1.5", "i=", "i=99999999999999999999", "f=x", "b=2", "t=flaot", "h=a", "li=1", "li=1,x",
        "lb=1,2", "lh=[[1]", "lh=1", "one=c", "nothing=1", "i",
    ],
)  # fmt: skip
def test_what_an_attribute_cannot_be_is_wrong_usage(definition, word):
    with pytest.raises(WordError, match=r"Kinds|NAME=VALUE"):
        attributes([word], [definition])


def test_a_tensor_is_read_from_a_file(definition, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))

    value = attributes([f"x={tmp_path / 'x.npy'}"], [definition])["x"]

    assert not isinstance(value, TensorText)
    assert value.tolist() == [0, 1, 2]


def test_attributes_of_an_operation_that_may_compute_it_are_known():
    one, other = standard_ops().get("MatMul"), read_op_definition("Own||own:int||", "a test")

    assert attributes(["own=2", "transpose_a=1"], [one, other]) == {"own": 2, "transpose_a": True}


def test_what_the_inputs_tell_is_no_attribute_to_give():
    with pytest.raises(WordError, match="has no attribute 'T'"):
        attributes(["T=float"], [standard_ops().get("MatMul")])


@pytest.mark.parametrize(
    ("op", "words", "expected"),
    [
        ("AddN", ["1", "2", "3"], [[1, 2, 3]]),
        ("AddN", ["inputs=1", "inputs=2"], [[1, 2]]),
        ("ConcatV2", ["1", "2", "axis=0"], [[1, 2], 0]),
        ("ConcatV2", ["1", "2", "0"], [[1, 2], 0]),
        ("MatMul", ["b=1", "2"], [2, 1]),
        ("ConcatV2", ["axis=0"], [[], 0]),
        ("NoOp", [], []),
        ("AddV2", ["true", "1.5"], [True, 1.5]),
    ],
)
def test_words_become_inputs(op, words, expected):
    assert inputs(words, standard_ops().get(op)) == expected


@pytest.mark.parametrize(
    ("words", "dtype"), [("[1,2]", "int32"), ("[1.5]", "float32"), ("[true]", "bool")]
)
def test_lists_of_numbers_have_the_types_of_tensorflow(words, dtype):
    (array,) = inputs([words], standard_ops().get("Relu"))

    assert array.dtype == dtype


def test_a_file_whose_name_is_a_number_or_has_an_equals_sign_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("7", "k=y"):
        with (tmp_path / name).open("wb") as stream:
            np.save(stream, np.float32(4))

    assert [float(each) for each in inputs(["7", "k=y"], standard_ops().get("AddV2"))] == [4, 4]


@pytest.mark.parametrize(
    ("op", "words"),
    [("NoOp", ["1"]), ("Neg", []), ("Neg", ["x=1", "x=2"])],
)
def test_inputs_that_do_not_fit_are_wrong_usage(op, words):
    with pytest.raises(WordError, match=f"{op} takes these inputs"):
        inputs(words, standard_ops().get(op))


def test_rows_of_different_lengths_are_wrong_usage():
    with pytest.raises(WordError, match="is no list of numbers"):
        inputs(["[[1,2],[3]]"], standard_ops().get("Relu"))


def test_a_list_of_outputs_takes_any_number_of_files():
    files = output_files(["a", "output=b", "c"], standard_ops().get("Split"))

    assert [(file.name, file.value) for file in files] == [
        (None, "a"),
        ("output", "b"),
        (None, "c"),
    ]
