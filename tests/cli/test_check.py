"""`modular-tf check`: what it says, writes and ends with."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.report.json_report import SCHEMA_PATH
from modular_tf.check.settings import FILE_NAME
from modular_tf.cli.check import CUT_SHORT
from modular_tf.cli.process import Exit
from tests.check.building import DEFECT_VARIABLE, defective_plugin

GOOD = "ram_filesystem"
QUICK = ("--only", "reading", "--skip", "FS-168", "--through-host")
SPOILT = "FS-157"  # what the plugin of `spoilt` does wrong


@pytest.fixture
def spoilt(monkeypatch):
    """The library of a plugin that breaks one rule, and no other."""
    monkeypatch.setenv(DEFECT_VARIABLE, SPOILT)
    return str(defective_plugin("filesystem"))


def test_a_good_plugin_conforms(mtf):
    ended = mtf("check", GOOD, "--level", 3)

    assert ended.code == Exit.DONE
    assert "conforms; reaches level 3 of 3" in ended.lines[-1]
    assert not any(line.startswith("FAILED") for line in ended.lines)


def test_a_defect_is_told_with_its_rule_and_remedy(mtf, spoilt):
    ended = mtf("check", spoilt, *QUICK)
    text = "\n".join(ended.lines)

    assert ended.code == Exit.NO
    assert f"FAILED {SPOILT} (reading, level 3) defect:// raw and host" in ended.lines
    assert all_checks()[SPOILT].rule.remedy in text
    assert "does not conform; reaches no level" in ended.lines[-1] or "reaches" in ended.lines[-1]
    assert sum(line.startswith("FAILED") for line in ended.lines) == 1


@pytest.mark.parametrize(("words", "ways"), [((), {"raw"}), (("--through-host",), {"raw", "host"})])
def test_only_what_is_named_is_tried_in_the_ways_that_are_asked_for(mtf, words, ways):
    ended = mtf("check", GOOD, "--only", SPOILT, "--json", *words)
    (plugin,) = ended.object["plugins"]

    assert {(check["check_id"], check["reached"]) for check in plugin["checks"]} == {
        (SPOILT, way) for way in ways
    }


def test_what_can_be_tried_through_the_host_alone_always_is(mtf):
    ended = mtf("check", GOOD, "--only", "FS-189", "--json")

    assert [check["reached"] for check in ended.object["plugins"][0]["checks"]] == ["host"]


def test_a_check_runs_in_this_process_for_a_debugger(mtf_process, monkeypatch):
    monkeypatch.setenv(DEFECT_VARIABLE, SPOILT)
    ended = mtf_process("check", defective_plugin("filesystem"), "--only", SPOILT, "--in-process")

    assert ended.code == Exit.NO
    assert any(line.startswith(f"FAILED {SPOILT} ") for line in ended.lines)
    assert "read(" in ended.err  # each call is written before it is made


def test_json_is_what_the_schema_says(mtf, spoilt):
    from jsonschema import validate

    with open(SCHEMA_PATH, encoding="utf-8") as stream:  # noqa: PTH123
        schema = json.load(stream)
    ended = mtf("check", spoilt, GOOD, *QUICK, "--json")

    assert ended.code == Exit.NO
    validate(ended.object, schema)
    assert [plugin["conforms"] for plugin in ended.object["plugins"]] == [False, True]
    assert ended.object["summary"]["failed"] == 2


def test_a_run_is_compared_with_an_earlier_one(mtf, spoilt, tmp_path, monkeypatch):
    before = tmp_path / "before.json"
    mtf("check", spoilt, *QUICK, "--write-json", before)
    monkeypatch.delenv(DEFECT_VARIABLE)

    ended = mtf("check", spoilt, *QUICK, "--compare", before)

    assert ended.code == Exit.DONE
    assert "since then: 2 better, 0 worse, 0 added, 0 gone" in ended.lines
    assert any(line.startswith(f"better {SPOILT}") for line in ended.lines)


def test_annotations_hold_no_control_characters_of_a_file_name(mtf, tmp_path):
    spoilt = tmp_path / "lib\x1b[31m\udcff.so"
    spoilt.write_bytes(b"no library")

    ended = mtf("check", spoilt, "--level", 1, "--annotations", "github")

    (annotation,) = (line for line in ended.lines if line.startswith("::error title="))
    assert "\\x1b[31m\\xff" in annotation
    assert b"\x1b" not in ended.out


def test_a_reader_that_leaves_makes_no_success_of_a_defect(spoilt):
    reading, writing = os.pipe()
    os.close(reading)
    words = ["check", spoilt, *QUICK, "--json"]  # more than a buffer holds
    done = subprocess.run(
        [sys.executable, "-m", "modular_tf", *words], stdout=writing, stderr=subprocess.PIPE,
        check=False,
    )  # fmt: skip
    os.close(writing)

    assert (done.returncode, done.stderr) == (Exit.NO, b"")


def test_junit_and_annotations_are_written(mtf, spoilt, tmp_path):
    path = tmp_path / "junit.xml"

    ended = mtf("check", spoilt, *QUICK, "--junit", path, "--annotations", "github")

    suites = ET.parse(path).getroot()
    assert sum(int(suite.get("failures")) for suite in suites) == 2
    (annotation,) = (line for line in ended.lines if line.startswith("::error title="))
    assert f"{SPOILT} (defect%3A// raw and host)" in annotation


def test_a_page_and_a_badge_are_written(mtf, spoilt, tmp_path):
    before, page, badge = (tmp_path / name for name in ("before.json", "page.html", "badge.svg"))
    mtf("check", GOOD, *QUICK, "--write-json", before)

    ended = mtf(
        "check", spoilt, *QUICK, "--html", page, "--badge", badge, "--compare", before
    )  # fmt: skip

    assert ended.lines[-1].startswith(f"{Path(spoilt).name}: does not conform")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert f"<code>{SPOILT}</code>" in page.read_text()
    assert "Since the earlier run" in page.read_text()
    told = ET.parse(badge).getroot().get("aria-label")
    assert told.startswith("modular-tf: does not conform, level ")


@pytest.mark.parametrize(
    ("option", "beginning"), [("--html", b"<!DOCTYPE html>"), ("--badge", b"<svg ")]
)
def test_page_and_badge_go_to_standard_output_too(option, beginning, mtf):
    ended = mtf("check", GOOD, *QUICK, option, "-")

    assert ended.code == Exit.DONE
    assert ended.out.startswith(beginning)


@pytest.mark.parametrize("option", ["--junit", "--write-json", "--html", "--badge"])
def test_a_report_is_never_written_through_a_link(option, mtf, tmp_path):
    target, link = tmp_path / "target", tmp_path / "report"
    target.write_text("somebody else's")
    link.symlink_to(target)

    ended = mtf("check", GOOD, *QUICK, option, link)

    assert (ended.code, ended.out) == (Exit.NO, b"")  # before anything was checked
    assert f"{link}: is a symbolic link" in ended.err
    assert target.read_text() == "somebody else's"


def test_a_report_goes_to_standard_output_in_the_place_of_the_text(mtf, spoilt):
    suites = ET.fromstring(mtf("check", spoilt, *QUICK, "--junit", "-").out)
    report = mtf("check", spoilt, *QUICK, "--write-json", "-", "--annotations", "github")

    assert sum(int(suite.get("failures")) for suite in suites) == 2
    assert report.object["summary"]["failed"] == 2
    assert "::error title=" in report.err


@pytest.mark.parametrize(
    "other",
    [["--json"], ["--write-json", "-"], ["--html", "-"], ["--badge", "-"]],
    ids=lambda words: words[0],
)
def test_one_report_alone_goes_to_standard_output(other, mtf):
    ended = mtf("check", GOOD, *QUICK, "--junit", "-", *other)

    assert (ended.code, ended.out) == (Exit.USAGE, b"")
    assert "can go to standard output" in ended.err


def test_a_seed_is_told_and_taken(mtf):
    first = mtf("check", GOOD, "--only", SPOILT, "--json").object["plugins"][0]["seed"]

    assert (
        mtf("check", GOOD, "--only", SPOILT, "--seed", first, "--json").object["plugins"][0]["seed"]
        == first
    )


def test_a_known_deviation_conforms_with_its_reason(mtf, spoilt, tmp_path):
    settings = tmp_path / "check.toml"
    settings.write_text(f'[[known]]\ncheck = "{SPOILT}"\nreason = "the store says so"\n')

    ended = mtf("check", spoilt, *QUICK, "--settings", settings)

    assert ended.code == Exit.DONE
    assert any("known deviation: the store says so" in line for line in ended.lines)


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


def test_a_store_in_memory_needs_no_root(mtf):
    assert mtf("check", GOOD, *QUICK).err == ""


@pytest.mark.parametrize("defect", ["no-place", "no-place-for-files"])
def test_one_line_asks_for_a_root_where_nothing_can_be_made(mtf, monkeypatch, defect):
    monkeypatch.setenv(DEFECT_VARIABLE, defect)
    ended = mtf("check", defective_plugin("filesystem"), "--level", 3)
    (line,) = (line for line in (*ended.lines, *ended.err.splitlines()) if "--root" in line)

    assert re.match(r"blocked (FS-\d{3}, ){3}and \d{3} more: .*defect://modular-tf-check", line)
    assert "--profile" in line
    assert "NOT_FOUND (5): no store for " in line
    assert [line for line in ended.lines if line.startswith("FAILED")] == []
    assert [line for line in ended.lines if line.startswith("blocked")] == [line]
    assert "is not known to conform" in ended.lines[-1]


def test_a_root_that_cannot_be_used_is_named_in_one_line(mtf, monkeypatch):
    monkeypatch.setenv(DEFECT_VARIABLE, "no-place")
    ended = mtf("check", defective_plugin("filesystem"), *QUICK, "--root", "defect://wrong/place")
    (line,) = (line for line in ended.lines if line.startswith("blocked"))

    assert "below defect://wrong/place" in line
    assert "--root" in line


def test_a_known_deviation_that_is_none_is_told(mtf, tmp_path):
    settings = tmp_path / "check.toml"
    settings.write_text(f'[[known]]\ncheck = "{SPOILT}"\nreason = "once"\n')

    ended = mtf("check", GOOD, *QUICK, "--settings", settings)

    assert any(f"{SPOILT} is no known deviation any more" in line for line in ended.lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_a_signal_ends_tells_what_is_known(number, tmp_path):
    """All its processes get the signal, as from a terminal or `timeout`."""
    path, text = tmp_path / "report.json", tmp_path / "report.txt"
    command = [sys.executable, "-m", "modular_tf", "check", GOOD, "--level", "5"]
    with text.open("w") as redirected:
        child = subprocess.Popen(
            [*command, "--write-json", str(path)],
            stdout=redirected, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
    wait_for_zygote(child.pid)
    os.killpg(child.pid, number)
    _, complaint = child.communicate(timeout=120)

    assert child.returncode == Exit.INTERRUPTED, complaint
    said = text.read_text().splitlines()
    assert any("checks have no outcome" in line or "nothing was checked" in line for line in said)
    assert said[-1] == CUT_SHORT
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


# ---- Nothing checked -----------------------------------------------------------------------------


def test_an_empty_folder_is_no_success(mtf, tmp_path):
    ended = mtf("check", tmp_path)

    assert ended.code == Exit.NOTHING
    assert f"nothing was checked: no library in {tmp_path}" in ended.err


def test_a_path_that_is_not_there_is_no_success(mtf, tmp_path):
    ended = mtf("check", tmp_path / "none.so")

    assert ended.code == Exit.NOTHING
    assert "LD-001" in ended.err


def test_a_name_that_nothing_has_is_said_once(mtf):
    ended = mtf("check", "nowhere")

    assert ended.err.startswith("modular-tf: nowhere: no such file, and no plugin of that name; ")


def test_checks_that_are_all_skipped_are_no_success(mtf):
    ended = mtf("check", GOOD, "--only", "FS-303")  # transactions: it has none

    assert ended.code == Exit.NOTHING
    assert ended.lines[-1].endswith(": nothing was checked")


def test_a_file_that_is_no_library_does_not_conform(mtf, tmp_path):
    path = tmp_path / "libtext.so"
    path.write_text("not a library at all\n")

    ended = mtf("check", path)

    assert ended.code == Exit.NO
    assert any(line.startswith("FAILED LD-") for line in ended.lines)


# ---- Usage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        (),
        (GOOD, "--level", "6"),
        (GOOD, "--only", "NO-SUCH"),
        (GOOD, "--profile", "none"),
        (GOOD, "--patience", "0"),
        (GOOD, "--jobs", "0"),
        (GOOD, "--settings", "/no/such/file.toml"),
        (GOOD, "--compare", "/no/such/report.json"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(mtf, words):
    ended = mtf("check", *words)

    assert ended.code == Exit.USAGE
    assert ended.err.strip()
    assert not ended.out


def test_a_name_that_nobody_has_is_a_failure(mtf):
    ended = mtf("check", "no_such_plugin")

    assert ended.code == Exit.NO
    assert GOOD in ended.err


# ---- The list ------------------------------------------------------------------------------------


def test_every_check_is_listed(mtf):
    ended = mtf("check", "--list", "--level", 5)

    assert [line.split("\t")[0] for line in ended.lines] == list(all_checks())


def test_the_list_is_also_for_programs(mtf):
    listed = mtf("check", "--list", "--only", SPOILT, "--json").object

    assert [check["id"] for check in listed["checks"]] == [SPOILT]
    assert "object-store" in listed["profiles"]
