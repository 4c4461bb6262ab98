"""A worker process from its first call to its end, and what its filesystem does after a fault."""

from __future__ import annotations

import os
import resource
import select
import signal
import stat
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from modular_tf.errors import (
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from modular_tf.service.configuration import Config
from tests.isolation.conftest import (
    descriptors,
    during_a_call,
    end_worker,
    interrupted,
    isolated,
    pid_of,
    record_of,
    stop_worker,
    wait_until,
)
from tests.isolation.hostile_plugin import hostile_plugin

_POSIX = "posix_filesystem"
_HOSTILE = "fixture_filesystem_hostile_at_work"


@pytest.fixture(scope="module")
def service():
    with isolated(call_timeout_s=30.0) as made:
        yield made


@pytest.fixture
def local(service):
    """The local disk, by a worker that runs."""
    filesystem = service.filesystem("")
    filesystem.path_exists("/")
    return filesystem


@pytest.fixture
def hostile_service():
    with isolated(hostile_plugin(), bundled=False) as made:
        yield made


@pytest.fixture
def hostile(hostile_service):
    """The filesystem of the hostile plugin, with an empty file."""
    filesystem = hostile_service.filesystem("hostile")
    filesystem.new_writable_file("hostile://h/data").close()
    return filesystem


@pytest.fixture
def fifo(tmp_path):
    """A file that nobody can open for reading before somebody writes."""
    os.mkfifo(tmp_path / "fifo")
    return str(tmp_path / "fifo")


# ---- The end of the process ----


def test_a_call_after_or_during_the_end_of_an_idle_worker_is_made_in_a_new_one(service, local):
    ram = service.filesystem("ram")
    ram.recursively_create_dir("ram://h/d")
    end_worker(service, _POSIX)
    assert local.path_exists("/")
    for _ in range(10):
        os.kill(pid_of(service, _POSIX), signal.SIGKILL)  # its threads have yet to end
        assert local.path_exists("/")
    assert ram.is_directory("ram://h/d")  # other plugins go on


def test_a_call_that_a_stopped_worker_has_not_begun_is_made_in_a_new_one(service, local):
    before = record_of(service, _POSIX).restarts
    pid = stop_worker(service, _POSIX)
    assert local.path_exists("/")
    after = record_of(service, _POSIX)
    assert (after.pid != pid, after.restarts) == (True, before + 1)


def test_a_file_is_read_on_where_it_is_the_same(service, local, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"the old bytes")
    with local.new_random_access_file(str(file)) as reader:
        assert reader.read(0, 3) == b"the"
        end_worker(service, _POSIX)
        assert reader.read(4, 3) == b"old"
        end_worker(service, _POSIX)
        file.write_bytes(b"new")
        with pytest.raises(UnavailableError, match="has changed since") as lost:
            reader.read(4, 3)
    assert lost.value.rule == "LD-143"


def test_a_writer_reports_that_its_process_has_ended(service, local, tmp_path):
    writer = local.new_writable_file(str(tmp_path / "file"))
    writer.append(b"some")
    end_worker(service, _POSIX)

    with pytest.raises(UnavailableError, match=f"worker process of {_POSIX} was killed") as lost:
        writer.append(b" more")
    assert (lost.value.rule, lost.value.plugin) == ("LD-143", _POSIX)
    writer.discard()


def test_a_call_that_takes_too_long_ends_the_worker(fifo):
    with isolated(call_timeout_s=1.0) as service:
        local = service.filesystem("")
        with pytest.raises(DeadlineExceededError, match=r"^new_.*no answer within 1 s") as late:
            local.new_random_access_file(fifo)
        assert local.path_exists("/")
    assert (late.value.rule, late.value.path) == ("LD-141", fifo)


def test_the_end_of_the_process_is_reported_by_a_call_without_a_status(hostile):
    with pytest.raises(UnavailableError, match="crashed with SIGSEGV") as failure:
        hostile.translate_name("hostile://h/deed/translate/segv")
    assert failure.value.rule == "LD-140"
    frames = str(failure.value).partition(" in ")[2].partition(";")[0].split(" < ")
    assert frames[0].startswith(f"{hostile_plugin().name} 0x")
    assert [frame[:2] for frame in frames[1:]] == ["0x"] * (len(frames) - 1)


def test_too_many_faults_give_the_plugin_a_rest():
    with isolated(most_worker_faults=2) as service:
        local = service.filesystem("")
        for _ in range(2):
            local.path_exists("/")
            end_worker(service, _POSIX)

        with pytest.raises(UnavailableError, match="ended 2 times within 5 minutes"):
            local.path_exists("/")


def test_nothing_is_left_after_the_close():
    before = len(descriptors())
    with isolated() as service:
        local = service.filesystem("")
        local.path_exists("/")
        workers = [found.pid for found in service.workers() if found.pid]
        reader = local.new_random_access_file(__file__)

    assert not any(Path(f"/proc/{pid}/fd/0").exists() for pid in workers)
    with pytest.raises((ClosedError, FailedPreconditionError)):
        reader.read(0, 1)
    assert len(descriptors()) <= before + 3  # the zygote's


# ---- Interrupts ----


def test_an_interrupt_ends_the_wait(service, local, fifo):
    with interrupted(service), pytest.raises(KeyboardInterrupt):
        local.new_random_access_file(fifo)
    assert local.path_exists("/")


def _sockets():
    for number in map(int, descriptors()):
        with suppress(OSError):  # the descriptor of the listing
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                yield number


@contextmanager
def _handled(service, handler):
    """Have a handler called during a call."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with during_a_call(service, lambda: os.kill(os.getpid(), signal.SIGALRM)):
            yield
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_file_whose_opening_was_interrupted_when_it_was_open_is_closed(service, local, fifo):
    end = -1

    def interrupt(*_):
        nonlocal end
        end = os.open(fifo, os.O_WRONLY)  # the worker has it open
        assert select.select(list(_sockets()), [], [], 60)[0]  # the reply has come
        raise KeyboardInterrupt

    before = record_of(service, _POSIX).restarts
    for _ in range(5):
        with _handled(service, interrupt), pytest.raises(KeyboardInterrupt):
            local.new_random_access_file(fifo)
        readers = select.poll()
        readers.register(end, 0)
        found = readers.poll(60_000)
        os.close(end)
        assert found == [(end, select.POLLERR)]  # there are none
    assert record_of(service, _POSIX).restarts == before


def test_a_signal_handler_that_returns_leaves_the_call_alone(service, local, fifo):
    caught = threading.Event()

    def open_when_caught():
        assert caught.wait(30)
        Path(fifo).write_bytes(b"")

    with _handled(service, lambda *_: caught.set()), during_a_call(service, open_when_caught):
        local.new_random_access_file(fifo).close()


@pytest.mark.parametrize("operation", ["translate_name", "close"])
def test_an_interrupt_of_a_call_without_a_status_is_raised_by_it(
    hostile_service, hostile, operation
):
    if operation == "close":
        call = hostile.new_random_access_file("hostile://h/deed/release/hang").close
    else:
        call = partial(hostile.translate_name, "hostile://h/deed/translate/hang")
    with interrupted(hostile_service), pytest.raises(KeyboardInterrupt):
        call()
    for _ in range(3):
        hostile.get_children("hostile://h/")


def test_a_file_may_be_closed_while_its_interrupted_read_goes_on(hostile_service, hostile):
    file = hostile.new_random_access_file("hostile://h/deed/read/sleep")
    with interrupted(hostile_service), pytest.raises(KeyboardInterrupt):
        file.read(0, 4)
    file.close()
    hostile.path_exists("hostile://h/deed/sleep")  # begins later than the read
    time.sleep(0.5)
    assert hostile.path_exists("hostile://h/data")
    assert record_of(hostile_service, _HOSTILE).restarts == 0


# ---- Shortages ----


@contextmanager
def _in_use(service, filesystem):
    """Have another thread in a call of a second."""
    busy = threading.Thread(target=filesystem.path_exists, args=("hostile://h/deed/sleep",))
    busy.start()
    wait_until(lambda: record_of(service, _HOSTILE).in_flight)
    yield
    busy.join()


def test_a_process_that_can_serve_no_more_calls_goes_on_with_those_it_has(hostile_service, hostile):
    reader = hostile.new_random_access_file("hostile://h/data")
    hostile.path_exists("hostile://h/deed/no-descriptors")  # nor for the next channel
    with _in_use(hostile_service, hostile):
        assert hostile.path_exists("hostile://h/data")
    with _in_use(hostile_service, hostile):
        assert reader.read(0, 1) == b""

    hostile.path_exists("hostile://h/deed/descriptors-again")
    enough = threading.Event()

    def work():
        while not enough.is_set():
            hostile.path_exists("hostile://h/deed/sleep")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: record_of(hostile_service, _HOSTILE).in_flight == 2)
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert record_of(hostile_service, _HOSTILE).restarts == 0


@contextmanager
def _free_descriptors(count):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + count, most[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def test_a_host_without_descriptors_for_a_channel_or_a_reply_reports_it(tmp_path):
    names = sorted(f"{number}{'x' * 200}" for number in range(400))  # more than fits into a message
    for name in names:
        (tmp_path / name).touch()
    with isolated() as service:
        local = service.filesystem("")
        with _free_descriptors(1), pytest.raises(ResourceExhaustedError, match="Too many open"):
            local.path_exists("/")
        assert sorted(local.get_children(str(tmp_path))) == names
        with _free_descriptors(0), pytest.raises(ResourceExhaustedError, match="Too many open"):
            local.get_children(str(tmp_path))
        assert sorted(local.get_children(str(tmp_path))) == names
        assert record_of(service, _POSIX).restarts == 0


def test_a_writer_reports_the_part_that_the_plugin_has_taken(hostile):
    writer = hostile.new_writable_file("hostile://h/full-after/1")
    with pytest.raises(ResourceExhaustedError, match="the disk is full"):
        writer.append(bytes(9 << 20))
    assert writer.appended() == writer.tell() == 8 << 20
    writer.discard()


# ---- What goes through a worker ----


def test_a_relative_path_begins_where_this_process_is(local, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert local.is_directory("here")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(NotFoundError):
        local.stat("here")


def test_bytes_of_every_length_arrive(local, tmp_path):
    for size in (0, 1, 16 << 10, (16 << 10) + 1, (3 << 20) + 7):
        content, path = os.urandom(size), str(tmp_path / str(size))
        with local.new_writable_file(path) as writer:
            writer.append(content)
        with local.new_random_access_file(path) as reader:
            assert reader.read(0, size + 5) == content
            assert reader.read(max(0, size - 3), 10) == content[max(0, size - 3) :]


# ---- The configuration ----


def test_the_configuration_chooses_plugins_by_globs():
    config = Config(isolation={"ram*": "process", "*": "none"})
    assert (config.is_isolated("ram_filesystem"), config.is_isolated(_POSIX)) == (True, False)
    with pytest.raises(ValueError, match=r"Config.isolation: expected 'none' or 'process'"):
        Config(isolation="container")
