"""`modular-tf check`: what it says, writes and ends with."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Verdict
from modular_tf.check.report.json_report import SCHEMA_PATH, read_report
from modular_tf.check.settings import FILE_NAME
from modular_tf.cli import check as check_command
from modular_tf.cli.check import CUT_SHORT
from modular_tf.cli.process import Exit
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.fixtures.compiler import compile_object, link_library

GOOD = "ram_filesystem"
QUICK = ("--only", "FS-15*", "--through-host")
SPOILT = "FS-157"  # what the plugin of `spoilt` does wrong
COMMAND = [sys.executable, "-m", "modular_tf", "check"]
ONE_RUN = pytest.mark.xdist_group("report of checks")  # the one of `checked`


@pytest.fixture
def spoilt(monkeypatch):
    """The library of a plugin that breaks one rule, and no other."""
    monkeypatch.setenv(DEFECT_VARIABLE, SPOILT)
    return str(defective_plugin("filesystem"))


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The file of a report of the spoilt plugin and the good one."""
    path = tmp_path_factory.mktemp("checked") / "report.json"
    words = [str(defective_plugin("filesystem")), GOOD, *QUICK, "--write-json", str(path)]
    environment = {**os.environ, DEFECT_VARIABLE: SPOILT}
    done = subprocess.run([*COMMAND, *words], env=environment, capture_output=True, check=False)
    assert done.returncode == Exit.NO, done.stderr
    return path


@pytest.fixture
def rewrite(mtf, checked, monkeypatch):
    """Run `modular-tf check`, whose checks come to what they came to in `checked`."""
    report = read_report(str(checked))

    def command(*words, plugins=report.plugins):
        known = replace(report, plugins=plugins)
        monkeypatch.setattr(check_command, "check_plugins", lambda *_, **__: known)
        return mtf("check", GOOD, *words)

    command.plugins = report.plugins
    return command


# ---- Runs ----------------------------------------------------------------------------------------


@ONE_RUN
def test_a_verdict_ends_with_the_level_or_with_each_defect_and_its_remedy(rewrite):
    spoilt, good = rewrite.plugins
    ended, whole, bad = (
        rewrite(plugins=(it,)) for it in (good, replace(good, only=()), replace(spoilt, only=()))
    )

    assert (ended.code, ended.err) == (Exit.DONE, "")
    assert "conforms in what was selected (FS-15*); " in ended.lines[-1]
    assert "conforms; reaches level 3 of 4; " in whole.lines[-1]
    assert not any(line.startswith("FAILED") for line in ended.lines)
    assert bad.code == Exit.NO
    assert [line for line in bad.lines if line.startswith("FAILED")] == [
        f"FAILED {SPOILT} (reading, level 3) defect:// raw and host"
    ]
    assert all_checks()[SPOILT].rule.remedy in "\n".join(bad.lines)
    assert "does not conform; reaches no level of 4; " in bad.lines[-1]


def test_a_check_runs_in_this_process_for_a_debugger(mtf_process, monkeypatch):
    monkeypatch.setenv(DEFECT_VARIABLE, SPOILT)
    ended = mtf_process("check", defective_plugin("filesystem"), "--only", SPOILT, "--in-process")

    assert ended.code == Exit.NO
    assert any(line.startswith(f"FAILED {SPOILT} ") for line in ended.lines)
    assert "read(" in ended.err  # each call is written before it is made


def test_one_line_asks_for_a_root_where_nothing_can_be_made(mtf, monkeypatch):
    monkeypatch.setenv(DEFECT_VARIABLE, "no-place")
    ended = mtf("check", defective_plugin("filesystem"), "--only", "reading")
    (line,) = (line for line in (*ended.lines, *ended.err.splitlines()) if "--root" in line)

    assert re.match(r"blocked (FS-\d{3}, ){3}and \d+ more: .*defect://modular-tf-check", line)
    assert "--profile" in line
    assert "NOT_FOUND (5): no store for " in line
    assert [line for line in ended.lines if line.startswith("FAILED")] == []
    assert [line for line in ended.lines if line.startswith("blocked")] == [line]
    assert ended.code == Exit.NOTHING


def test_a_reader_that_leaves_makes_no_success_of_a_defect(spoilt):
    reading, writing = os.pipe()
    os.close(reading)
    words = [spoilt, *QUICK, "--json"]  # more than a buffer holds
    done = subprocess.run([*COMMAND, *words], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)

    assert (done.returncode, done.stderr) == (Exit.NO, b"")


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_a_signal_ends_reports_what_is_known(tmp_path, by):
    """All its processes get the signal, as from a terminal or `timeout`."""
    path, text = tmp_path / "report.json", tmp_path / "report.txt"
    with text.open("w") as redirected:
        child = subprocess.Popen(
            [*COMMAND, GOOD, "--level", "5", "--write-json", str(path)],
            stdout=redirected, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
    wait_for_zygote(child.pid)
    os.killpg(child.pid, by)
    _, complaint = child.communicate(timeout=120)

    assert child.returncode == Exit.INTERRUPTED, complaint
    lines = text.read_text().splitlines()
    assert any("checks have no outcome" in line or "nothing was checked" in line for line in lines)
    assert lines[-1] == CUT_SHORT
    assert CUT_SHORT in complaint
    assert json.loads(path.read_text())["interrupted"]


def wait_for_zygote(pid):
    """Wait until the process has started the processes of checks."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for child in children.read_text().split():
            with suppress(OSError):
                if b"check.watcher" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return
        time.sleep(0.02)
    raise AssertionError("no process of checks was started")


def test_a_filesystem_that_offers_little_is_checked_on_what_it_offers(mtf):
    source = Path(__file__).parents[1] / "check" / "computed_files.c"
    library = link_library("libcomputed_files.so", [compile_object(source, ("_GNU_SOURCE",))])
    (plugin,) = mtf("check", library, "--level", 3, "--json").object["plugins"]

    assert {check["verdict"] for check in plugin["checks"]} == {"passed", "warned", "skipped"}
    assert plugin["level_reached"] == 3


# ---- Reports -------------------------------------------------------------------------------------


@ONE_RUN
def test_json_is_what_the_schema_says(checked, rewrite):
    from jsonschema import validate

    ended = rewrite("--json")

    assert ended.code == Exit.NO
    validate(ended.object, json.loads(Path(SCHEMA_PATH).read_text(encoding="utf-8")))
    assert [plugin["conforms"] for plugin in ended.object["plugins"]] == [False, True]
    assert ended.object["summary"]["failed"] == 2
    written = json.loads(checked.read_text())
    assert written["plugins"] == ended.object["plugins"]


@ONE_RUN
def test_a_run_is_compared_with_an_earlier_one(checked, rewrite, tmp_path):
    spoilt, good = rewrite.plugins
    better = [
        replace(it, verdict=Verdict.PASSED) if it.verdict is Verdict.FAILED else it
        for it in spoilt.outcomes
    ]
    page = tmp_path / "page.html"

    ended = rewrite(
        "--compare", checked, "--html", page, plugins=(replace(spoilt, outcomes=better), good)
    )

    assert ended.code == Exit.DONE
    assert "since then: 2 better, 0 worse, 0 added, 0 gone" in ended.lines
    assert any(line.startswith(f"better {SPOILT}") for line in ended.lines)
    assert "Since the earlier run" in page.read_text()


@ONE_RUN
def test_reports_and_annotations_are_written_beside_the_text(rewrite, tmp_path):
    junit, page, badge = (tmp_path / name for name in ("junit.xml", "page.html", "badge.svg"))
    library = Path(rewrite.plugins[0].path).name

    ended = rewrite(
        "--junit", junit, "--html", page, "--badge", badge, "--annotations", "github",
        plugins=rewrite.plugins[:1],
    )  # fmt: skip

    assert any(line.startswith(f"{library}: does not conform") for line in ended.lines)
    suites = ET.parse(junit).getroot()
    assert sum(int(suite.get("failures")) for suite in suites) == 2
    (annotation,) = (line for line in ended.lines if line.startswith("::error title="))
    assert f"{SPOILT} (defect%3A// raw and host)" in annotation
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert f"<code>{SPOILT}</code>" in page.read_text()
    label = ET.parse(badge).getroot().get("aria-label")
    assert label.startswith("modular-tf: does not conform in what was selected")


@ONE_RUN
@pytest.mark.parametrize(
    ("option", "read"),
    [
        ("--html", re.compile(rb"<!DOCTYPE html>.*</html>\s*", re.DOTALL).fullmatch),
        ("--badge", ET.fromstring),
        ("--junit", ET.fromstring),
        ("--write-json", json.loads),
    ],
)
def test_a_report_goes_to_standard_output_in_the_place_of_the_text(option, read, rewrite):
    ended = rewrite(option, "-", "--annotations", "github")

    assert ended.code == Exit.NO
    assert read(ended.out) is not None  # nothing else is there
    assert "::error title=" in ended.err


def test_a_file_that_is_no_library_fails_and_its_annotation_has_no_controls(mtf, tmp_path):
    spoilt = tmp_path / "lib\x1b[31m\udcff.so"
    spoilt.write_bytes(b"no library")

    ended = mtf("check", spoilt, "--level", 1, "--annotations", "github")

    assert ended.code == Exit.NO
    assert any(line.startswith("FAILED LD-") for line in ended.lines)
    (annotation,) = (line for line in ended.lines if line.startswith("::error title="))
    assert "\\x1b[31m\\xff" in annotation
    assert b"\x1b" not in ended.out


def test_a_report_is_never_written_through_a_link(mtf, tmp_path):
    target, link = tmp_path / "target", tmp_path / "report"
    target.write_text("somebody else's")
    link.symlink_to(target)
    for option in ("--junit", "--write-json", "--html", "--badge"):
        ended = mtf("check", GOOD, *QUICK, option, link)
        assert (ended.code, ended.out) == (Exit.NO, b"")  # before anything was checked
        assert f"{link}: is a symbolic link" in ended.err

    assert target.read_text() == "somebody else's"


@pytest.mark.parametrize("other", ["--json", "--write-json -", "--html -"])
def test_one_report_alone_goes_to_standard_output(other, mtf):
    ended = mtf("check", GOOD, *QUICK, "--junit", "-", *other.split())

    assert (ended.code, ended.out) == (Exit.USAGE, b"")
    assert "can go to standard output" in ended.err


def test_the_settings_beside_the_library_count(mtf, spoilt, tmp_path, monkeypatch):
    """They hold the root below which everything is removed: not that of another project."""
    own, other, third = (tmp_path / name for name in ("own", "other", "third"))
    for project, skipped in ((own, SPOILT), (other, "*"), (third, "*")):
        (project / "build").mkdir(parents=True)
        (project / FILE_NAME).write_text(f'skip = ["{skipped}"]\n')
    library = shutil.copy(spoilt, own / "build")
    monkeypatch.chdir(other)

    checked = mtf("check", library, "--list")

    assert checked.code == Exit.DONE
    assert SPOILT not in "".join(checked.lines)
    assert mtf("check", "--list").code == Exit.NOTHING  # those above the working directory
    both = mtf("check", library, third / "build", "--list")
    assert both.code == Exit.USAGE
    assert f"{own / FILE_NAME} and {third / FILE_NAME}" in both.err
    named = mtf("check", library, third / "build", "--list", "--settings", own / FILE_NAME)
    assert named.code == Exit.DONE


# ---- Nothing checked, and usage ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("{}", Exit.NOTHING, "nothing was checked: no library in "),
        ("{}/none.so", Exit.NOTHING, "LD-001"),
        ("no_such_plugin", Exit.NO, "no_such_plugin: no such file, and no plugin of that name; "),
    ],
)
def test_a_place_without_a_library_is_no_success(mtf, tmp_path, name, code, said):
    ended = mtf("check", name.format(tmp_path))

    assert ended.code == code
    assert said in ended.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        (GOOD, "--level", "6"),
        (GOOD, "--only", "NO-SUCH"),
        (GOOD, "--profile", "none"),
        (GOOD, "--settings", "/no/such/file.toml"),
        (GOOD, "--compare", "/no/such/report.json"),
        *((GOOD, "--option", option) for option in ("repeat='often'", "repeat", "reapeat=3")),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(mtf, words):
    ended = mtf("check", *words)

    assert ended.code == Exit.USAGE
    assert ended.err.strip()
    assert "internal error" not in ended.err
    assert not ended.out


def test_every_check_is_listed(mtf):
    ended = mtf("check", "--list", "--level", 5)
    listed = mtf("check", "--list", "--only", SPOILT, "--json").object

    assert [line.split("\t")[0] for line in ended.lines] == list(all_checks())
    assert [check["id"] for check in listed["checks"]] == [SPOILT]
    assert "object-store" in listed["profiles"]
