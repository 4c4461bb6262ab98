"""The workflow of a new project: where it gets modular_tf from, which may be on no index."""

from __future__ import annotations

import os
import sys
from textwrap import dedent

import pytest
import yaml
from packaging.requirements import Requirement

import modular_tf
from modular_tf.check.project_template.project import project_names, render_project
from modular_tf.errors import InvalidArgumentError
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT
from tests.fixtures.process_group import run_in_group
from tests.project_template.building import made_environment, run_tool

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WHEEL = "https://host.example/modular_tf-1.0-py3-none-any.whl"
CHECKOUT = "git+https://host.example/modular_tf@main"
DEFAULT = f"modular_tf>={modular_tf.__version__}"
BACKEND = """
    import zipfile
    NAMES = "Metadata-Version: 2.1\\nName: modular_tf\\nVersion: 9.9\\n"
    TAGS = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    def build_wheel(directory, settings=None, metadata=None):
        name, info = "modular_tf-9.9-py3-none-any.whl", "modular_tf-9.9.dist-info"
        files = {"METADATA": NAMES, "WHEEL": TAGS, "RECORD": ""}
        with zipfile.ZipFile(f"{directory}/{name}", "w") as wheel:
            wheel.writestr("from_checkout.py", "")
            for file, text in files.items():
                wheel.writestr(f"{info}/{file}", text)
        return name
"""


def _files(source=None):
    return render_project(project_names("filesystem", "my-plugin"), source)


def _workflow(files):
    return yaml.safe_load(files[".github/workflows/ci.yml"])


def _requirement(files):
    (found,) = (
        Requirement(text)
        for text in tomllib.loads(files["pyproject.toml"])["build-system"]["requires"]
        if text.startswith("modular_tf")
    )
    return found


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
    chosen = _workflow(files)["env"]["MODULAR_TF"]

    assert chosen == f"${{{{ vars.MODULAR_TF || '{installs}' }}}}"
    assert _requirement(files).url == url
    assert installs in files["README.md"]


@pytest.mark.parametrize("source", ["", "a b", "x'y", "$(id)", "{{ x }}", "a\nb", "-r x"])
def test_what_pip_cannot_install_is_refused(source):
    with pytest.raises(InvalidArgumentError, match="pip could install"):
        _files(source)


def test_a_path_of_this_machine_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="continuous integration lacks"):
        _files(str(tmp_path))


# ---- The step as it runs -------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path):
    """Make an environment in which pip installs without an index."""
    made_environment(tmp_path / "environment")
    path = os.pathsep.join((str(tmp_path / "environment" / "bin"), DEVELOPER_ENVIRONMENT["PATH"]))
    return {**DEVELOPER_ENVIRONMENT, "PATH": path, "PIP_NO_INDEX": "1"}


def _install(folder, environment, source):
    (step,) = (
        step
        for step in _workflow(_files())["jobs"]["plugin"]["steps"]
        if step.get("name") == "Install modular_tf"
    )
    command = ["bash", "-e", "-c", step["run"]]
    return run_in_group(command, cwd=folder, env={**environment, "MODULAR_TF": source}, timeout=200)


def test_a_checkout_in_the_repository_is_installed(tmp_path, environment):
    checkout = tmp_path / "third_party" / "modular_tf"
    checkout.mkdir(parents=True)
    (checkout / "backend.py").write_text(dedent(BACKEND))
    (checkout / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    done = _install(tmp_path, environment, "./third_party/modular_tf")
    assert done.returncode == 0, done.stdout + done.stderr

    run_tool("python", "-c", "import from_checkout", cwd=tmp_path, env=environment)


def test_what_cannot_be_installed_says_where_to_choose(tmp_path, environment):
    done = _install(tmp_path, environment, "modular_tf>=99999")

    assert done.returncode == 1
    assert (
        "::error::pip cannot install modular_tf>=99999: set the variable MODULAR_TF" in done.stdout
    )
