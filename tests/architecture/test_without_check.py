"""The host works without the conformance kit: `modular_tf.check` is missing in these tests."""

from __future__ import annotations

import json
import os
import shutil
from textwrap import dedent

import pytest

import modular_tf

SUBJECT = """
    import json
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
WITHOUT_EDITABLE_INSTALL = """
import sys
sys.meta_path = [
    finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable_")
]
"""
# Each command in a fork of its own: the exit status and what it prints.
COMMANDS = """
    import json, os, tempfile
    from modular_tf.cli.main import run

    for words in json.loads(sys.argv[1]):
        files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        child = os.fork()
        if not child:
            for descriptor, file in enumerate(files, start=1):
                os.dup2(file.fileno(), descriptor)
            sys.exit(run(words))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([status, *(file.seek(0) or file.read() for file in files)]), flush=True)
"""
MISSING = (
    "modular-tf: this needs the conformance kit, the package modular_tf.check, which is not"
    " installed; `pip install --force-reinstall modular_tf` brings it\n"
)


@pytest.fixture(scope="module")
def host_alone(tmp_path_factory):
    """Return the folder of a copy of the installed package that lacks the kit."""

    def left_out(directory, names):
        kit = {"check"} if directory in modular_tf.__path__ else set()
        return {"__pycache__", *kit}.intersection(names)

    folder = tmp_path_factory.mktemp("host_alone")
    for installed in modular_tf.__path__:
        shutil.copytree(installed, folder / "modular_tf", ignore=left_out, dirs_exist_ok=True)
    assert not (folder / "modular_tf" / "check").exists()
    return folder


@pytest.fixture
def run_host(run_python, host_alone):
    """Run code in a child process that imports the copy; see `PythonRunner`."""
    path = os.pathsep.join(filter(None, [str(host_alone), os.environ.get("PYTHONPATH")]))

    def run(code, *arguments, **options):
        code = WITHOUT_EDITABLE_INSTALL + dedent(code)
        return run_python(code, *arguments, env={"PYTHONPATH": path}, **options)

    return run


@pytest.fixture
def results_of(run_host):
    """Return what runs commands; it returns the exit status and the output of each."""

    def run(*commands):
        words = json.dumps([command.split() for command in commands])
        return [json.loads(line) for line in run_host(COMMANDS, words).stdout.splitlines()]

    return run


def test_plugins_load_and_serve_files_and_devices(run_host, host_alone):
    states, read, copied, named = json.loads(run_host(SUBJECT, host_alone).stdout)

    assert states["ram_filesystem"] == "loaded"
    assert states["host_device"] == "loaded"
    assert (read, copied, named) == ("written", True, [])


def test_commands_work(results_of):
    for status, out, err in results_of("list", "devices", "schemes", "why ram"):
        assert (status, err) == (0, "")
        assert out != ""


def test_commands_of_the_kit_say_that_it_is_missing(results_of):
    commands = ("check ram_filesystem", "check --list", "new filesystem mine", "devices --smoke")

    assert results_of(*commands) == [[1, "", MISSING]] * 4


def test_rules_of_the_host_are_explained_and_those_of_the_kit_are_missing(results_of):
    host, kit = results_of("why FS-013", "why FS-222")

    assert host[1].startswith("rule FS-013 (must): ")
    assert kit[0] == 1
    assert "those of the conformance kit, which is not installed, are missing" in kit[1]
