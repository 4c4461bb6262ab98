"""Print the definitions of all operations of a TensorFlow as JSON: facts, no documentation.

`scripts/write_standard_ops` runs this by the interpreter that has the TensorFlow. Types are numbers
of `TF_DataType`, strings are read byte by byte as Latin-1, and tensors are protobuf's text format.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

FLAGS = (
    "is_stateful",
    "is_commutative",
    "is_aggregate",
    "allows_uninitialized_input",
)
KINDS_OF_FIELDS = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}


def main() -> None:
    """Print the release and the operations."""
    session = import_module("tensorflow.python.client.pywrap_tf_session")
    definitions = import_module("tensorflow.core.framework.op_def_pb2")
    release = import_module("tensorflow").__version__
    ops = definitions.OpList.FromString(session.TF_GetBuffer(session.TF_GetAllOpList()))
    json.dump({"release": release, "ops": [_op(each) for each in ops.op]}, sys.stdout)


def _op(op: Any) -> dict[str, Any]:
    return {
        "name": op.name,
        "inputs": [_arg(each) for each in op.input_arg],
        "outputs": [_arg(each) for each in op.output_arg],
        "attrs": [_attr(each) for each in op.attr],
        "is_deprecated": op.HasField("deprecation"),
        **{flag: getattr(op, flag) for flag in FLAGS},
    }


def _arg(arg: Any) -> dict[str, Any]:
    return {
        "name": arg.name,
        "type": arg.type,
        "type_attr": arg.type_attr,
        "number_attr": arg.number_attr,
        "type_list_attr": arg.type_list_attr,
        "is_ref": arg.is_ref,
    }


def _attr(attr: Any) -> dict[str, Any]:
    is_list = attr.type.startswith("list(")
    kind = attr.type[len("list(") : -1] if is_list else attr.type
    has_default, has_allowed = attr.HasField("default_value"), attr.HasField("allowed_values")
    return {
        "name": attr.name,
        "kind": kind,
        "is_list": is_list,
        "allowed": _values(attr.allowed_values, kind, is_list=True) if has_allowed else None,
        "minimum": attr.minimum if attr.has_minimum else None,
        "default": _values(attr.default_value, kind, is_list=is_list) if has_default else None,
        "has_default": has_default,
    }


def _values(value: Any, kind: str, *, is_list: bool) -> Any:
    field = KINDS_OF_FIELDS[kind]
    if is_list:
        return [_value(each, kind) for each in getattr(value.list, field)]
    return _value(getattr(value, field), kind)


def _value(value: Any, kind: str) -> Any:
    if kind == "string":
        return value.decode("latin-1")
    if kind == "shape":
        return None if value.unknown_rank else [dim.size for dim in value.dim]
    if kind == "tensor":
        text_format = import_module("google.protobuf.text_format")
        return f"{{ {text_format.MessageToString(value, as_one_line=True)} }}"
    return value.name if kind == "func" else value


if __name__ == "__main__":
    main()
