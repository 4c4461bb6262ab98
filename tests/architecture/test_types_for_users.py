"""What type checkers report to users: all samples are right, and a misspelt name is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
