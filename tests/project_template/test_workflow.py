"""The workflow of a new project: where it gets modular_tf from, which may be on no index."""

from __future__ import annotations

import os
import sys

import pytest
import yaml
from packaging.requirements import Requirement

import modular_tf
from modular_tf.check.project_template.project import project_names, render_project
from modular_tf.errors import InvalidArgumentError
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT
from tests.fixtures.process_group import run_in_group
from tests.project_template.building import made_environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WHEEL = "https://host.example/modular_tf-1.0-py3-none-any.whl"
CHECKOUT = "git+https://host.example/modular_tf@main"
WORKFLOW = ".github/workflows/ci.yml"
DEFAULT = f"modular_tf>={modular_tf.__version__}"


def _files(source=None):
    return render_project(project_names("filesystem", "my-plugin"), source)


@pytest.mark.parametrize(
    ("source", "installs", "url"),
    [
        (None, DEFAULT, None),
        (CHECKOUT, CHECKOUT, CHECKOUT),
        ("./third_party/modular_tf", "./third_party/modular_tf", None),
        (f"modular_tf @ {WHEEL}", f"modular_tf @ {WHEEL}", WHEEL),
    ],
)
def test_it_installs_what_the_author_chooses(source, installs, url):
    files = _files(source)
    (required,) = (
        Requirement(text)
        for text in tomllib.loads(files["pyproject.toml"])["build-system"]["requires"]
        if text.startswith("modular_tf")
    )
    workflow = yaml.safe_load(files[WORKFLOW])

    assert workflow["env"]["MODULAR_TF"] == f"${{{{ vars.MODULAR_TF || '{installs}' }}}}"
    assert required.url == url
    assert installs in files["README.md"]


def test_what_pip_or_another_machine_cannot_install_is_refused(tmp_path):
    for source in ("", "a b", "x'y", "$(id)", "{{ x }}", "a\nb", "-r x"):
        with pytest.raises(InvalidArgumentError, match="pip could install"):
            _files(source)
    with pytest.raises(InvalidArgumentError, match="continuous integration lacks"):
        _files(str(tmp_path))


def test_what_cannot_be_installed_says_where_to_choose(tmp_path):
    """The step as it runs, by a pip without an index."""
    made_environment(tmp_path / "environment")
    path = os.pathsep.join((str(tmp_path / "environment" / "bin"), DEVELOPER_ENVIRONMENT["PATH"]))
    source = "modular_tf>=99999"
    variables = {"PATH": path, "PIP_NO_INDEX": "1", "MODULAR_TF": source}
    steps = yaml.safe_load(_files()[WORKFLOW])["jobs"]["plugin"]["steps"]
    (step,) = (step for step in steps if step.get("name") == "Install modular_tf")
    command, environment = ["bash", "-e", "-c", step["run"]], {**DEVELOPER_ENVIRONMENT, **variables}
    done = run_in_group(command, cwd=tmp_path, env=environment, timeout=200)

    assert done.returncode == 1
    assert f"::error::pip cannot install {source}: set the variable MODULAR_TF" in done.stdout
