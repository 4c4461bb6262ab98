"""Hook functions of several packages work together as pluggy promises, and one that fails alone."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from modular_tf.hookspecs import hookimpl
from modular_tf.service.report import State
from tests.filesystem.memory_store import MemoryStore

VETO = "modular_tf_veto"


def hooks(hook, function, name=None, **options):
    """Return an object with one hook function."""
    made = type(name or "Hooks", (), {hook: staticmethod(hookimpl(**options)(function))})
    return made()


def veto(answer, calls=None, **options):
    """Return an object that vetoes every plugin, and appends to `calls` when it is asked."""

    def modular_tf_veto(candidate):
        if calls is not None:
            calls.append(answer)
        return answer

    return hooks(VETO, modular_tf_veto, **options)


def failing(hook, **options):
    """Return an object one of whose functions raises."""

    def fail():
        raise RuntimeError("broken hook")

    return hooks(hook, fail, name="Failing", **options)


@pytest.fixture
def refusal_by(plugin_file, make_service):
    """Return what a plugin is refused for where these hooks are asked, None if it is loaded."""

    def load(*given):
        record = make_service(plugin_file("liba.so"), hooks=given).load()["a"]
        return record.reason and record.reason.message

    return load


# ---- Order ----


def test_the_first_that_is_given_is_asked_first_and_its_answer_ends_the_call(refusal_by):
    calls = []

    assert refusal_by(veto(None, calls), veto("first", calls), veto("second", calls)) == "first"
    assert calls == [None, "first"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (veto("plain"), veto("expected", tryfirst=True)),
        (veto("late", trylast=True), veto("expected")),
    ],
    ids=["tryfirst", "trylast"],
)
def test_tryfirst_comes_before_and_trylast_after_the_others(first, second, refusal_by):
    assert refusal_by(first, second) == "expected"


def test_two_objects_of_one_class_are_two_implementations(refusal_by):
    calls = []

    assert refusal_by(veto(None, calls), veto(None, calls)) is None
    assert calls == [None, None]


def test_a_module_brings_functions_of_other_names(refusal_by):
    def decide(probe):
        return f"no {probe.candidate.name}"

    marked = hookimpl(specname=VETO)(decide)

    assert refusal_by(SimpleNamespace(decide=marked)) == "no a"


# ---- Wrappers ----


def test_a_wrapper_sees_and_replaces_the_answers_of_other_packages(make_service):
    def only_one():
        answers = yield
        merged = {}
        for answer in reversed(answers):
            merged.update(answer)
        return [{"both": merged["both"]}]

    first = hooks("modular_tf_filesystems", lambda: {"both": MemoryStore(), "a1": MemoryStore()})
    second = hooks("modular_tf_filesystems", lambda: {"both": MemoryStore()})
    wrapper = hooks("modular_tf_filesystems", only_one, wrapper=True)
    service = make_service(hooks=[first, second, wrapper])
    report = service.load()

    assert list(service.schemes()) == ["both"]
    assert report.hook_failures == ()


def test_a_wrapper_may_allow_what_another_package_vetoes(refusal_by):
    def overrule(candidate):
        yield

    assert refusal_by(veto("no"), hooks(VETO, overrule, wrapper=True)) is None


def test_a_wrapper_of_the_former_kind_is_left_out_and_named(make_service):
    def explain(candidate):
        outcome = yield
        outcome.force_result(f"{candidate.name}: {outcome.get_result()}")

    service = make_service(hooks=[hooks(VETO, explain, name="Former", hookwrapper=True)])
    (failure,) = service.load().hook_failures
    assert failure.message.startswith("adding Former failed: ")
    assert "use wrapper=True" in failure.message


def test_a_wrapper_is_closed_where_an_interrupt_ends_the_call(plugin_file, make_service):
    closed = []

    def wrap(candidate):
        try:
            return (yield)
        finally:
            closed.append(True)
            raise RuntimeError("this must not replace the interrupt")

    def interrupt():
        raise KeyboardInterrupt

    given = [hooks(VETO, interrupt), hooks(VETO, wrap, wrapper=True)]
    with pytest.raises(KeyboardInterrupt):
        make_service(plugin_file("liba.so"), hooks=given).load()

    assert closed == [True]


# ---- Failures ----


def _fails_at_once():
    raise RuntimeError("broken hook")
    yield


def _fails_at_the_end():
    yield
    raise RuntimeError("broken hook")


def _never_yields():
    return
    yield


def _yields_twice():
    try:
        yield
        yield
    finally:
        raise RuntimeError("broken hook")


def _returns_nonsense():
    yield
    return [5]


BROKEN = [_fails_at_once, _fails_at_the_end, _never_yields, _yields_twice, _returns_nonsense]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda function: function.__name__)
def test_a_broken_wrapper_is_named_and_the_answers_of_others_remain(broken, make_service):
    good = hooks("modular_tf_filesystems", lambda: {"good": MemoryStore()})
    bad = hooks("modular_tf_filesystems", broken, name="Broken", wrapper=True)
    service = make_service(hooks=[bad, good])
    (failure,) = service.load().hook_failures

    assert service.schemes() == {"good": "MemoryStore"}
    assert failure.stage == "hooks"
    assert failure.message.startswith("modular_tf_filesystems of Broken failed: ")


def test_what_a_wrapper_takes_from_the_answers_before_it_fails_stays(make_service):
    def empties():
        answers = yield
        answers[0].clear()
        answers.clear()
        raise RuntimeError("broken hook")

    good = hooks("modular_tf_filesystems", lambda: {"good": MemoryStore()})
    bad = hooks("modular_tf_filesystems", empties, name="Broken", wrapper=True)
    service = make_service(hooks=[bad, good])
    service.load()

    assert service.schemes() == {"good": "MemoryStore"}


@pytest.mark.parametrize("broken", BROKEN[:4], ids=lambda function: function.__name__)
def test_a_broken_wrapper_of_the_veto_forbids(broken, refusal_by):
    message = refusal_by(hooks(VETO, broken, name="Broken", wrapper=True))

    assert message.startswith("modular_tf_veto of Broken failed: ")


def test_an_answer_before_a_failure_counts_and_a_failure_before_an_answer(refusal_by):
    assert refusal_by(veto("no"), failing(VETO)) == "no"
    assert "of Failing failed: RuntimeError" in refusal_by(failing(VETO), veto("no"))


def test_others_are_told_of_an_outcome_where_one_fails(plugin_file, make_service):
    told = []
    given = [
        failing("modular_tf_outcome"),
        hooks("modular_tf_outcome", lambda record: told.append(record.name)),
        failing("modular_tf_outcome", trylast=True),
    ]
    service = make_service(plugin_file("liba.so"), hooks=given)

    assert service.load()["a"].state is State.LOADED
    assert told == ["a"]
    assert [
        failure.message.partition(" failed")[0] for failure in service.report().hook_failures
    ] == [
        "modular_tf_outcome of Failing",
        "modular_tf_outcome of Failing#2",
    ]


def test_an_exception_without_a_text_does_no_harm(refusal_by):
    class SilentError(Exception):
        def __repr__(self):
            raise RuntimeError("no text")

        __str__ = __repr__

    def fail():
        raise SilentError

    assert refusal_by(hooks(VETO, fail)) == "modular_tf_veto of Hooks failed: SilentError"


def test_what_pluggy_refuses_is_left_out_and_the_rest_is_called(refusal_by, make_service):
    no_generator = hooks(VETO, lambda: "never", name="Plain", wrapper=True)
    service = make_service(hooks=[no_generator])

    assert refusal_by(no_generator, veto("no")) == "no"
    (failure,) = service.load().hook_failures
    assert failure.message.startswith("adding Plain failed: ")
    assert "not a generator function" in failure.message


@pytest.mark.parametrize(
    "hook", ["plugin_paths", "veto", "filesystems", "device_factories", "outcome"]
)
def test_a_hook_that_blocks_keeps_no_other_thread_from_the_service(hook, plugin_file, make_service):
    is_blocking, may_go_on = threading.Event(), threading.Event()

    def block():
        is_blocking.set()
        assert may_go_on.wait(60)

    service = make_service(plugin_file("liba.so"), hooks=[hooks(f"modular_tf_{hook}", block)])
    loading = threading.Thread(target=service.load)
    loading.start()
    try:
        assert is_blocking.wait(60)
        undo = service.register_filesystem("mine", MemoryStore())
        assert "mine" in service.schemes()
        assert service.filesystem("mine")
        assert [record.name for record in service.plugins()][-1] == "MemoryStore"
        undo()
    finally:
        may_go_on.set()
        loading.join()

    assert service.report()["a"].state is State.LOADED
    assert service.report().hook_failures == ()


# ---- What there is ----


def test_the_report_lists_the_functions_in_the_order_of_their_calls(make_service):
    def wrap():
        return (yield)

    given = [
        veto("late", trylast=True),
        veto("plain"),
        veto("early", tryfirst=True),
        hooks(VETO, wrap, name="Wrapping", wrapper=True),
        hooks("modular_tf_outcome", lambda record: None, name="Listening"),
    ]
    service = make_service(hooks=given)
    service.discover()

    assert [entry.as_dict() for entry in service.report().hooks] == [
        {"hook": VETO, "implementation": name, "order": order, "wrapper": wrapper}
        for name, order, wrapper in [
            ("Wrapping", None, True),
            ("Hooks#3", "tryfirst", False),
            ("Hooks#2", None, False),
            ("Hooks", "trylast", False),
        ]
    ] + [
        {"hook": "modular_tf_outcome", "implementation": "Listening", "order": None,
         "wrapper": False},
    ]  # fmt: skip
