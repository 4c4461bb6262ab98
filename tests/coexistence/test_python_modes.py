"""Python's own modes for finding mistakes, and interpreters within an interpreter."""

from __future__ import annotations

import os
import sys

import pytest

from tests.coexistence.conftest import WORK
from tests.fixtures.children import describe
from tests.fixtures.process_group import run_in_group

_ALL = (
    WORK
    + """
with PluginService(plugin_paths=sys.argv[1:]) as service:
    service.load()
    use_all(service)
print("reached the end")
"""
)


@pytest.mark.parametrize(
    "flags",
    [
        ("-X", "dev", "-W", "error"),
        ("-X", "dev", "-X", "tracemalloc=5"),
        ("-X", "faulthandler"),
        ("-OO",),
        ("-X", "utf8=0"),
        ("-b", "-b", "-W", "error"),
    ],
    ids=" ".join,
)
def test_all_works_and_nothing_is_said(flags, fixture_plugin, tmp_path):
    command = [sys.executable, *flags, "-c", _ALL, str(fixture_plugin("good"))]
    child = run_in_group(command, cwd=tmp_path, env=os.environ, timeout=120)

    assert (child.returncode, child.stdout, child.stderr) == (0, "reached the end\n", ""), describe(
        child
    )


def test_the_faults_of_the_application_are_still_told(run_python, fixture_plugin):
    child = run_python(
        _ALL + "sys.stdout.flush()\nimport ctypes; ctypes.string_at(0)\n",
        fixture_plugin("good"),
        status=-11,
    )

    assert child.stdout == "reached the end\n"
    assert "Fatal Python error: Segmentation fault" in child.stderr


@pytest.mark.parametrize(
    "before", ["", "service = PluginService(); service.load(); use_all(service)"]
)
def test_an_interpreter_within_the_interpreter_is_refused(before, run_python):
    child = run_python(
        WORK
        + before
        + """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
interpreters.run_string(other, '''if True:
    try:
        from modular_tf.service.service import PluginService
        PluginService().load()
    except ImportError as error:
        print(error, flush=True)
''')
interpreters.destroy(other)
with PluginService() as service:
    service.load()
    use_all(service)
print("reached the end")
"""
    )

    told, end = child.stdout.splitlines()
    assert "main interpreter" in told or "loading in subinterpreters" in told  # Python's own words
    assert end == "reached the end"
