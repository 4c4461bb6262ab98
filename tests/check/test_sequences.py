"""Random sequences: programs as data, the worker that may be lost, the hunt, and the replay."""

from __future__ import annotations

import json
import random
import shlex
from contextlib import nullcontext
from itertools import chain, repeat
from types import SimpleNamespace

import pytest

from modular_tf.check import sequences
from modular_tf.check.catalogue import all_checks
from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.filesystem.model import script
from modular_tf.check.outcome import Pass
from modular_tf.check.run import replayed
from modular_tf.check.sequences import (
    Failure,
    Replay,
    SequenceSession,
    performer_of,
    random_program,
    reduced,
    search,
    step_strategy,
)
from modular_tf.check.settings import CheckSettings
from modular_tf.check.target import Target
from modular_tf.errors import ConfigError
from tests.check.building import DEFECT_VARIABLE, defective_plugin

PROGRAM = (
    ("write", ["é*", ["00ff61"]]),
    ("append", ["d/a", []]),
    ("read", ["a", 0, 4]),
    ("map", ["a"]),
    ("paths_exist", [["a", "b"]]),
    ("copy_file", ["é*", "b"]),
    ("rename_file", ["b", "d"]),
)
_EACH_KIND = pytest.mark.parametrize("kind", ["filesystem", "device"])


# ---- Programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "ordinal"), [("mine", None), (None, 2)])
def test_a_replay_is_one_word(scheme, ordinal):
    replay = Replay("FS-320", Pass.HOST, scheme, ordinal, PROGRAM)

    assert Replay.from_token(replay.token()) == replay
    assert replay.token().replace("-", "").replace("_", "").isalnum()


def test_what_is_no_replay_or_no_program_is_refused():
    programs = ("", {}, [["a"]], [["a", 3]], [[3, []]])
    wrong = [Replay("FS-320", Pass.RAW, "", None, program).token() for program in programs]
    for token in ("", "é", "eJwDAAAAAAE", "AAAA", *wrong):
        with pytest.raises(ConfigError, match="--replay"):
            Replay.from_token(token)


@pytest.mark.parametrize(
    ("check_id", "reached"), [("XX-1", Pass.RAW), ("FS-157", Pass.RAW), ("SE-300", Pass.LIBRARY)]
)
def test_a_replay_of_no_check_of_sequences_is_refused(check_id, reached):
    replay = Replay(check_id, reached, None, 0, ())

    with pytest.raises(ConfigError, match=f"no check {check_id} tries random sequences"):
        replayed(replay, None, CheckSettings(), print)


def test_a_replay_that_is_blocked_names_the_rules_that_say_why(monkeypatch):
    """Nothing is known of other checks, so none of them is left out."""

    def load(*_):
        raise Blocked("nothing is allocated", "SE-116")

    monkeypatch.setattr("modular_tf.check.run.session_of_group", load)
    monkeypatch.setattr(
        "modular_tf.check.run.target_of", lambda *_, **__: Target("", "device", Pass.RAW)
    )
    replay = Replay("SE-300", Pass.RAW, None, 0, ())

    outcome = replayed(replay, None, CheckSettings(), print)

    assert outcome.message == "nothing is allocated: see SE-116"


def test_a_program_is_shown_as_statements():
    assert script(PROGRAM) == [
        'f = new_writable_file("é*"); append(f, "\\000\\377a", 3); close(f);',
        'f = new_appendable_file("d/a"); close(f);',
        'read(new_random_access_file("a"), 0, 4);',
        'new_read_only_memory_region_from_file("a");',
        'paths_exist({"a", "b"});',
        'copy_file("é*", "b");',
        'rename_file("b", "d");',
    ]


@_EACH_KIND
def test_every_step_that_is_drawn_can_be_shown_and_written(kind):
    from hypothesis import given, settings

    def expect_shown_and_written(program):
        replay = Replay("FS-320", Pass.RAW, "", None, program)

        assert Replay.from_token(replay.token()) == replay
        assert all(statement.endswith(";") for statement in performer_of(kind).script(program))

    kinds = performer_of(kind).STEPS
    drawn = given(step_strategy(kinds))(lambda step: expect_shown_and_written((step,)))
    settings(max_examples=200, database=None, deadline=None)(drawn)()

    program = random_program(kinds, random.Random(3), 500)
    expect_shown_and_written(program)
    assert {name for name, _ in program} == {name for names, _ in kinds for name in names}
    assert random_program(kinds, random.Random(3), 500) == program


# ---- The hunt, without a plugin ------------------------------------------------------------------


def _fails_with(*needed):
    """An attempt that fails where these operations come in this order."""

    def attempt(program):
        names = iter(name for name, _ in program)
        return Failure("it is wrong") if all(name in names for name in needed) else None

    return attempt


def _searched(attempt, kind="filesystem", **values):
    values = {"programs": 50, "longest": 30, "seed": 3, "shrink_seconds": 2, **values}
    return search(performer_of(kind).STEPS, attempt, **values)


def test_a_hunt_ends_with_the_smallest_program():
    attempt = _fails_with("copy_file", "delete_file")

    program, failure = _searched(attempt, programs=300, longest=100, shrink_seconds=20)

    assert [name for name, _ in program] == ["copy_file", "delete_file"]
    assert failure == Failure("it is wrong")
    at_times = chain([None] * 6, [failure], repeat(None))
    assert _searched(lambda _: next(at_times))[1] == failure


def test_what_fails_is_a_deviation_with_the_command_that_replays_it(monkeypatch):
    worker = SimpleNamespace(perform=_fails_with("copy_file"))
    monkeypatch.setattr(sequences, "SequenceWorker", lambda *_: nullcontext(worker))
    again = ("--root", "mine://host/root")
    target = Target("/libmine.so", "filesystem", Pass.HOST, scheme="mine", repeated_by=again)
    with (
        SequenceSession(target).workspace(all_checks()["FS-320"]) as session,
        pytest.raises(Deviation, match="it is wrong, in a random sequence of 1"),
    ):
        session.search()
    *words, option, token, path = shlex.split(session.calls[-1])
    found = Replay.from_token(token)

    assert (words, option) == (["#", "modular-tf", "check", *again], "--replay")
    assert path == target.path
    assert found[:-1] == ("FS-320", Pass.HOST, "mine", None)
    assert [name for name, _ in found.program] == ["copy_file"]


def test_a_hunt_that_finds_nothing_has_tried_all_and_the_same_seed_tries_the_same():
    def tried(seed):
        programs = []
        assert _searched(programs.append, "device", programs=20, seed=seed) is None
        assert len(programs) == 20
        return programs

    assert tried(4) == tried(4) != tried(5)


def test_steps_that_do_not_matter_are_left_out_while_there_is_time():
    steps = tuple(("stat", [str(n)]) for n in range(50))
    program = (*steps[:20], ("a", []), *steps[20:45], ("b", []), *steps[45:])
    attempt = _fails_with("a", "b")

    found, _ = reduced(program, Failure(""), attempt, deadline=float("inf"))
    assert found == (("a", []), ("b", []))
    assert reduced(program, Failure("x"), attempt, deadline=0.0)[0] == program
    tried = []

    def fail_where_it_is_long(steps):
        tried.append(steps)
        return Failure("it is long") if len(steps) > 10 else None

    _searched(fail_where_it_is_long, longest=100, shrink_seconds=0)
    assert len(tried) < 20


# ---- The worker ----------------------------------------------------------------------------------

# In a process of its own: what watches a child ends all that the process has started, here the
# servers of other tests.
_WORKER = """
    import json, signal, sys
    from modular_tf.check.catalogue import all_checks
    from modular_tf.check.expectation import Blocked
    from modular_tf.check.filesystem import model
    from modular_tf.check.filesystem.session import FilesystemSession
    from modular_tf.check.outcome import Pass
    from modular_tf.check.sequences import SequenceWorker
    from modular_tf.check.target import Target

    path, scratch, scheme, hangs, seconds, program = sys.argv[1:]
    if hangs == "step":
        model.perform = lambda ground, program: signal.pause()
    if hangs == "end":
        FilesystemSession.close = lambda session: signal.pause()
    target = Target(path, "filesystem", Pass.RAW, scheme=scheme, scratch=scratch)
    with SequenceWorker(target, all_checks()["FS-320"], float(seconds)) as worker:
        try:
            for _ in range(2):  # the process may be another one
                print(worker.perform(json.loads(program)))
        except Blocked as blocked:
            print(blocked, *blocked.see, blocked.wants_root, sep="|")
"""
_WRITE = ("write", ["a", []])
_CRASHES = (_WRITE, ("copy_file", ["a", "b"]), ("rename_file", ["b", "d"]))
_REPLACES = (_WRITE, ("write", ["replaced", []]), ("rename_file", ["a", "replaced"]))
_READS = (("write", ["middle", ["6162"]]), ("read", ["middle", 1, 4]))


@pytest.fixture
def performed(run_forked, tmp_path):
    """Return what a worker reports of a program that it performs twice."""

    def perform(program, defect="", *, scheme="defect", hangs="", seconds=60):
        given = (defective_plugin("filesystem"), tmp_path, scheme, hangs, seconds)
        environment = {DEFECT_VARIABLE: defect}
        done = run_forked(_WORKER, *given, json.dumps(program), env=environment)
        return done.stdout.splitlines()

    return perform


@pytest.mark.parametrize(
    ("program", "defect", "reported"),
    [
        (_CRASHES, "", ["None"]),
        (_CRASHES, "FS-320", ["crashed with SIGSEGV", "rename_file", "copy_file"]),
        (_REPLACES, "FS-236", ["rename_file", "ALREADY_EXISTS"]),
        (_READS, "FS-157", ["what read('middle', 1, 4) gave"]),
    ],
)
def test_a_worker_reports_a_crash_and_what_differs_from_the_model(
    performed, program, defect, reported
):
    lines = performed(program, defect)

    assert len(lines) == 2
    assert [part for part in reported for line in lines if part not in line] == []


@pytest.mark.parametrize(
    ("scheme", "defect", "blocked"),
    [
        ("none", "", "scheme 'none' is not usable: the plugin does not name it|False"),
        ("defect", "no-place", "nothing can be made below defect://modular-tf-check|True"),
    ],
)
def test_what_blocks_a_worker_is_raised_whole(performed, scheme, defect, blocked):
    assert performed([_WRITE], defect, scheme=scheme) == [blocked]


@pytest.mark.parametrize(
    ("hangs", "seconds", "reported"), [("step", 1, "did not return within 1 s"), ("end", 4, "None")]
)
def test_a_worker_that_hangs_is_ended(performed, hangs, seconds, reported):
    """The worker's own step waits, as a plugin would that never comes back, or its end does."""
    assert all(reported in line for line in performed([_WRITE], hangs=hangs, seconds=seconds))
