"""What type checkers tell users: all samples are right, and a misspelt name is wrong."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import modular_tf
from modular_tf import dlpack, errors
from tests.architecture.document import blocks

CHECKOUT = Path(__file__).parents[2]
pytestmark = pytest.mark.xdist_group("types for users")
DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]

# Libraries without types, or in a folder of their own: samples with them are run, not type-checked.
UNTYPED = {"dask.dataframe", "fsspec", "pyarrow.csv", "xarray"}

CHECKERS = {
    "mypy": ("mypy", "--strict", "--config-file=", "--python-executable"),
    "pyright": ("pyright", "--project", ".", "--pythonpath"),
}

USES = """
import modular_tf as mtf
import numpy as np


def use(
    array: mtf.DeviceArray,
    stream: mtf.Stream,
    event: mtf.Event,
    timer: mtf.Timer,
    memory: mtf.DeviceMemory,
    explanation: mtf.Explanation,
) -> None:
    print(np.from_dlpack(array), np.asarray(array), np.from_dlpack(array.to_host()))
    print(np.from_dlpack(mtf.dlpack.from_dlpack(np.ones(3))))
    stream.wait_event(event)
    timer.start(stream)
    print(len(memory), explanation)
"""

# Inner parts that a few public methods hand to each other, and details of a library's bytes.
INNER = {
    "DeviceContext", "DeviceCore", "DeviceRegistry", "Executor", "FilesystemRegistry",
    "KernelRegistry", "Listing", "NativeObject", "Operation", "Operations", "PluginEntry",
    "Registries", "SearchPaths", "StreamWriter", "TextWriter",
    "ElfFacts", "Kind", "MissingSymbol", "ResolvedLibrary",
}  # fmt: skip


@pytest.fixture(scope="module")
def mypy_cache(tmp_path_factory):
    """The environment by which one run of mypy reads what another found out about the package."""
    return {"MYPY_CACHE_DIR": str(tmp_path_factory.mktemp("mypy"))}


@pytest.fixture(params=CHECKERS)
def check(request, tmp_path, mypy_cache):
    """Return a function that type-checks programs strictly; it gives the checker's output."""
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))

    def run(programs, *, status):
        for name, text in programs.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", *CHECKERS[request.param], sys.executable]
        done = subprocess.run(
            [*command, *programs] if request.param == "mypy" else command,
            cwd=tmp_path,
            env={**_without_preloaded_sanitizers(), **mypy_cache},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return run


def _without_preloaded_sanitizers() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return {**kept, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


def test_the_samples_are_well_typed(check, request):
    # Examples of the API show types by isinstance, which pyright's strict mode calls unnecessary.
    is_strict_on_isinstance = request.node.callspec.params["check"] == "pyright"
    samples = {
        f"{document.stem.replace('-', '_')}_line_{block.line}.py": block.text
        for document in DOCUMENTS
        if not (is_strict_on_isinstance and document.parent.name == "api")
        for block in blocks(document.read_text(encoding="utf-8"))
        if block.language == "python" and not UNTYPED & set(block.text.split())
    }

    assert len(samples) > 8
    check(samples, status=0)


def test_users_can_name_what_they_hold_and_give_it_to_numpy(check):
    check({"uses.py": USES}, status=0)


def test_a_misspelt_name_is_an_error(check):
    told = check({"wrong.py": "import modular_tf\n\nprint(modular_tf.Nmae)\n"}, status=1)

    assert "Nmae" in told


def test_types_of_public_methods_can_be_named():
    known = _classes_of_the_package()
    public = {*modular_tf.__all__, *errors.__all__, *dlpack.__all__}
    unnamed = {
        f"{cls.__name__}: {name}"
        for cls in (getattr(modular_tf, name) for name in modular_tf.__all__)
        if inspect.isclass(cls)
        for name in _annotated(cls) & known - public - INNER
    }

    assert unnamed == set()


def _classes_of_the_package() -> set[str]:
    root = Path(modular_tf.__file__).parent
    return {
        node.name
        for path in root.rglob("*.py")
        if "project_template" not in path.parts and "check" not in path.parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }


def _annotated(cls: type) -> set[str]:
    """Return the names in the annotations of a class's public members."""
    bodies = [
        ast.parse(inspect.getsource(base)).body[0].body
        for base in cls.__mro__
        if base.__module__.startswith("modular_tf.")
        and base.__module__ != "modular_tf.native._dlpack"
    ]
    told = [ast.unparse(part) for body in bodies for node in body for part in _annotations(node)]
    return {name for text in told for name in re.findall(r"[A-Z]\w+", text)}


def _annotations(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        is_public = isinstance(node.target, ast.Name) and not node.target.id.startswith("_")
        return [node.annotation] if is_public else []
    if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
        return []
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    found = [node.returns, *(argument.annotation for argument in arguments)]
    return [annotation for annotation in found if annotation is not None]
