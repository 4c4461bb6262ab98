"""`kernels`, `ops` and `run`, with the reference kernels for the host's processor."""

from pathlib import Path

import numpy as np
import pytest

from modular_tf.cli import kernels as kernel_commands
from modular_tf.cli.process import Exit
from modular_tf.kernel.op_definition import OpDefinition
from modular_tf.kernel.registration import KernelRegistration
from modular_tf.kernel.registry import KernelRegistry, PluginKernels
from modular_tf.kernel.standard_ops import standard_ops
from tests.contrib.built_plugin import built_plugin
from tests.fixtures.compiler import compile_object, link_library


@pytest.fixture
def with_kernels(mtf):
    """Run `modular-tf` with these words and the reference kernels."""
    library = built_plugin("host_kernels")

    def command(*words):
        return mtf("--plugin", library, *words)

    return command


@pytest.fixture
def matrices(tmp_path, monkeypatch):
    """Files `a.npy` and `b.npy` in the working directory, and what is in them."""
    monkeypatch.chdir(tmp_path)
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)
    np.save("a.npy", a)
    np.save("b.npy", b)
    return a, b


# -- kernels --------------------------------------------------------------------------------------


def test_kernels_are_listed_with_what_they_demand(with_kernels):
    rows = [line.split("\t") for line in with_kernels("kernels").lines]
    told = with_kernels("kernels", "--op", "MatMul", "--json").object
    first = told["kernels"][0]

    assert ["MatMul", "CPU", "T=float", "", "0", "", "host_kernels"] in rows
    assert {row[3] for row in rows if row[0] == "Sum"} == {"reduction_indices"}
    assert set(told) == {"schema_version", "kernels"}
    assert first.pop("name")
    assert first == {
        "op": "MatMul",
        "device_type": "CPU",
        "constraints": [{"attr": "T", "type": "float"}],
        "host_args": [],
        "priority": 0,
        "label": "",
        "asynchronous": False,
        "plugin": "host_kernels",
    }


@pytest.mark.parametrize(
    ("option", "key", "wanted", "other"),
    [
        ("--op", "op", "MatMul", "MatMull"),
        ("--device-type", "device_type", "CPU", "cpu"),
        ("--from", "plugin", "host_kernels", "host_device"),
    ],
)
def test_kernels_are_chosen_by_what_they_are_for(with_kernels, option, key, wanted, other):
    chosen = with_kernels("kernels", option, wanted, "--json").object["kernels"]
    none = with_kernels("kernels", option, other)

    assert {kernel[key] for kernel in chosen} == {wanted}
    assert (none.code, none.out) == (Exit.NOTHING, b"")
    assert "no such kernel" in none.err


@pytest.mark.parametrize("verb", ["kernels", "ops"])
def test_without_kernels_nothing_is_found(mtf, verb):
    plain, as_json = mtf(verb), mtf(verb, "--json")

    assert (plain.code, plain.out) == (Exit.NOTHING, b"")
    assert "no plugin brings kernels" in plain.err
    assert as_json.code == Exit.NOTHING
    assert as_json.object == {"schema_version": 1, verb: []}


# -- ops ------------------------------------------------------------------------------------------


def test_operations_are_listed_with_their_kernels(with_kernels, mtf):
    rows = [line.split("\t") for line in with_kernels("ops").lines]

    assert ["MatMul", "2", "CPU", "host_kernels", "", "TensorFlow 2.21.0"] in rows
    assert [row[0] for row in rows] == ["Add", "AddV2", "Cast", "MatMul", "Max", "Relu", "Sum"]
    assert with_kernels("ops", "--json").object["ops"][3] == {
        "name": "MatMul",
        "kernels": 2,
        "device_types": ["CPU"],
        "plugins": ["host_kernels"],
        "aliases": [],
        "source": "TensorFlow 2.21.0",
    }
    ended = mtf("ops", "--all")
    assert ended.code == 0
    assert len(ended.lines) == 1908
    assert "Abs\t0\t\t\t\tTensorFlow 2.21.0" in ended.lines


def test_an_operation_under_another_name_is_listed_with_that():
    registry = KernelRegistry()
    kernel = KernelRegistration("_ITEXMatMul", "CPU", plugin="vendor")
    unknown = KernelRegistration("Nameless", "CPU", plugin="vendor")
    registry.enter(PluginKernels("vendor", (kernel, unknown), (OpDefinition("Own"),)))

    listed = {op["name"]: op for op in kernel_commands._listed(registry, with_all=False)}

    assert set(listed) == {"MatMul", "_ITEXMatMul", "Nameless", "Own"}
    assert (listed["MatMul"]["kernels"], listed["MatMul"]["aliases"]) == (1, ["_ITEXMatMul"])
    assert (listed["Nameless"]["kernels"], listed["Nameless"]["source"]) == (1, None)
    assert listed["Own"]["kernels"] == 0


def test_an_operation_is_shown_in_full(with_kernels, mtf):
    lines = with_kernels("ops", "MatMul").lines

    assert lines[0].startswith("MatMul(a: T, b: T, *, transpose_a: bool = False")
    assert lines[0].endswith("-> product: T")
    assert "defined by\tTensorFlow 2.21.0" in lines
    assert "a\tinput\tT" in lines
    assert "transpose_a\tbool\tFalse\t" in lines
    assert any(line.startswith("T\ttype in {bfloat16, half") for line in lines)
    assert "MatMul\tCPU\tT=float\t\t0\t\thost_kernels\tCPU:0" in lines
    op = with_kernels("ops", "Sum", "--json").object["op"]

    assert op["source"] == "TensorFlow 2.21.0"
    assert op["outputs"] == [{"name": "output", "type": "T", "is_list": False, "is_ref": False}]
    attrs = {attr["name"]: attr for attr in op["attrs"]}
    assert attrs["Tidx"]["allowed"] == ["int32", "int64"]
    assert (attrs["Tidx"]["default"], attrs["Tidx"]["is_inferred"]) == ("int32", True)
    assert (attrs["keep_dims"]["kind"], attrs["keep_dims"]["default"]) == ("bool", False)
    assert {tuple(kernel["devices"]) for kernel in op["kernels"]} == {("CPU:0",)}
    without = mtf("ops", "Conv2D")
    assert (without.code, without.lines[-1]) == (0, "no plugin has a kernel of it")


@pytest.mark.parametrize("words", [("ops", "MatMull"), ("run", "MatMull")])
def test_an_unknown_operation_is_told_with_similar_ones(mtf, words):
    ended = mtf(*words)

    assert (ended.code, ended.out) == (Exit.NO, b"")
    assert "similar ones: MatMul" in ended.err
    assert "KN-040" in ended.err


BOTH = ("-i", "@a.npy", "-i", "@b.npy")

# -- run ------------------------------------------------------------------------------------------


def test_run_writes_and_shows_what_comes_out(with_kernels, matrices):
    a, b = matrices
    words = ("run", "MatMul", "--input", "@a.npy", "--input", "@b.npy", "--output", "c.npy")
    ended = with_kernels(*words)

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        "product\tfloat32\t(2, 4)\tCPU:0\tmin 3, max 12, mean 7.5\tc.npy",
    ]
    np.testing.assert_array_equal(np.load("c.npy"), a @ b)
    (output,) = with_kernels(*words, "--json").object["outputs"]
    assert output == {
        "name": "product",
        "dtype": "float32",
        "shape": [2, 4],
        "device": "CPU:0",
        "summary": {
            "first": [3.0, 3.0, 3.0, 3.0, 12.0, 12.0],
            "not_finite": 0,
            "min": 3.0,
            "max": 12.0,
            "mean": 7.5,
        },
        "file": "c.npy",
    }


def test_inputs_and_outputs_have_names_and_attributes_values(with_kernels, matrices):
    a, b = matrices
    ended = with_kernels(
        "run", "MatMul", "--input", "b=@a.npy", "--input", "a=@b.npy",
        "--attrs", '{"transpose_a": true, "transpose_b": true}',
        "--output", "product=c.npy", "--device", "/device:CPU:0",
    )  # fmt: skip

    assert ended.code == 0, ended.err
    np.testing.assert_array_equal(np.load("c.npy"), b.T @ a.T)


def test_numbers_and_lists_are_inputs_too(with_kernels, matrices):
    a, _ = matrices
    rows = with_kernels(
        "run", "Sum", "-i", "@a.npy", "-i", "[1]", "-a", '{"keep_dims": true}', "-o", "c.npy"
    )
    total = with_kernels("run", "AddV2", "-i", "@a.npy", "-i", "y=-0.5", "-o", "d.npy")

    assert (rows.code, total.code) == (0, 0), rows.err + total.err
    np.testing.assert_array_equal(np.load("c.npy"), a.sum(1, keepdims=True))
    np.testing.assert_array_equal(np.load("d.npy"), a - np.float32(0.5))
    # Lists have the types that TensorFlow gives them.
    for words, dtype in {"[1,2]": "int32", "[1.5]": "float32", "[3000000000]": "int64"}.items():
        ended = with_kernels("run", "AddV2", "-i", words, "-i", words)
        assert ended.lines[0].split("\t")[1] == dtype, ended.err


def test_arrays_come_from_files_and_go_there_by_name_and_in_order(matrices):
    import ml_dtypes

    np.save("half.npy", np.array([1.5, -2], ml_dtypes.bfloat16))
    read = kernel_commands.read_array("half.npy")
    assert (read.dtype, read.tolist()) == (ml_dtypes.bfloat16, [1.5, -2.0])

    arrays = {"output[0]": np.ones(1), "output[1]": np.zeros(1)}
    words = ["a.npy", "output[0]=b.npy", "c.npy"]
    files = kernel_commands._output_files(words, standard_ops().get("Split"))
    written, left = kernel_commands._write(arrays, files)
    assert written == {"output[1]": "a.npy", "output[0]": "b.npy"}
    assert left == ["c.npy"]  # none is left out
    assert [float(np.load(name)[0]) for name in ("a.npy", "b.npy")] == [0.0, 1.0]


def test_values_that_are_no_numbers_are_shown(with_kernels, matrices):
    np.save("a.npy", np.array([np.nan, np.inf, 1, 2, 3, 4, 5], np.float32))
    ended = with_kernels("run", "Relu", "-i", "@a.npy", "--json")

    summary = ended.object["outputs"][0]["summary"]
    assert summary["first"][:3] == ["nan", "inf", 1.0]
    assert (summary["not_finite"], summary["max"]) == (2, 5.0)


def test_explain_reports_each_kernel_and_runs_nothing(with_kernels, matrices):
    words = ("run", "MatMul", "-i", "@a.npy", "-i", "@a.npy", "--explain")  # shapes that do not fit
    ended = with_kernels(*words)

    assert ended.code == 0
    assert [line.split("\t")[:2] for line in ended.lines] == [
        ["yes", "matches; priority 0"],
        ["no", "T is DT_FLOAT, not DT_DOUBLE"],
    ]
    (first, second) = with_kernels(*words, "--json").object["candidates"]
    assert (first["selected"], first["op"], second["selected"]) == (True, "MatMul", False)

    ended = with_kernels("run", "MatMul", *BOTH, "--label", "x", "--explain")
    assert ended.code == Exit.NO
    assert {line.split("\t")[1] for line in ended.lines} == {"has label '', not 'x'"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-i", "a.npy"), "expected @FILE.npy or JSON"),
        (("-i", "b=x"), "expected @FILE.npy or JSON"),
        (("-i", "null"), "expected numbers or strings"),
        ((*BOTH, "-a", "transpose_a=true"), "expected a JSON object"),
        ((*BOTH, "-a", "[1]"), "expected a JSON object"),
        ((*BOTH, "-o", "x", "-o", "y"), "has 1 outputs, not 2"),
        ((*BOTH, "-o", "-"), "name a file"),
    ],
)
def test_words_that_cannot_be_read_are_wrong_usage(with_kernels, matrices, words, message):
    ended = with_kernels("run", "MatMul", *words)

    assert (ended.code, ended.out) == (Exit.USAGE, b"")
    assert message in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("MatMul", "-i", "@a.npy", "-i", "@missing.npy"), "missing.npy: "),
        (("MatMul", "-i", "@a.npy", "-i", "@text"), "is no array of numpy"),
        (("MatMul", *BOTH, "-i", "@a.npy"), "3 are given by position"),
        (("MatMul", "-i", "a=@a.npy", "-i", "a=@b.npy", "-i", "b=1"), "one array where their sha"),
        (("MatMul", *BOTH, "-o", "."), "directory"),
        (("Conv2D", *BOTH, "-a", '{"strides": [1, 1, 1, 1], "padding": "SAME"}'), "KN-034"),
    ],
)
def test_what_fails_is_no_with_a_reason(with_kernels, matrices, words, message, tmp_path):
    (tmp_path / "text").write_text("no array")

    ended = with_kernels("run", *words)

    assert (ended.code, ended.out) == (Exit.NO, b"")
    assert message in ended.err


def test_an_operation_takes_lists_of_tensors_and_tensors_as_attributes(mtf, matrices):
    concat, add, const = (standard_ops().get(name) for name in ("ConcatV2", "AddN", "Const"))
    words = '{"value": "@a.npy", "dtype": "float"}'
    attributes = kernel_commands._attributes(words, const)
    ended = mtf("run", "Const", "-a", words, "--device", "CPU:0", "--explain")

    assert kernel_commands._inputs(["values=1", "values=2", "axis=0"], concat)[0] == [[1, 2], 0]
    assert kernel_commands._inputs(["1"], add)[0] == [[1]]
    np.testing.assert_array_equal(attributes["value"], matrices[0])
    assert ended.code == Exit.NOTHING, ended.err  # all is understood, and no kernel is there
    assert "no plugin has a kernel of Const" in ended.err


def test_run_without_numpy_names_the_extra(mtf, monkeypatch):
    monkeypatch.setattr(kernel_commands, "find_spec", lambda name: None)
    ended = mtf("run", "MatMul")

    assert ended.code == Exit.NO
    assert "modular_tf[numpy]" in ended.err


# -- list, inspect and why ------------------------------------------------------------------------


def test_list_and_inspect_count_and_show_kernels(with_kernels):
    listed = [line.split("\t") for line in with_kernels("list").lines]
    inspected = with_kernels("inspect", "host_kernels")
    plugin = with_kernels("inspect", "host_kernels", "--json").object["plugin"]

    assert listed[0][:5] == ["host_kernels", "loaded", "kernel", "190 kernels", "argument"]
    assert "kernels\t190" in inspected.lines
    assert "MatMul\tCPU\tT=double\t\t0\t" in inspected.lines
    assert (plugin["kernels"], len(plugin["registered_kernels"])) == (190, 190)
    assert (plugin["ops"], plugin["op_definitions"]) == (0, [])


def test_inspect_shows_the_operations_of_a_plugin(mtf):
    source = Path(__file__).parents[1] / "loading" / "kernel_plugin.cc"
    library = link_library("libkernels.so", [compile_object(source, ())], ["-lstdc++"])

    plain = mtf("--plugin", library, "inspect", "kernels")
    plugin = mtf("--plugin", library, "inspect", "kernels", "--json").object["plugin"]

    assert plain.lines[-1].startswith("FixtureOp(x: T) -> y: T")
    assert [each["name"] for each in plugin["op_definitions"]] == ["FixtureOp"]
    assert plugin["registered_kernels"][0]["host_args"] == ["x"]
    assert mtf("inspect", "ram_filesystem", "--json").object["plugin"]["registered_kernels"] == []


def test_why_reports_what_defines_an_operation_and_what_computes_it(with_kernels, mtf):
    answer = with_kernels("why", "MatMul")
    nobody = mtf("why", "MatMul")

    assert answer.code == nobody.code == 0
    assert answer.lines[0] == "operation MatMul is computed by 2 kernels"
    assert answer.lines[1].startswith("  source: defined by TensorFlow 2.21.0: MatMul(a: T, b: T")
    assert "  serves: 2 kernels of host_kernels for device type CPU (CPU:0)" in answer.lines
    for lines, name in ((nobody.lines, "MatMul"), (mtf("why", "FFT").lines, "FFT")):
        assert lines[0] == f"operation {name} is computed by no kernel of a loaded plugin"
    assert "  serves: 190 kernels" in with_kernels("why", "host_kernels").lines
    misspelt = mtf("why", "MatMull")
    assert misspelt.code == Exit.NO
    assert "  suggestion: did you mean operation MatMul?" in misspelt.lines
