"""The host works without the conformance kit: `modular_tf.check` is missing in these tests."""

from __future__ import annotations

import json
import os
import shutil
from textwrap import dedent

import pytest

import modular_tf

KIT = "check"

SUBJECT = """
    import json, sys
    import modular_tf as mtf
    from pathlib import Path

    assert Path(mtf.__file__).is_relative_to(sys.argv[1]), mtf.__file__
    with mtf.PluginService() as service:
        service.load()
        states = {plugin.name: plugin.state.value for plugin in service.plugins()}
        ram = service.filesystem("ram")
        with ram.new_writable_file("ram://file") as file:
            file.append(b"written")
        with ram.new_random_access_file("ram://file") as file:
            read = file.read(0, 100)
        device = service.device("CPU:0")
        with device.put(bytes(range(64))) as array:
            copied = array.to_bytes()
    named = [name for name in sys.modules if name.startswith("modular_tf.check")]
    print(json.dumps([states, read.decode(), copied == bytes(range(64)), named]))
"""
# The finder of an editable install comes before the path on which the copy lies.
WITHOUT_EDITABLE_INSTALL = dedent("""
    import sys
    sys.meta_path = [
        finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable_")
    ]
""")
COMMAND = """
    import sys
    from modular_tf.cli.main import run
    sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def host_alone(tmp_path_factory):
    """Return the folder of a copy of the installed package that lacks the kit."""
    folder = tmp_path_factory.mktemp("host_alone")
    for installed in modular_tf.__path__:
        shutil.copytree(
            installed,
            folder / "modular_tf",
            ignore=_all_but_the_host,
            dirs_exist_ok=True,
        )
    assert not (folder / "modular_tf" / KIT).exists()
    return folder


def _all_but_the_host(directory: str, names: list[str]) -> set[str]:
    left_out = {KIT} if directory in modular_tf.__path__ else set()
    return {"__pycache__", *left_out}.intersection(names)


@pytest.fixture
def run_host(run_python, host_alone):
    """Run code in a child process that imports the copy; see `PythonRunner`."""
    others = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(host_alone), *([others] if others else [])])

    def run(code, *arguments, **options):
        return run_python(
            WITHOUT_EDITABLE_INSTALL + dedent(code), *arguments, env={"PYTHONPATH": path}, **options
        )

    return run


def test_plugins_load_and_serve_files_and_devices(run_host, host_alone):
    child = run_host(SUBJECT, host_alone)
    states, read, copied, named = json.loads(child.stdout)

    assert states["ram_filesystem"] == "loaded"
    assert states["host_device"] == "loaded"
    assert (read, copied, named) == ("written", True, [])


@pytest.mark.parametrize(
    "words", [["list"], ["devices"], ["schemes"], ["why", "ram"]], ids=" ".join
)
def test_commands_work(run_host, words):
    child = run_host(COMMAND, *words)

    assert child.stdout != ""
    assert child.stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ["check", "ram_filesystem"],
        ["check", "--list"],
        ["new", "filesystem", "mine"],
        ["devices", "--smoke"],
    ],
    ids=" ".join,
)
def test_commands_of_the_kit_say_that_it_is_missing(run_host, words):
    child = run_host(COMMAND, *words, status=1)

    assert child.stdout == ""
    assert child.stderr == (
        "modular-tf: this needs the conformance kit, the package modular_tf.check, which is not"
        " installed; `pip install --force-reinstall modular_tf` brings it\n"
    )


def test_rules_of_the_host_are_explained_and_those_of_the_kit_are_missing(run_host):
    host, kit = run_host(COMMAND, "why", "FS-013"), run_host(COMMAND, "why", "FS-222", status=1)

    assert host.stdout.startswith("rule FS-013 (must): ")
    assert "those of the conformance kit, which is not installed, are missing" in kit.stdout


def test_another_missing_module_is_a_fault_of_ours(run_host):
    code = 'import sys; sys.modules["modular_tf.cli.plugins"] = None\n' + dedent(COMMAND)
    child = run_host(code, "schemes", status=70)

    assert "modular_tf.cli.plugins" in child.stderr
