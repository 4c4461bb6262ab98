"""Stores that cannot be written to are checked on files that were put there before."""

from __future__ import annotations

import pytest

from modular_tf.check.filesystem.workspace import write_prepared_files
from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.plan import selected
from modular_tf.check.settings import CheckSettings, bundled_profile, on_prepared_files
from modular_tf.cli.main import run as run_command
from tests.check.trying import FINE, defect_job, ids_by_group
from tests.fixtures.matrices import sampled

_OPTIONS = Options(prepared=True, large_bytes=100_000, many=50, repeat=64)
_READ = "FS-151 FS-156 FS-158 FS-161 FS-165 FS-199 FS-266 FS-278 FS-330"
_CHANGING = "FS-170 FS-206 FS-220 FS-224 FS-235 FS-244"


def _content(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def _verdicts(outcomes, ids):
    return {outcomes[check_id].verdict for check_id in ids.split()}


@pytest.mark.parametrize("reached", sampled([Pass.RAW, Pass.HOST], [Pass.HOST]))
def test_what_can_be_read_is_checked_and_nothing_is_changed(reached, tmp_path, outcomes_of):
    write_prepared_files(str(tmp_path), _OPTIONS)
    before = _content(tmp_path)
    checks = selected(on_prepared_files(CheckSettings()), ["filesystem"])
    target = {"scheme": "file", "root": f"file://{tmp_path}", "options": _OPTIONS}
    outcomes = outcomes_of(
        *(
            defect_job("local_filesystem", "", ids, reached, **target)
            for ids in ids_by_group(checks, reached)
        )
    )

    fine = FINE | {Verdict.BLOCKED}
    amiss = [outcome for outcome in outcomes.values() if outcome.verdict not in fine]
    assert amiss == [], "\n".join(f"{o.check_id}: {o.message} {o.found}" for o in amiss)
    assert _verdicts(outcomes, _READ) == {Verdict.PASSED}
    assert _verdicts(outcomes, _CHANGING) == {Verdict.SKIPPED}
    assert _content(tmp_path) == before


def test_checks_that_want_a_file_are_tried_on_prepared_ones():
    settings = CheckSettings(profile=bundled_profile("read-only"))
    assert settings.profile.excuse(frozenset({"writes"})) == "skip"

    prepared = on_prepared_files(settings)
    assert prepared.profile.excuse(frozenset({"writes"})) is None
    assert prepared.profile.excuse(frozenset({"append"})) == "skip"
    assert prepared.options["prepared"] is True


def test_the_command_writes_the_files(tmp_path):
    status = run_command(["check", "--write-files", str(tmp_path / "made")])

    made = _content(tmp_path / "made")
    assert status == 0
    assert (made["F"], made["E"], made["N/file"]) == (b"abcd", b"", b"abcd")
    assert len(made["long"]) == 5 << 20


@pytest.mark.parametrize("name", ["F", "N/file", "N"])
def test_files_are_never_written_through_a_link(name, tmp_path):
    folder, target = tmp_path / "made", tmp_path / "elsewhere"
    target.mkdir()
    (target / "file").write_bytes(b"somebody else's")
    link = folder / name
    link.parent.mkdir(parents=True)
    link.symlink_to(target if name == "N" else target / "file")

    with pytest.raises(OSError, match="is a symbolic link"):
        write_prepared_files(str(folder), _OPTIONS)

    assert (target / "file").read_bytes() == b"somebody else's"
    assert link.is_symlink()
