"""An author's own tests inherit the checks, by one class or one fixture."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from types import SimpleNamespace

import pytest

from modular_tf.check.pytest_plugin import _alone
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.fixtures.process_group import run_in_group

_BY_CLASS = """\
from modular_tf.check.pytest_plugin import FilesystemConformance, conformance

class TestMine(FilesystemConformance):
    plugin = "libhere.so"
    level = 3
    only = ("FS-156", "FS-157", "FS-169")
"""
_BY_FIXTURE = """\
from modular_tf.check.pytest_plugin import conformance

def test_mine(conformance):
    report = conformance("libhere.so", only=["FS-157"])
    assert report.conforms, str(report)
"""
_BY_BOTH = f"{_BY_CLASS}\n{_BY_FIXTURE.partition(chr(10))[2]}"
_FAILED = "FAILED test_mine.py::TestMine::test_conformance[FS-157]"


@pytest.fixture
def author(tmp_path):
    """Run an author's test module, beside which the library lies; what it ended with and output."""

    def run(text, *words, defect=""):
        (tmp_path / "test_mine.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *words]
        environment = {**os.environ, DEFECT_VARIABLE: defect} if defect else os.environ
        ended = run_in_group(command, cwd=tmp_path, env=environment, timeout=240)
        return ended.returncode, ended.stdout + ended.stderr

    (tmp_path / "libhere.so").symlink_to(defective_plugin("filesystem"))
    return run


def _counted(output, word):
    found = re.search(rf"(\d+) {word}", output.splitlines()[-1])
    return int(found[1]) if found else 0


def test_a_defect_fails_one_test_with_its_story(author):
    code, output = author(_BY_BOTH, defect="FS-157")

    assert code == 1, output
    assert "PASSED test_mine.py::TestMine::test_conformance[FS-156]" in output
    assert (_counted(output, "failed"), _counted(output, "passed")) == (2, 2)
    assert _FAILED in output
    assert "remedy:" in output
    assert "FAILED test_mine.py::test_mine - AssertionError" in output


def test_a_known_deviation_is_an_expected_failure(author, tmp_path):
    settings = '[[known]]\ncheck = "FS-157"\nreason = "so it is"\n'
    (tmp_path / "modular-tf-check.toml").write_text(settings)
    code, output = author(_BY_CLASS, defect="FS-157")

    assert code == 0, output
    assert _counted(output, "xfailed") == 1
    assert "so it is" in output


def test_what_is_selected_alone_is_tried_alone_and_a_recommendation_is_a_warning(author):
    code, output = author(_BY_CLASS, "-k", "FS-169", defect="FS-169")

    assert code == 0, output
    assert _counted(output, "passed") == 1
    assert "ConformanceWarning" in output


def test_a_library_that_is_not_there_is_an_error(author):
    code, output = author(_BY_CLASS.replace("libhere.so", "libnone.so"))

    assert code != 0
    assert "libnone.so" in output


_COUNTED = """
import modular_tf.check.run as kit

check_plugins = kit.check_plugins

def counted(*given, **named):
    with open("runs.txt", "a") as runs:
        runs.write("begun ")
    report = check_plugins(*given, **named)
    with open("runs.txt", "a") as runs:
        runs.write("ended ")
    return report

kit.check_plugins = counted
"""


def test_workers_of_xdist_check_once_for_all_of_a_class_and_one_after_the_other(author, tmp_path):
    (tmp_path / "conftest.py").write_text(_COUNTED)

    code, output = author(_BY_BOTH, "-n", "2", "--dist", "load", "-v")

    assert code == 0, output
    assert {"gw0", "gw1"} <= {*re.findall(r"\bgw\d\b", output)}
    assert _counted(output, "passed") == 4
    assert (tmp_path / "runs.txt").read_text() == "begun ended begun ended "


def test_a_process_that_a_plugin_leaves_running_keeps_no_worker_of_xdist_waiting(
    tmp_path_factory,
):
    config = SimpleNamespace(workerinput={"testrunuid": "left"})
    lock = tmp_path_factory.getbasetemp().parent / "modular-tf-check-left.turn"
    reader, writer = os.pipe()
    with _alone(SimpleNamespace(config=config), tmp_path_factory):
        left = os.fork()
        if left == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    try:
        with lock.open("ab") as mine:
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(left, 0)
