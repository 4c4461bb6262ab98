"""What type checkers report to users: all samples are right, and a misspelt name is wrong."""

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
from tests.fixtures.machine import CACHE_ROOT

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]

# Libraries without types, or in a folder of their own: samples with them are run, not type-checked.
UNTYPED = {"dask.dataframe", "fsspec", "pyarrow.csv", "xarray"}

CHECKERS = {
    "mypy": ("mypy", "--strict", "--config-file=", "--python-executable", sys.executable, "."),
    "pyright": ("pyright", "--project", ".", "--pythonpath", sys.executable),
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
WRONG = "import modular_tf\n\nprint(modular_tf.Nmae)\n"

# Inner parts that a few public methods hand to each other, and details of a library's bytes.
INNER = {
    "DeviceContext", "DeviceCore", "DeviceRegistry", "Executor", "FilesystemRegistry",
    "KernelRegistry", "Listing", "NativeObject", "Operation", "Operations", "PluginEntry",
    "Registries", "SearchPaths", "StreamWriter", "TextWriter",
    "ElfFacts", "Kind", "MissingSymbol", "ResolvedLibrary",
}  # fmt: skip


def samples(*, with_reference: bool):
    """Return the samples of the documents by the names of files."""
    return {
        f"{document.stem.replace('-', '_')}_line_{block.line}.py": block.text
        for document in DOCUMENTS
        if with_reference or document.parent.name != "api"
        for block in blocks(document.read_text(encoding="utf-8"))
        if block.language == "python" and not UNTYPED & set(block.text.split())
    }


@pytest.mark.parametrize("checker", CHECKERS)
def test_samples_and_uses_are_well_typed_and_a_misspelt_name_is_not(checker, tmp_path):
    # Examples of the API show types by isinstance, which pyright's strict mode calls unnecessary.
    programs = samples(with_reference=checker == "mypy")
    assert len(programs) > 8
    for name, text in {**programs, "uses.py": USES, "wrong.py": WRONG}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment |= {
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
        "MYPY_CACHE_DIR": str(CACHE_ROOT / "mypy"),  # what it found of numpy and pandas lasts
    }

    command = [sys.executable, "-m", *CHECKERS[checker]]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    found = [line for line in done.stdout.splitlines() if re.search(r"\berror: ", line)]
    assert [line for line in found if "wrong.py" not in line] == []
    assert any("Nmae" in line for line in found), done.stdout + done.stderr


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


def _classes_of_the_package():
    root = Path(modular_tf.__file__).parent
    return {
        node.name
        for path in root.rglob("*.py")
        if "project_template" not in path.parts and "check" not in path.parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }


def _annotated(cls):
    """Return the names in the annotations of a class's public members."""
    bodies = [
        ast.parse(inspect.getsource(base)).body[0].body
        for base in cls.__mro__
        if base.__module__.startswith("modular_tf.")
        and base.__module__ != "modular_tf.native._dlpack"
    ]
    shown = [ast.unparse(part) for body in bodies for node in body for part in _annotations(node)]
    return {name for text in shown for name in re.findall(r"[A-Z]\w+", text)}


def _annotations(node):
    if isinstance(node, ast.AnnAssign):
        is_public = isinstance(node.target, ast.Name) and not node.target.id.startswith("_")
        return [node.annotation] if is_public else []
    if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
        return []
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    found = [node.returns, *(argument.annotation for argument in arguments)]
    return [annotation for annotation in found if annotation is not None]
