"""The whole report on a plugin with one fault: a write through NULL in rename_file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from modular_tf.cli.check import broken_at_words
from modular_tf.cli.process import Exit
from tests.check.report.crashing_plugin import LINE, SOURCE, crashing_plugin

_LINES_OF_A_SCREEN, _COLUMNS = 40, 100
_RENAMING = {"FS-235", "FS-236", "FS-237", "FS-238", "FS-239", "FS-240", "FS-241", "FS-242"}

pytestmark = pytest.mark.xdist_group("one-crash")


@pytest.fixture(scope="module")
def library():
    return crashing_plugin()


@pytest.fixture(scope="module")
def run(library, tmp_path_factory):
    """Check the plugin as its author would, once; the JSON report lies beside the text."""
    folder = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "modular_tf", "check", library, "--through-host"]
    command += ["--write-json", "report.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == Exit.NO, done.stderr
    return done.stdout.splitlines(), json.loads((folder / "report.json").read_text())


def test_the_report_on_one_crash_fits_a_screen(run):
    lines, _ = run

    assert len(lines) <= _LINES_OF_A_SCREEN
    on_terminal = [part for line in lines for part in broken_at_words(line, _COLUMNS)]
    assert len(on_terminal) <= _LINES_OF_A_SCREEN


def test_one_crash_is_told_once_and_the_other_checks_by_their_ids(run):
    lines, report = run
    (plugin,) = report["plugins"]
    crashed = [check for check in plugin["checks"] if check["verdict"] == "crashed"]
    ids = {check["check_id"] for check in crashed}

    assert ids >= _RENAMING
    assert len(crashed) > len(ids)  # by the slots and by the host
    assert [line for line in lines if line.startswith("CRASHED ")] == [
        "CRASHED FS-237 (renaming, level 3) crash:// raw and host"
    ]
    (others,) = [line for line in lines if line.startswith("    the same: ")]
    assert f"({len(ids)} checks, {len(crashed)} outcomes of one cause)" in others
    assert all(check_id in others for check_id in ids - {"FS-237"})


def test_a_crash_is_told_with_call_function_line_and_a_remedy_for_crashes(run):
    lines, _ = run
    text = "\n".join(lines)
    place = f"{SOURCE}:{LINE}"

    assert "crashed with SIGSEGV (signal 11) in rename_file('crash://…/X', 'crash://…/Y')" in text
    frame = "crashing::note_rename(char const*, crashing::Journal*)"
    assert f"    frames:   libcrashing_rename.so {frame} at {place}\n" in text
    assert f"    remedy:   Mend rename_file at {place}: it uses memory that it must not" in text
    assert "    again:    modular-tf check --only FS-237 --seed " in text


def test_the_remedy_for_programs_fits_a_crash_too(run):
    _, report = run
    crashed = [c for c in report["plugins"][0]["checks"] if c["verdict"] == "crashed"]

    assert {check["remedy"] for check in crashed} == {crashed[0]["remedy"]}
    assert f"{SOURCE.name}:{LINE}" in crashed[0]["remedy"]
