"""The calls of the probe's ops, which both hosts make; needs numpy only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class DType:
    """An attribute of the kind `type`, by numpy's name."""

    name: str


@dataclass(frozen=True)
class Shape:
    """An attribute of the kind `shape`; None: its rank is unknown."""

    dims: tuple[int, ...] | None


@dataclass(frozen=True)
class Tensor:
    """An attribute of the kind `tensor`."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class Function:
    """An attribute of the kind `func`."""

    name: str


@dataclass(frozen=True)
class Source:
    """An input that nobody but the call holds: the output of `MtfProbeSource` with this case."""

    case: str


@dataclass(frozen=True)
class Call:
    """One call of an op.

    Attributes:
        op: Its name behind `MtfProbe`.
        inputs: An array or a `Source` each, a tuple of them for an argument of several tensors.
        attrs: What is not inferred from the inputs.
        label: Which kernels are asked for.
    """

    op: str
    inputs: tuple[Any, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True)
class Scenario:
    """Calls that belong together.

    Attributes:
        name: Unique.
        calls: In this order.
        graph: TensorFlow can do it in a graph only.
        ends: TensorFlow ends the process, or may.
        threads: How many threads make the calls at the same time.
    """

    name: str
    calls: tuple[Call, ...]
    graph: bool = False
    ends: bool = False
    threads: int = 1


OUTPUTS = {"HostArgs": 2, "Lists": 5}  # of ops that have not one

X = np.array([1, 2, 3], np.float32)
EMPTY = np.zeros((0, 3), np.float32)
MATRIX = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
OTHER = np.array([[9, 8, 7], [6, 5, 4]], np.float32)
INTEGERS = np.array([[1, 2, 3], [4, 5, 6]], np.int32)

ATTRIBUTES: dict[str, Any] = {
    "word": "abc",
    "number": 5,
    "big_number": 2**40,
    "ratio": 1.5,
    "flag": True,
    "kind": DType("float64"),
    "form": Shape((2, -1)),
    "unknown_form": Shape(None),
    "strings": ["ab", "", "cde"],
    "numbers": [3, -4, 5],
    "big_numbers": [2**40 + 1, 2**31],
    "ratios": [0.5, 2.0],
    "flags": [True, False, True],
    "kinds": [DType("float32"), DType("int64")],
    "forms": [Shape((2, 3)), Shape(None), Shape(())],
    "no_numbers": [],
    "no_strings": [],
}


def _registration() -> list[Scenario]:
    return [
        Scenario("registered twice", (Call("Twice"),)),
        Scenario("constraint of an unknown attribute", (Call("UnknownAttr"),)),
        Scenario("host argument that the op lacks", (Call("UnknownArg", (X,)),)),
        Scenario("without create", (Call("WithoutCreate"),)),
        Scenario("without delete", (Call("WithoutDelete"),)),
    ]


def _selection() -> list[Scenario]:
    def of(name: str, op: str, label: str = "", **attrs: Any) -> Scenario:
        call = Call(op, attrs=attrs, label=label)
        return Scenario(f"selection: {name}", (call,), graph=bool(label))

    double, int32, int64 = DType("float64"), DType("int32"), DType("int64")
    return [
        of("highest priority", "Priority"),
        of("negative priorities", "NegativePriority"),
        of("tie", "Tie"),
        of("tie of a constraint with none", "TieByConstraint"),
        of("no tie where the constraint fails", "TieByConstraint", T=double),
        of("DEFAULT where no constraint holds", "Default"),
        of("device before DEFAULT", "Default", T=double),
        of("two DEFAULT kernels", "TwoDefaults"),
        of("DEFAULT with a constraint that fails", "DefaultConstraint"),
        of("DEFAULT with a constraint that holds", "DefaultConstraint", T=int32),
        of("DEFAULT with a label", "DefaultLabel", label="fast"),
        of("DEFAULT with a label that is not asked for", "DefaultLabel"),
        of("first constraint", "Constraint"),
        of("second constraint", "Constraint", T=double),
        of("one of two constraints", "Constraint", T=int32),
        of("both of two constraints", "Constraint", T=int32, U=int64),
        of("two types of one attribute", "Contradiction"),
        of("two types of one attribute, the other", "Contradiction", T=double),
        of("one type twice", "SameTwice"),
        of("list, all equal", "ListConstraint", L=[DType("float32"), DType("float32")]),
        of("list, one other", "ListConstraint", L=[DType("float32"), double]),
        of("list, empty", "ListConstraint"),
        of("constraint after one that was refused", "RefusedConstraint"),
        of("constraint after one that was refused, failing", "RefusedConstraint", T=double),
        of("constraint of a missing attribute", "MissingConstraint"),
        of("constraint of an int", "KindOfConstraint"),
        of("no label", "Label"),
        of("label", "Label", label="fast"),
        of("label that nobody has", "Label", label="slow"),
        of("device type in lower case", "LowerCase"),
        of("other device type", "OtherDevice"),
        of("no kernel", "NoKernel"),
        of("no definition", "NoDefinition"),
    ]


def _attributes() -> list[Scenario]:
    rare = {
        "tensor": Tensor((1, 2, 3)),
        "tensors": [Tensor((1,)), Tensor((2, 3))],
        "function": Function("F"),
        "functions": [Function("F"), Function("F")],
    }
    one = np.array([1], np.float64)
    inferred = (one, (one, one), (X, INTEGERS))
    return [
        Scenario("attributes", (Call("Attributes", attrs=ATTRIBUTES),)),
        Scenario("attributes of rare kinds", (Call("RareAttributes", attrs=rare),), graph=True),
        Scenario("attributes that are inferred", (Call("Inferred", inferred),)),
    ]


def _run(case: str, x: Any = X, *, ends: bool = False, graph: bool = False) -> Scenario:
    call = Call("Run", (x,), {"case": case})
    return Scenario(f"execution: {case}", (call,), ends=ends, graph=graph)


_CASES = (
    "inputs",
    "handles",
    "allocate",
    "allocate empty",
    "allocate scalar",
    "allocate after a failure",
    "allocate too much",
    "set",
    "set other type",
    "set input",
    "unset",
    "mutable",
    "temporaries",
    "temporary too much",
    "host memory",
    "names",
    "ids",
    "stream",
    "first failure",
    "failure then ok",
    "failure of ok",
    "failure with outputs",
    "failure and other type",
)
_ENDING_CASES = (
    "allocate negative",
    "allocate overflow",
    "set twice",
    "set then allocate",
    "allocate then set",
    "mutable unset",
    "temporary negative",
    "temporary objects",
    "expected outside",
    "expected negative",
    "datatype outside",
    "requested outside",
    "throw",
)


def _execution() -> list[Scenario]:
    text = np.array([b"abc", b"de"], object)
    arguments = ((INTEGERS, INTEGERS), X)
    lists = (X, (X, MATRIX), (np.array([1.5]), INTEGERS), np.array(4, np.int32))
    keep, kept = (Call("Run", (X,), {"case": case}) for case in ("keep", "kept"))
    ids = Call("Run", (X,), {"case": "ids"})
    empty = Call("Run", (EMPTY,), {"case": "handles"})
    unset = Call("Run", (EMPTY,), {"case": "unset"})
    in_memory = Call("Lists", lists, {"case": "host memory", "M": 2})
    ranges = Call("Lists", lists, {"case": "ranges", "M": 2})
    return [
        *(_run(case) for case in _CASES),
        *(_run(case, ends=True) for case in _ENDING_CASES),
        Scenario("execution: input without elements", (empty,)),
        Scenario("execution: unset in a graph", (_run("unset").calls), graph=True),
        Scenario("execution: unset for an input without elements", (unset,)),
        Scenario("execution: an input that is kept", (keep, kept)),
        Scenario("execution: ids of two steps", (ids, ids)),
        Scenario("execution: lists", (ranges,)),
        Scenario("execution: memory of lists", (in_memory,)),
        Scenario("execution: strings", (Call("Strings", (text,), {"case": "host memory"}),)),
        Scenario(
            "execution: host arguments", (Call("HostArgs", arguments, {"case": "host memory"}),)
        ),
    ]


def _tensors() -> list[Scenario]:
    def of(case: str, *, ends: bool = False) -> Scenario:
        return Scenario(f"tensors: {case}", (Call("Tensors", attrs={"case": case}),), ends=ends)

    cases = ("new", "allocate", "dims", "bitcast", "strings", "buffers")
    return [*map(of, cases), of("negative", ends=True), of("dim outside", ends=True)]


def _forwarding() -> list[Scenario]:
    def of(case: str, a: Any, b: Any = OTHER, *, ends: bool = False) -> Scenario:
        held = isinstance(a, np.ndarray)
        call = Call("Forward", (a, b, INTEGERS), {"case": case})
        source = "an input that is held" if held else a.case
        return Scenario(f"forwarding: {case}, {source}", (call,), graph=not held, ends=ends)

    output = Source("output")
    sources = ("output", "temporary", "allocated", "new", "copied")
    on_output = ("reshaped", "fewer elements", "other type first", "nothing", "held")
    outside = ("outside", "negative", "allocated")
    return [
        of("first", MATRIX),
        *(of("first", Source(source)) for source in sources),
        *(of(case, output) for case in on_output),
        of("either", output, Source("output")),
        of("without answer", output),
        of("other output", output),
        of("negative output", output),
        *(of(case, MATRIX, ends=True) for case in outside),
    ]


def _lifetime() -> list[Scenario]:
    def made(x: Any, **attrs: Any) -> Call:
        return Call("Object", (x,), attrs)

    kinds = (made(X), made(MATRIX), made(X, number=1), made(X, number=2), made(INTEGERS), made(X))
    asynchronous = ("inside", "thread", "failure inside", "failure on thread", "unset")
    return [
        *(
            Scenario(f"async: {case}", (Call("Async", attrs={"case": case}),))
            for case in asynchronous
        ),
        Scenario("lifetime: kernel objects", kinds),
        Scenario("lifetime: create fails", (Call("FailingCreate"),)),
        Scenario("lifetime: create reports OK as a failure", (Call("FailingCreateWithOk"),)),
        Scenario("lifetime: one object in two threads", (Call("Together"),), threads=2),
    ]


SCENARIOS: tuple[Scenario, ...] = (
    *_registration(),
    *_selection(),
    *_attributes(),
    *_execution(),
    *_tensors(),
    *_forwarding(),
    *_lifetime(),
)
