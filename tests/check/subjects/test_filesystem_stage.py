"""The stage of filesystem checks: a directory for each, raw and through the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.catalogue import all_checks
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.filesystem.session import FilesystemSession
from modular_tf.check.memory_watch import Breach, is_damaged
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from tests.contrib.built_plugin import installed_plugin

BOTH_WAYS = pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST], ids=lambda one: one.value)
_CHECK = all_checks()["FS-156"]


@pytest.fixture
def stage_of(tmp_path):
    """Return what makes a stage of a plugin, by default the one in memory; all are closed."""
    stages = []

    def make(reached, path=None, **fields):
        path = path or installed_plugin("ram_filesystem")
        given = {"scheme": "ram", "scratch": str(tmp_path), **fields}
        stages.append(FilesystemSession(Target(str(path), "filesystem", reached, **given)))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@BOTH_WAYS
def test_each_check_has_an_empty_directory_of_its_own_which_goes_with_it(stage_of, reached):
    stage, roots = stage_of(reached), []
    with stage.workspace(_CHECK) as first:
        first.make_full_dir()
        assert first.content(first.make_file()) == b"abcd"
    with stage.workspace(_CHECK) as second:
        assert second.root != first.root
        assert second.get_children(second.root).value == []
        assert not second.exists(first.root)

    def fail():
        with stage.workspace(_CHECK) as third:
            roots.append(third.root)
            third.make_full_dir()
            raise Deviation("as it must")

    with pytest.raises(Deviation, match="as it must"):
        fail()
    assert stage.access.path_exists(*roots).code == Code.NOT_FOUND


def test_a_file_that_a_check_has_left_open_is_cleaned_up_with_it(stage_of):
    stage = stage_of(Pass.RAW)
    with stage.workspace(_CHECK) as ground:
        left_open = ground.new_writable_file(ground.path("F")).value
        assert left_open.is_open

    assert not left_open.is_open


def test_what_a_failed_opening_has_left_is_not_cleaned_up_as_by_hosts(stage_of, monkeypatch):
    stage = stage_of(Pass.RAW)
    ask = stage.access.ask

    def fail(*arguments, **named):
        return replace(ask(*arguments, **named), code=int(Code.INTERNAL))

    with stage.workspace(_CHECK) as ground:
        uri = ground.make_file()
        with monkeypatch.context() as failing:
            failing.setattr(stage.access, "ask", fail)
            left = ground.new_random_access_file(uri).value

    assert left.is_open
    left.cleanup()


def test_damage_that_is_seen_behind_a_failed_check_is_noted(stage_of, monkeypatch):
    monkeypatch.setattr("modular_tf.check.memory_watch._Process.is_damaged", False)
    stage = stage_of(Pass.RAW)

    def free_twice():
        raise Breach("FS-329", "a block was freed twice")

    def fail():
        with stage.workspace(_CHECK):
            monkeypatch.setattr(stage.access, "close_left_open", free_twice)
            raise Deviation("as it must")

    with pytest.raises(Deviation, match="as it must"):
        fail()
    assert is_damaged()


@BOTH_WAYS
def test_roots_are_made_below_a_given_one_or_in_the_scratch_directory(stage_of, reached, tmp_path):
    with stage_of(reached, root="ram://mine/below/").workspace(_CHECK) as ground:
        assert ground.root.startswith("ram://mine/below/")
        assert ground.make_file().startswith(f"{ground.root}/")

    stage = stage_of(reached, installed_plugin("posix_filesystem"), scheme="file")
    with stage.workspace(_CHECK) as ground:
        assert ground.root.startswith(f"file://{tmp_path}/")
        local = Path(ground.make_file().removeprefix("file://"))
        assert local.stat().st_size == 4
    assert not local.parent.exists()


def test_chance_is_the_same_for_the_same_seed(stage_of):
    drawn = []
    for seed in (1, 1, 2):
        with stage_of(Pass.RAW, seed=seed).workspace(_CHECK) as ground:
            drawn.append(ground.random.random())

    assert drawn[0] == drawn[1] != drawn[2]


@BOTH_WAYS
def test_a_scheme_that_is_not_offered_blocks(stage_of, reached):
    with pytest.raises(Blocked, match="nobodys"):
        stage_of(reached, scheme="nobodys")


def test_a_plugin_whose_init_fails_blocks_and_one_without_directories_has_a_root(
    stage_of, fixture_plugin
):
    with pytest.raises(Blocked, match="init"):
        stage_of(Pass.RAW, fixture_plugin("init-fails"), scheme="fixture")
    stage = stage_of(Pass.RAW, fixture_plugin("nothing-but-init"), scheme="fixture")
    with stage.workspace(_CHECK) as ground, pytest.raises(Unsupported):
        ground.make_file()
