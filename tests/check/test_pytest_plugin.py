"""An author's own tests inherit the checks, by one class or one fixture."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from modular_tf.check.pytest_plugin import _alone
from tests.check.building import DEFECT_VARIABLE, defective_plugin

_BY_CLASS = """
    from modular_tf.check.pytest_plugin import FilesystemConformance

    class TestMine(FilesystemConformance):
        plugin = {plugin!r}
        level = 3
        only = ("reading",)
"""
_BY_FIXTURE = """
    from modular_tf.check.pytest_plugin import conformance

    def test_mine(conformance):
        report = conformance({plugin!r}, only=["reading"])
        assert report.conforms, str(report)
"""


@pytest.fixture
def author(tmp_path):
    """Run an author's test module; what it ended with and said."""

    def run(text: str, *words: str, defect: str = "", settings: str = "") -> tuple[int, str]:
        module = text.format(plugin=str(defective_plugin("filesystem")))
        lines = [line.removeprefix("    ") for line in module.splitlines()]
        (tmp_path / "test_mine.py").write_text("\n".join(lines))
        (tmp_path / "modular-tf-check.toml").write_text(settings)
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *words],
            cwd=tmp_path,
            env={**os.environ, DEFECT_VARIABLE: defect} if defect else None,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    return run


def _counted(said: str, word: str) -> int:
    found = re.search(rf"(\d+) {word}", said.splitlines()[-1])
    return int(found[1]) if found else 0


def test_each_check_is_a_test(author):
    code, said = author(_BY_CLASS)

    assert code == 0, said
    assert "PASSED test_mine.py::TestMine::test_conformance[FS-157]" in said
    assert _counted(said, "passed") >= 15


def test_a_defect_fails_one_test_with_its_story(author):
    code, said = author(_BY_CLASS, defect="FS-157")

    assert code == 1, said
    assert _counted(said, "failed") == 1
    assert "FAILED test_mine.py::TestMine::test_conformance[FS-157]" in said
    assert "remedy:" in said


def test_what_is_selected_alone_is_tried_alone(author):
    code, said = author(_BY_CLASS, "-k", "FS-157", defect="FS-156")

    assert code == 0, said
    assert _counted(said, "passed") == 1


def test_a_known_deviation_is_an_expected_failure(author):
    settings = '[[known]]\ncheck = "FS-157"\nreason = "so it is"\n'

    code, said = author(_BY_CLASS, defect="FS-157", settings=settings)

    assert code == 0, said
    assert _counted(said, "xfailed") == 1
    assert "so it is" in said


def test_a_recommendation_is_a_warning(author):
    code, said = author(_BY_CLASS, "-k", "FS-169", defect="FS-169")

    assert code == 0, said
    assert "ConformanceWarning" in said


def test_the_fixture_gives_a_report(author):
    assert author(_BY_FIXTURE)[0] == 0
    code, said = author(_BY_FIXTURE, defect="FS-157")

    assert code == 1
    assert "FS-157" in said


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


def test_one_worker_of_xdist_runs_the_checks_and_all_have_their_outcomes(author, tmp_path):
    (tmp_path / "conftest.py").write_text(_COUNTED)

    code, said = author(_BY_CLASS, "-n", "3", "-v", defect="FS-157")

    assert code == 1, said
    assert {f"gw{number}" for number in range(3)} <= {*re.findall(r"\bgw\d\b", said)}
    assert "FAILED test_mine.py::TestMine::test_conformance[FS-157]" in said
    assert (_counted(said, "failed"), _counted(said, "passed") >= 14) == (1, True)
    assert (tmp_path / "runs.txt").read_text() == "begun ended "


def test_workers_of_xdist_check_one_after_the_other(author, tmp_path):
    (tmp_path / "conftest.py").write_text(_COUNTED)
    again = _BY_FIXTURE + _BY_FIXTURE.replace("test_mine", "test_mine_too")

    code, said = author(again, "-n", "2", "--dist", "load")

    assert code == 0, said
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


def test_a_library_that_is_not_there_is_an_error(author):
    missing = _BY_CLASS.replace("{plugin!r}", "'libnone.so'")

    code, said = author(missing)

    assert code != 0
    assert "libnone.so" in said


def test_a_path_begins_where_the_module_is(author, tmp_path):
    Path(tmp_path / "libhere.so").symlink_to(defective_plugin("filesystem"))

    code, said = author(_BY_CLASS.replace("{plugin!r}", "'libhere.so'"))

    assert code == 0, said
