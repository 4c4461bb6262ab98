"""Options of checks on the command line, and the commands that repeat a check."""

import json
import shlex
from itertools import pairwise

import pytest

from modular_tf.check.outcome import Pass
from modular_tf.check.sequences import Replay
from modular_tf.cli.process import Exit
from tests.check.building import DEFECT_VARIABLE, defective_plugin


@pytest.mark.parametrize("words", [("--option", 'schemes=["am", ""]'), ("--root", "r://x")])
def test_what_is_no_scheme_of_the_plugin_is_not_taken_for_a_part_of_one(mtf, words):
    ended = mtf("check", "ram_filesystem", "--only", "FS-151", "--json", *words)
    (plugin,) = ended.object["plugins"]

    assert (ended.code, plugin["checks"]) == (Exit.NOTHING, [])
    remarks = "".join(plugin["remarks"])
    assert "serves the schemes 'ram', and of those" in remarks


def test_known_deviations_that_were_not_tried_or_are_none_any_more_are_reported(mtf, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text(
        '[[known]]\ncheck = "FS-157"\nsubject = "ram"\nreason = "so it is"\n'
        '[[known]]\ncheck = "FS-157"\nreason = "so it was"\n'
    )

    ended = mtf("check", "ram_filesystem", "--only", "FS-157", "--settings", settings)

    assert "  the known FS-157 is of 'ram', and was tried on ram://" in ended.lines
    outdated = "  FS-157 is no known deviation any more: remove it (so it was)"
    assert outdated in ended.lines


@pytest.fixture
def words_again(mtf, tmp_path, monkeypatch):
    """Check a plugin with a defect, and return the words behind `again:` of its report."""
    monkeypatch.setenv(DEFECT_VARIABLE, "FS-157")
    monkeypatch.chdir(tmp_path)

    def run(*words):
        ended = mtf("check", *words, defective_plugin("filesystem"), "--only", "FS-157")
        assert ended.code == Exit.NO, ended.err
        found = [line for line in ended.lines if line.startswith("    again:")]
        return shlex.split(found[0].partition(":")[2])

    return run


def test_the_command_that_repeats_a_check_has_what_was_asked_for(words_again, tmp_path, mtf):
    options = [
        ("--patience", "2.5"),
        ("--profile", "object-store"),
        ("--root", "defect://host/root"),
        ("--option", "repeat=20"),
        ("--option", 'schemes=["defect"]'),
    ]
    again = words_again("--through-host", *(word for option in options for word in option))
    assert again[:2] == ["modular-tf", "check"]
    assert set(options) <= set(pairwise(again))
    assert "--through-host" in again

    settings = tmp_path / "other.toml"
    settings.write_text('profile = "mine"\n[options]\nrepeat = 3\n[profiles.mine]\nabout = "x"\n')
    again = words_again("--settings", "other.toml", "--seed", "5")
    assert again[again.index("--settings") + 1] == str(settings)
    assert "--profile" not in again  # the file says so
    assert mtf(*again[1:]).code == Exit.NO


def test_a_store_that_nothing_may_be_made_in_is_left_alone_by_the_repeated_check(mtf, tmp_path):
    store, page = tmp_path / "store", tmp_path / "page.json"
    mtf("check", "--write-files", store)
    held = sorted(store.rglob("*"))
    words = ("--prepared", "--root", f"file://{store}")

    mtf("check", "posix_filesystem", "--only", "FS-157", *words, "--write-json", page)
    (plugin,) = json.loads(page.read_text())["plugins"]
    again = (*plugin["repeated_by"], plugin["path"])
    ended = mtf("check", "--only", "FS-157", "--only", "deletion", *again)

    assert ended.code == Exit.DONE
    assert "--prepared" in plugin["repeated_by"]
    assert sorted(store.rglob("*")) == held


@pytest.mark.parametrize("defect", ["", "FS-320"])
def test_a_random_sequence_is_replayed_call_by_call(mtf_process, monkeypatch, defect):
    if defect:
        monkeypatch.setenv(DEFECT_VARIABLE, defect)
    program = (("write", ["a", []]), ("copy_file", ["a", "b"]), ("rename_file", ["b", "c"]))
    replay = Replay("FS-320", Pass.RAW, "defect", None, program).token()
    words = ("--root", "defect://host/root", "--replay", replay)

    ended = mtf_process("check", defective_plugin("filesystem"), *words)

    assert "rename_file(" in ended.err  # each call is written before it is made
    if defect:
        assert ended.code not in {Exit.DONE, Exit.USAGE}  # it ends the process
    else:
        assert (ended.code, ended.lines) == (Exit.DONE, ["nothing is wrong in these 3 steps"])
