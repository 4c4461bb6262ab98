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
    print(json.dumps([states, read.decode(), copied == bytes(range(64)), named]), flush=True)

    # Each command in a fork of its own: the exit status and what it prints.
    import os, tempfile
    from modular_tf.cli.main import run

    for words in ("list", "devices", "schemes", "why ram", "check ram_filesystem", "check --list",
                  "new filesystem mine", "devices --smoke", "why FS-013", "why FS-222"):
        files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        child = os.fork()
        if not child:
            for descriptor, file in enumerate(files, start=1):
                os.dup2(file.fileno(), descriptor)
            sys.exit(run(words.split()))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told = [status, *(file.seek(0) or file.read() for file in files)]
        print(json.dumps([words, told]), flush=True)
"""
# The finder of an editable install comes before the path on which the copy lies.
WITHOUT_EDITABLE_INSTALL = """
import sys
sys.meta_path = [
    finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable_")
]
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


def test_what_the_host_does_works_and_what_the_kit_does_says_what_is_missing(
    run_python, host_alone
):
    path = os.pathsep.join(filter(None, [str(host_alone), os.environ.get("PYTHONPATH")]))
    code = WITHOUT_EDITABLE_INSTALL + dedent(SUBJECT)
    lines = run_python(code, host_alone, env={"PYTHONPATH": path}).stdout.splitlines()
    states, read, copied, named = json.loads(lines[0])
    results = dict(map(json.loads, lines[1:]))

    assert states["ram_filesystem"] == states["host_device"] == "loaded"
    assert (read, copied, named) == ("written", True, [])
    for command in ("list", "devices", "schemes", "why ram"):
        status, out, err = results[command]
        assert (status, err, out != "") == (0, "", True)
    for command in (
        "check ram_filesystem",
        "check --list",
        "new filesystem mine",
        "devices --smoke",
    ):
        assert results[command] == [1, "", MISSING]
    assert results["why FS-013"][1].startswith("rule FS-013 (must): ")
    status, out, _ = results["why FS-222"]
    assert status == 1
    assert "those of the conformance kit, which is not installed, are missing" in out
