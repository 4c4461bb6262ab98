"""What is remembered of plugins decides whether they run here."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import ExitStack

import pytest

from modular_tf.first_contact.finding import Finding, Incident, Offer
from modular_tf.rules import Violation
from modular_tf.rules.shortage import SHORTAGE, ShortageError
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from modular_tf.service.storage.notes import Notes, note_of
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import QuarantineStore
from modular_tf.service.storage.scan_cache import ScanCache

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def trials(monkeypatch):
    """Take the place of first contact: answer what `trials.answer` says, and count."""

    class Trials:
        answer = Finding(offer=Offer(("fixture",)))
        tried: list[str] = []  # noqa: RUF012  (made anew for each test)

        def __call__(self, tasks, limits, **_):
            self.limits = limits
            self.tried += [task.plugin for task in tasks]
            return [self.answer for _ in tasks]

    made = Trials()
    made.tried = []
    monkeypatch.setattr("modular_tf.first_contact.trials.try_plugins", made)
    return made


def crashed(rule="LD-060"):
    return Finding(Incident.of(Violation(rule, "it did something"), signal=11, last_call="init"))


def record_of(path, *used, **settings):
    """Return the record of a plugin in a service that lives no longer, and has used schemes."""
    config = Config(**settings)
    with PluginService(config=config, plugin_paths=[path], bundled=False) as service:
        service.load()
        for scheme in used:
            service.filesystem(scheme)
        (record,) = service.plugins()
    return record


def test_what_crashed_is_in_quarantine_wherever_its_bytes_are(plugin_file, trials):
    path = plugin_file("libcrasher.so")
    trials.answer = crashed()
    first, second = record_of(path), record_of(path)
    copy = record_of(plugin_file("elsewhere/libinnocent.so"), first_contact="always")

    assert first.state is second.state is copy.state is State.QUARANTINED
    assert first.reason.message == "it did something"
    assert re.fullmatch(
        r"it did something; this was found on \d{4}-\d\d-\d\d \d\d:\d\d UTC", second.reason.message
    )
    assert second.reason.rule == first.reason.rule
    assert [decision.stage for decision in second.decisions if not decision.passed] == [
        "first-contact"
    ]
    assert record_of(path, first_contact="never").state is State.LOADED
    assert trials.tried == ["crasher"]
    path.unlink()
    plugin_file("libcrasher.so", scheme="repaired")
    trials.answer = Finding(offer=Offer(("repaired",)))
    assert record_of(path).state is State.LOADED
    assert trials.tried == ["crasher", "crasher"]


def test_what_was_good_is_tried_again_only_where_each_start_tries(plugin_file, trials):
    path = plugin_file("libgood.so")
    record_of(path)
    assert record_of(plugin_file("elsewhere/libcopy.so")).state is State.LOADED
    assert trials.tried == ["good"]

    record_of(path, first_contact="always")
    record_of(path, first_contact="always")
    assert trials.tried == ["good"] * 3


UNREADY = Finding(offer=Offer(), notes=(Violation("FS-019", "no key", "init"),))


@pytest.mark.parametrize("answer", [crashed("LD-063"), UNREADY], ids=["untried", "refused"])
def test_what_failed_without_a_verdict_is_tried_the_next_time(plugin_file, trials, answer):
    """Its init may have missed a variable, a server or a device."""
    path = plugin_file("libunready.so")
    trials.answer = answer
    assert record_of(path).state is State.FAILED
    assert QuarantineStore.of_process().entries() == []
    trials.answer = Finding(offer=Offer(("fixture",)))

    assert record_of(path).schemes == ("fixture",)
    assert trials.tried == ["unready", "unready"]


def test_what_somebody_else_had_is_remembered_as_offered(device_file, plugin_file):
    """The platform or scheme is taken now, and need not be the next time."""
    files = [
        device_file("libone.so", device_type="ONE", platform="SAME"),
        device_file("libtwo.so", device_type="TWO", platform="SAME"),
        plugin_file("libthree.so"),
        plugin_file("libfour.so", "good"),
    ]
    config = Config(first_contact="never", load="eager")
    with PluginService(config=config, plugin_paths=files, bundled=False) as service:
        report = service.load()
        assert report["two"].state is State.FAILED
        assert report["four"].state is State.SHADOWED

    device, filesystem = [ScanCache.of_process().recall(str(files[n])).finding for n in (1, 3)]
    assert device.offer.platform.device_type == "TWO"
    assert filesystem.offer.schemes == ("fixture",)
    assert device.notes == filesystem.notes == ()


def test_limits_are_the_users(plugin_file, trials):
    record_of(
        plugin_file("libgood.so"),
        first_contact_timeout_s=7,
        first_contact_memory_mib=64,
        first_contact_accept=("LD-065",),
    )

    assert (trials.limits.seconds, trials.limits.memory_mib) == (7, 64)
    assert trials.limits.accept == {"LD-065"}


def test_what_the_user_accepts_now_is_tried_again(plugin_file, trials):
    path = plugin_file("libnoisy.so")
    trials.answer = crashed("LD-065")
    record_of(path)
    noted = (Violation("LD-069", "it wrote to standard output", "load"),)
    trials.answer = Finding(offer=Offer(("fixture",)), notes=noted)
    record = record_of(path, first_contact_accept=("LD-065",))

    assert record.state is State.LOADED
    assert [warning.rule for warning in record.warnings] == ["LD-069"]
    # And no longer accepted, it is as it was.
    assert record_of(path).state is State.QUARANTINED


# ---- What ended the process that it was loaded in ------------------------------------------------


@pytest.fixture
def end_while_loading():
    """Return a function that ends a process while it loads a plugin, as a signal would."""

    def load(path, times):
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        was_suspect = QuarantineStore.of_process().suspicion(sha256) is not None
        known = ("good", str(path), sha256)
        with ExitStack() as stack:
            for _ in range(times):
                around = Notes.of_process().around("loading", *known, was_suspect=was_suspect)
                stack.enter_context(around)
            os._exit(0)

    def end(path, times=1):
        if (child := os.fork()) == 0:
            try:
                load(path, times)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

    return end


@pytest.mark.parametrize(("times", "first_contact"), [(1, "never"), (20, "new")])
def test_a_good_plugin_is_tried_until_a_process_has_loaded_it(
    plugin_file, trials, end_while_loading, times, first_contact
):
    path = plugin_file("libgood.so")
    record_of(path, first_contact="new")
    end_while_loading(path, times)
    record_of(path, first_contact="new")  # listed, and not used
    for _ in range(2):
        assert record_of(path, "fixture", first_contact=first_contact).state is State.LOADED

    assert trials.tried == ["good"] * 3


def test_what_is_stopped_now_and_then_is_not_quarantined(plugin_file, trials, end_while_loading):
    path = plugin_file("libgood.so")
    for _ in range(3):
        end_while_loading(path)
        assert record_of(path, "fixture").state is State.LOADED


def leave_calls(path, count):
    """Leave the notes of calls into a plugin in which processes ended."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    known = json.loads(note_of("bad", str(path), digest) + "}")
    told = {"call": "stat", "subject": "", "signal": 11, "status": 0}
    folder = PrivateDirectory(f"{os.environ['XDG_STATE_HOME']}/modular_tf/notes")
    for number in range(count):
        text = json.dumps(known | told | {"pid": number + 1, "time": number})
        assert folder.create(f"{number}.ended", text.encode())


def test_a_shortage_of_descriptors_hides_no_recorded_crash(plugin_file, trials, monkeypatch):
    """Neither for the look in which it comes, nor for the next one of the same service."""
    path = plugin_file("libbad.so")
    leave_calls(path, 3)

    def no_descriptor(_):
        raise ShortageError("no descriptor", rule=SHORTAGE)

    with PluginService(config=Config(), plugin_paths=[path], bundled=False) as service:
        with monkeypatch.context() as patch:
            patch.setattr(Notes, "of_ended", no_descriptor)
            with pytest.raises(ShortageError):
                service.load()
        (record,) = service.plugins()
        assert (record.state, record.reasons) == (State.FOUND, ())
        (record,) = service.load().plugins

    assert (record.state, record.reason.rule) == (State.QUARANTINED, "LD-130")
    assert trials.tried == []
