"""Stores that cannot be written to are checked on files that were put there before."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from modular_tf.check.filesystem.workspace import write_prepared_files
from modular_tf.check.job import Job, Limits
from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.plan import selected
from modular_tf.check.run import CheckProcesses
from modular_tf.check.settings import CheckSettings, bundled_profile, on_prepared_files
from modular_tf.check.target import Target
from modular_tf.cli.main import run as run_command
from tests.check.building import defective_plugin

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("prepared files")  # one run of the kit serves all

_FINE = {Verdict.PASSED, Verdict.SKIPPED, Verdict.BLOCKED, Verdict.NOTED}
_OPTIONS = Options(prepared=True, large_bytes=100_000, many=50)


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module", params=[Pass.RAW, Pass.HOST])
def run(request, tmp_path_factory):
    """Every check on the local disk, where it is only read: outcomes by id, and the tree."""
    folder = tmp_path_factory.mktemp("prepared")
    write_prepared_files(str(folder), _OPTIONS)
    before = _content(folder)
    settings = on_prepared_files(CheckSettings())
    groups = defaultdict(list)
    for check in selected(settings, ["filesystem"]):
        if request.param in check.ways:
            groups[check.group].append(check.id)
    path = str(defective_plugin("local_filesystem"))
    target = Target(
        path, "filesystem", request.param, scheme="file", root=f"file://{folder}", options=_OPTIONS
    )
    with CheckProcesses(Limits()) as processes:
        results = processes.run([Job(target, "file", tuple(ids)) for ids in groups.values()])
    assert [result.fault for result in results if result.fault] == []
    outcomes = {outcome.check_id: outcome for result in results for outcome in result.outcomes}
    return outcomes, before, _content(folder)


def test_nothing_is_amiss(run):
    amiss = [o for o in run[0].values() if o.verdict not in _FINE]

    assert amiss == [], "\n".join(f"{o.check_id}: {o.message} {o.found}" for o in amiss)


@pytest.mark.parametrize(
    "check_id",
    ["FS-151", "FS-156", "FS-158", "FS-161", "FS-165", "FS-199", "FS-266", "FS-278", "FS-330"],
)
def test_what_can_be_read_is_checked(check_id, run):
    assert run[0][check_id].verdict is Verdict.PASSED


@pytest.mark.parametrize("check_id", ["FS-170", "FS-206", "FS-220", "FS-224", "FS-235", "FS-244"])
def test_what_would_change_something_is_not_tried(check_id, run):
    assert run[0][check_id].verdict is Verdict.SKIPPED


def test_nothing_is_changed(run):
    assert run[1] == run[2]


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
