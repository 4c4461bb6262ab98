"""Run scenarios of the probe in TensorFlow: `in_tensorflow.py PROBE LOG NAMES`."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import records  # noqa: E402
import scenarios  # noqa: E402

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import attr_value_pb2  # noqa: E402
from tensorflow.python.eager import context, execute  # noqa: E402
from tensorflow.python.framework import load_library, op_def_library, op_def_registry  # noqa: E402


def main(probe: str, log: Path, names: list[str]) -> None:
    load_library.load_pluggable_device_library(probe)
    for scenario in scenarios.SCENARIOS:
        if scenario.name in names:
            records.append(log, records.SCENARIO + scenario.name)
            _run(scenario, log)
    records.append(log, records.SCENARIO + records.END)


def _run(scenario: scenarios.Scenario, log: Path) -> None:
    threads = [
        threading.Thread(target=_calls, args=(scenario, log)) for _ in range(scenario.threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _calls(scenario: scenarios.Scenario, log: Path) -> None:
    made = _in_graph if scenario.graph else _eagerly
    for call in scenario.calls:
        records.append(log, f"outcome\t{_outcome(made, call)}")


def _outcome(made: Any, call: scenarios.Call) -> str:
    try:
        return records.shown("OK", [np.asarray(output) for output in made(call)])
    except tf.errors.OpError as error:
        return f"{records.CODES[error.error_code]} -- {_first_line(error)}"


def _first_line(error: Any) -> str:
    """Return what the runtime said, without the lines of Python that made a graph."""
    text: str = error.message.partition("\nNode: ")[2].partition("\n")[2] or error.message
    return text.splitlines()[0]


def _eagerly(call: scenarios.Call) -> list[Any]:
    inputs, inferred = _flat(call)
    attrs = [part for item in {**_attrs(call), **inferred}.items() for part in item]
    outputs = scenarios.OUTPUTS.get(call.op, 1)
    with tf.device("CPU:0"):
        return execute.execute(
            f"MtfProbe{call.op}".encode(), outputs, inputs, tuple(attrs), context.context()
        )


def _flat(call: scenarios.Call) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs in a row, and the attributes that follow from them."""
    flat: list[Any] = []
    for value in call.inputs:
        flat += map(tf.constant, value if isinstance(value, tuple) else [value])
    return flat, _INFERRED.get(call.op, _nothing)(*flat)


def _nothing(*_inputs: Any) -> dict[str, Any]:
    return {}


_INFERRED = {
    "Object": lambda x: {"T": x.dtype.as_datatype_enum},
    "HostArgs": lambda *_inputs: {"N": 2},
    "Lists": lambda *inputs: {"N": 2, "L": [value.dtype.as_datatype_enum for value in inputs[3:5]]},
    "Inferred": lambda *inputs: {
        "T": inputs[0].dtype.as_datatype_enum,
        "N": 2,
        "L": [value.dtype.as_datatype_enum for value in inputs[3:5]],
    },
}


def _attrs(call: scenarios.Call) -> dict[str, Any]:
    return {name: _attr(value) for name, value in call.attrs.items()}


def _attr(value: Any) -> Any:
    if isinstance(value, list):
        return [_attr(element) for element in value]
    if isinstance(value, scenarios.DType):
        return tf.as_dtype(value.name).as_datatype_enum
    if isinstance(value, scenarios.Shape):
        return value.dims and tf.TensorShape([None if size < 0 else size for size in value.dims])
    if isinstance(value, scenarios.Tensor):
        return tf.make_tensor_proto(np.array(value.values, np.float32))
    return value


def _in_graph(call: scenarios.Call) -> list[Any]:
    with tf.Graph().as_default() as graph, tf.device("CPU:0"):
        made = _node(graph, call)
        with tf.compat.v1.Session(graph=graph, config=_as_written()) as session:
            return session.run(made if isinstance(made, list) else [made])


def _node(graph: Any, call: scenarios.Call) -> Any:
    names = {"Forward": ("a", "b", "i"), "Run": ("x",)}.get(call.op, ())
    inputs = dict(zip(names, map(_graph_input, call.inputs), strict=True))
    label = attr_value_pb2.AttrValue(s=call.label.encode())
    scope = graph._attr_scope({"_kernel": label}) if call.label else nullcontext()
    with scope:
        return op_def_library.apply_op(f"MtfProbe{call.op}", **inputs, **_graph_attrs(call))


def _graph_input(value: Any) -> Any:
    if isinstance(value, scenarios.Source):
        return op_def_library.apply_op("MtfProbeSource", case=value.case)
    return tf.constant(value)


def _graph_attrs(call: scenarios.Call) -> dict[str, Any]:
    definition = op_def_registry.get(f"MtfProbe{call.op}")
    defaults = {attr.name: None for attr in definition.attr if attr.HasField("default_value")}
    given = {name: _with_function(value) for name, value in _attrs(call).items()}
    return {**defaults, **given}


def _with_function(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_function(element) for element in value]
    if isinstance(value, scenarios.Function):
        made = tf.function(lambda: tf.constant(1.0)).get_concrete_function()
        made.add_to_graph(tf.compat.v1.get_default_graph())
        return attr_value_pb2.NameAttrList(name=made.name)
    return value


def _as_written() -> Any:
    """Return a configuration in which no optimizer changes the graph."""
    config = tf.compat.v1.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
