"""The stage of filesystem checks: a directory for each, raw and through the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import BOTH, Check
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.filesystem.session import FilesystemSession
from modular_tf.check.level import Level
from modular_tf.check.native.checking_allocator import preload_environment
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.check.with_allocator import with_allocator
from tests.contrib.built_plugin import installed_plugin

BOTH_WAYS = pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST], ids=lambda one: one.value)


@pytest.fixture
def stage_of(tmp_path):
    """Return what makes a stage; all are closed in the end."""
    stages = []

    def make(path, reached, **fields):
        given = {"scheme": "ram", "scratch": str(tmp_path), **fields}
        stages.append(FilesystemSession(Target(str(path), "filesystem", reached, **given)))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


def _check(check_id="FS-156"):
    return Check(
        id=check_id, kind="filesystem", level=Level.WORKS, group="any", ways=BOTH,
        run=lambda _: None,
    )  # fmt: skip


def _fail_on(stage, roots):
    with stage.workspace(_check()) as ground:
        roots.append(ground.root)
        ground.make_full_dir()
        raise Deviation("as it must")


@BOTH_WAYS
def test_each_check_has_an_empty_directory_of_its_own(stage_of, reached):
    stage = stage_of(installed_plugin("ram_filesystem"), reached)
    with stage.workspace(_check()) as first:
        first.make_full_dir()
        assert first.content(first.make_file()) == b"abcd"
    with stage.workspace(_check()) as second:
        assert second.root != first.root
        assert second.get_children(second.root).value == []
        assert not second.exists(first.root)


@BOTH_WAYS
def test_the_directory_goes_after_a_failure_too(stage_of, reached):
    stage = stage_of(installed_plugin("ram_filesystem"), reached)
    roots = []
    with pytest.raises(Deviation, match="as it must"):
        _fail_on(stage, roots)

    assert stage.access.path_exists(*roots).code == Code.NOT_FOUND


@BOTH_WAYS
def test_calls_are_those_of_the_check(stage_of, reached):
    stage = stage_of(installed_plugin("ram_filesystem"), reached)
    with stage.workspace(_check()) as ground:
        assert stage.calls == []
        ground.path_exists(ground.missing())

    assert [call.split("(")[0] for call in stage.calls] == ["path_exists"]


@BOTH_WAYS
def test_each_path_has_its_own_code(stage_of, reached):
    with stage_of(installed_plugin("ram_filesystem"), reached).workspace(_check()) as ground:
        file = ground.make_file()
        answer = ground.paths_exist([file, f"{file}/x", ground.missing()])

    assert answer.value == [0, Code.FAILED_PRECONDITION, Code.NOT_FOUND]
    assert answer.returned is False


@BOTH_WAYS
def test_a_given_root_is_where_roots_are_made(stage_of, reached):
    path = installed_plugin("ram_filesystem")
    stage = stage_of(path, reached, root="ram://mine/below/")
    with stage.workspace(_check()) as ground:
        assert ground.root.startswith("ram://mine/below/")
        assert ground.make_file().startswith(f"{ground.root}/")


@BOTH_WAYS
def test_plain_files_lie_in_the_scratch_directory(stage_of, reached, tmp_path):
    stage = stage_of(installed_plugin("posix_filesystem"), reached, scheme="file")
    with stage.workspace(_check()) as ground:
        assert ground.root.startswith(f"file://{tmp_path}/")
        local = Path(ground.make_file().removeprefix("file://"))
        assert local.stat().st_size == 4

    assert not local.parent.exists()


@BOTH_WAYS
def test_chance_is_the_same_for_the_same_seed(stage_of, reached):
    drawn = []
    for seed in (1, 1, 2):
        stage = stage_of(installed_plugin("ram_filesystem"), reached, seed=seed)
        with stage.workspace(_check()) as ground:
            drawn.append(ground.random.random())

    assert drawn[0] == drawn[1] != drawn[2]


@BOTH_WAYS
def test_a_scheme_that_is_not_offered_blocks(stage_of, reached):
    with pytest.raises(Blocked, match="nobodys"):
        stage_of(installed_plugin("ram_filesystem"), reached, scheme="nobodys")


def test_a_plugin_whose_init_fails_blocks(stage_of, fixture_plugin):
    with pytest.raises(Blocked, match="init"):
        stage_of(fixture_plugin("init-fails"), Pass.RAW, scheme="fixture")


def test_slots_that_are_null_are_lacking(stage_of):
    plugin = installed_plugin("ram_filesystem")

    assert stage_of(plugin, Pass.RAW).lacks(("stat", "flush_caches")) == "flush_caches"
    assert stage_of(plugin, Pass.HOST).lacks(("stat", "flush_caches")) is None


def test_a_plugin_without_directories_still_has_a_root(stage_of, fixture_plugin):
    stage = stage_of(fixture_plugin("nothing-but-init"), Pass.RAW, scheme="fixture")
    with stage.workspace(_check()) as ground, pytest.raises(Unsupported):
        ground.make_file()


# ---- Harm ----

_TRY = """
    import sys, tempfile
    from modular_tf.check.catalogue import all_checks
    from modular_tf.check.memory_watch import is_damaged
    from modular_tf.check.filesystem.session import FilesystemSession
    from modular_tf.check.child import tried
    from modular_tf.check.outcome import Pass
    from modular_tf.check.target import Target

    path, scheme, reached, *checks = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        stage = FilesystemSession(
            Target(path, "filesystem", Pass(reached), scheme=scheme, scratch=scratch)
        )
        for check in checks:
            found = tried(all_checks()[check], stage, subject="", reached=Pass(reached))
            print(check, found.verdict.value, found.message, found.found, is_damaged())
    """


def _outcomes(run_python, defect, *checks, reached="raw", env=None):
    environment = {DEFECT_VARIABLE: defect, **(env or {})}
    plugin = defective_plugin("filesystem")
    return run_python(_TRY, plugin, "defect", reached, *checks, env=environment).stdout.splitlines()


def test_a_byte_behind_a_read_is_a_breach(run_python):
    (found,) = _outcomes(run_python, "FS-163", "FS-163")

    assert found == (
        "FS-163 failed read wrote outside of its output (rule FS-163) "
        "byte 2 of the 2 bytes that were lent True"
    )


def test_a_path_that_is_written_to_is_a_breach(run_python):
    (found,) = _outcomes(run_python, "FS-329", "FS-329")

    assert found.startswith("FS-329 failed path_exists wrote outside of its output (rule FS-329)")


def test_without_a_defect_nothing_is_damaged(run_python):
    found = _outcomes(run_python, "", "FS-156", "FS-329", env=preload_environment({}))

    assert found == ["FS-156 passed   False", "FS-329 passed   False"]


@with_allocator
@pytest.mark.parametrize("reached", ["raw", "host"])
@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        ("overrun", "heap block of 24 bytes overrun: byte 24 is 0x78"),
        ("kept-overrun", "heap block of 24 bytes overrun: byte 24 is 0x78"),
        ("free-twice", "heap block of 24 bytes freed twice"),
    ],
)
def test_any_check_sees_harm_to_the_heap(run_python, heap_plugin, reached, misuse, sentence):
    environment = preload_environment({"FIXTURE_MISUSE": misuse})
    child = run_python(_TRY, heap_plugin, "ram", reached, "FS-256", env=environment)
    (found,) = child.stdout.splitlines()

    if (misuse, reached) == ("kept-overrun", "host"):  # nobody looks at a block of the host's
        assert found == "FS-256 passed   False"
    else:
        assert found.startswith("FS-256 failed misuse of the heap was seen after path_exists(")
        assert found.endswith(f"{sentence} True")
