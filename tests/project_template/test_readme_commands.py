"""The README of a new project: each command in turn, in an environment of its own, as it stands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modular_tf.check.project_template.project import KINDS, project_names, write_project
from tests.architecture.document import blocks
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT
from tests.fixtures.matrices import BEYOND_THE_SAMPLE
from tests.fixtures.process_group import run_in_group
from tests.project_template.building import TOOLS, made_environment

MODULAR_TF = """\
#!{python}
from modular_tf.cli.main import run
raise SystemExit(run())
"""
_PAGE = Path(__file__).parents[2] / "docs" / "start" / "plugin-authors.md"
MAY_BE_LOST = "my_program.py"  # the reader's own, with TensorFlow


@pytest.fixture
def environment(tmp_path, isolated_machine):
    """Make an environment that keeps to itself what it installs."""
    programs = tmp_path / "environment" / "bin"
    made_environment(programs.parent)
    script = programs / "modular-tf"
    script.write_text(MODULAR_TF.format(python=programs / "python"))
    script.chmod(0o755)
    homes = {name: os.environ[name] for name in os.environ if name.startswith("XDG_")}
    path = os.pathsep.join((str(programs), TOOLS["PATH"]))
    return {**DEVELOPER_ENVIRONMENT, **homes, "PATH": path, "VIRTUAL_ENV": str(programs.parent)}


@BEYOND_THE_SAMPLE
@pytest.mark.parametrize("kind", KINDS)
def test_every_command_works(kind, environment, tmp_path):
    names = project_names(kind, f"walked-{kind}")
    project = tmp_path / "project"
    write_project(names, str(project))
    outputs = []
    for block in blocks((project / "README.md").read_text()):
        for command in _commands(block.language, block.text):
            done = run_in_group(command, cwd=project, env=environment, timeout=200)
            assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
            assert not command[-1].startswith("modular-tf check") or done.stderr == ""
            outputs.append((command[-1], done.stdout))
    listed = next(out for command, out in outputs if command == "modular-tf list")
    found = next(line.split("\t") for line in listed.splitlines() if names.library in line)

    assert any(f"lib{names.library}.so: conforms" in out for _, out in outputs)
    assert found[:2] == [names.library, "loaded"]
    source = found[4].split()[0]
    assert source == "tensorflow-plugins"
    assert f"`{source}`" in _PAGE.read_text("utf-8").partition("## How users get it")[2]
    assert str(tmp_path / "environment") in found[5]


def _commands(language, text):
    """Return what a reader types for one block, and a user without TensorFlow can."""
    if language == "python":
        return [] if "import tensorflow" in text else [["python", "-W", "error", "-c", text]]
    return [["bash", "-c", line] for line in text.splitlines() if MAY_BE_LOST not in line]
