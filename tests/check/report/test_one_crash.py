"""The whole report on a plugin with one fault: a write through NULL in rename_file."""

from __future__ import annotations

import json
import os
import sys

from modular_tf.cli.check import broken_at_words
from modular_tf.cli.process import Exit
from tests.check.report.crashing_plugin import LINE, SOURCE, crashing_plugin
from tests.fixtures.process_group import run_in_group

_LINES_OF_A_SCREEN, _COLUMNS = 40, 100
_RENAMING = {"FS-235", "FS-236", "FS-237", "FS-238", "FS-239", "FS-240", "FS-241", "FS-242"}
_PLACE = f"{SOURCE}:{LINE}"


def test_the_report_on_one_crash_fits_a_screen_and_names_call_line_and_remedy(tmp_path):
    """As its author would check the renames; the JSON report lies beside the text."""
    command = [sys.executable, "-m", "modular_tf", "check", str(crashing_plugin())]
    command += ["--through-host", "--only", "renaming", "--write-json", "report.json"]
    done = run_in_group(command, cwd=tmp_path, env=os.environ, timeout=240)
    assert done.returncode == Exit.NO, done.stderr
    lines = done.stdout.splitlines()
    (plugin,) = json.loads((tmp_path / "report.json").read_text())["plugins"]
    crashed = [check for check in plugin["checks"] if check["verdict"] == "crashed"]
    ids = {check["check_id"] for check in crashed}

    on_terminal = [part for line in lines for part in broken_at_words(line, _COLUMNS)]
    assert max(len(lines), len(on_terminal)) <= _LINES_OF_A_SCREEN

    # One crash is reported once, and the other checks by their ids.
    assert ids >= _RENAMING
    assert len(crashed) > len(ids)  # by the slots and by the host
    assert [line for line in lines if line.startswith("CRASHED ")] == [
        "CRASHED FS-237 (renaming, level 3) crash:// raw and host"
    ]
    (others,) = [line for line in lines if line.startswith("    the same: ")]
    assert f"({len(ids)} checks, {len(crashed)} outcomes of one cause)" in others
    assert all(check_id in others for check_id in ids - {"FS-237"})

    text = "\n".join(lines)
    assert "crashed with SIGSEGV (signal 11) in rename_file('crash://…/X', 'crash://…/Y')" in text
    frame = "crashing::note_rename(char const*, crashing::Journal*)"
    assert f"    frames:   libcrashing_rename.so {frame} at {_PLACE}\n" in text
    assert f"    remedy:   Mend rename_file at {_PLACE}: it uses memory that it must not" in text
    assert "    again:    modular-tf check --only FS-237 --seed " in text
    (remedy,) = {check["remedy"] for check in crashed}  # for programs
    assert f"{SOURCE.name}:{LINE}" in remedy
