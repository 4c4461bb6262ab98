"""A worker process from its first call to its end, and what its filesystem does after a fault."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import stat
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.errors import (
    ClosedError,
    ConfigError,
    DeadlineExceededError,
    FailedPreconditionError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from modular_tf.filesystem.configuration import Option
from modular_tf.isolation.worker import Worker
from modular_tf.native.ffi import ffi, lib
from modular_tf.service.configuration import Config, load_config
from modular_tf.service.service import PluginService
from tests.isolation.hostile_plugin import hostile_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.filesystem import Filesystem
    from tests.fixtures.children import PythonRunner


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}/fd/0").exists()


def _takes_requests(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] not in "TZX"


@contextmanager
def _service(**settings: object) -> Iterator[PluginService]:
    config = Config(isolation="process", **settings)  # type: ignore[arg-type]
    with PluginService(config=config) as service:
        service.load()
        yield service


@pytest.fixture
def service() -> Iterator[PluginService]:
    with _service(call_timeout_s=30.0, most_worker_faults=0) as made:
        yield made


@pytest.fixture
def local(service: PluginService) -> Filesystem:
    return service.filesystem("")


def _kill_worker(service: PluginService, plugin: str = "posix_filesystem") -> None:
    """End the worker of a plugin, started where there is none."""
    service.filesystem("").path_exists("/")
    (pid,) = [found.pid for found in service.workers() if found.plugin == plugin]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while _runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.05)


def test_nothing_of_the_plugin_is_in_this_process(run_python: PythonRunner) -> None:
    child = run_python(
        """
        from modular_tf.service.service import PluginService
        with PluginService(isolation="process") as service:
            service.load()
            print(service.filesystem("").path_exists("/"))
            print("posix_filesystem" in open("/proc/self/maps").read())
        """
    )

    assert child.stdout.split() == ["True", "False"]


def test_a_call_after_the_end_of_an_idle_worker_is_made_in_a_new_one(
    service: PluginService, local: Filesystem
) -> None:
    _kill_worker(service)

    assert local.path_exists("/")


def test_a_call_while_an_idle_worker_ends_is_made_in_a_new_one(
    service: PluginService, local: Filesystem
) -> None:
    for _ in range(10):
        assert local.path_exists("/")
        (pid,) = [found.pid for found in service.workers() if found.calls]
        os.kill(pid, signal.SIGKILL)  # its threads have yet to end

        assert local.path_exists("/")


def test_a_file_that_is_still_the_same_is_read_on(
    service: PluginService, local: Filesystem, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"same bytes")
    with local.new_random_access_file(str(file)) as reader:
        assert reader.read(0, 4) == b"same"
        _kill_worker(service)

        assert reader.read(5, 5) == b"bytes"


def test_a_file_that_has_changed_is_not_read_on(
    service: PluginService, local: Filesystem, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"the old bytes")
    with local.new_random_access_file(str(file)) as reader:
        assert reader.read(0, 3) == b"the"
        _kill_worker(service)
        file.write_bytes(b"new")

        with pytest.raises(UnavailableError, match="has changed since") as lost:
            reader.read(4, 3)
    assert lost.value.rule == "LD-143"


def test_a_writer_says_that_its_process_has_ended(
    service: PluginService, local: Filesystem, tmp_path: Path
) -> None:
    writer = local.new_writable_file(str(tmp_path / "file"))
    writer.append(b"some")
    _kill_worker(service)

    with pytest.raises(
        UnavailableError, match="worker process of posix_filesystem was killed"
    ) as lost:
        writer.append(b" more")
    assert (lost.value.rule, lost.value.plugin) == ("LD-143", "posix_filesystem")
    writer.discard()


def test_a_call_that_takes_too_long_ends_the_worker(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with _service(call_timeout_s=1.0) as service:
        local = service.filesystem("")

        with pytest.raises(DeadlineExceededError, match=r"^new_.*no answer within 1 s") as late:
            local.new_random_access_file(str(tmp_path / "fifo"))
        assert local.path_exists("/")
    assert late.value.rule == "LD-141"
    assert late.value.path == str(tmp_path / "fifo")


def test_an_interrupt_ends_the_wait(local: Filesystem, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        local.new_random_access_file(str(tmp_path / "fifo"))
    timer.join()
    assert local.path_exists("/")


def _sockets() -> list[int]:
    found = []
    for number in (int(entry.name) for entry in Path("/proc/self/fd").iterdir()):
        with suppress(OSError):  # the descriptor of the listing
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                found.append(number)
    return found


def test_a_file_whose_opening_was_interrupted_when_it_was_open_is_closed(
    service: PluginService, local: Filesystem, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    end = -1

    def interrupt(*_: object) -> None:
        nonlocal end
        end = os.open(fifo, os.O_WRONLY)  # the worker has it open
        assert select.select(_sockets(), [], [], 60)[0]  # the reply has come
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                local.new_random_access_file(str(fifo))
            readers = select.poll()
            readers.register(end, 0)
            found = readers.poll(60_000)
            os.close(end)
            assert found == [(end, select.POLLERR)]  # there are none
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [worker.restarts for worker in service.workers() if worker.calls] == [0]


@pytest.mark.parametrize("operation", ["translate_name", "close"])
def test_an_interrupt_of_a_call_without_a_status_is_raised_by_that_call(operation: str) -> None:
    with _service(plugin_dirs=(str(hostile_plugin()),)) as service:
        hostile = service.filesystem("hostile")
        hostile.new_writable_file("hostile://h/data").close()
        if operation == "close":
            call = hostile.new_random_access_file("hostile://h/deed/release/hang").close
        else:
            call = partial(hostile.translate_name, "hostile://h/deed/translate/hang")
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()

        with pytest.raises(KeyboardInterrupt):
            call()
        timer.join()
        for _ in range(3):
            hostile.get_children("hostile://h/")


def test_the_end_of_the_process_is_told_by_a_call_without_a_status() -> None:
    with _service(plugin_dirs=(str(hostile_plugin()),)) as service:
        with pytest.raises(UnavailableError, match="crashed with SIGSEGV") as failure:
            service.filesystem("hostile").translate_name("hostile://h/deed/translate/segv")
        assert failure.value.rule == "LD-140"
        frames = str(failure.value).partition(" in ")[2].partition(";")[0].split(" < ")
        assert frames[0].startswith(f"{hostile_plugin().name} 0x")
        assert [frame[:2] for frame in frames[1:]] == ["0x"] * (len(frames) - 1)


@pytest.mark.parametrize("opens", [False, True])
def test_an_interrupt_while_the_end_of_the_worker_is_told_is_not_lost(
    service: PluginService, local: Filesystem, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    reader = local.new_random_access_file(__file__) if opens else None
    _kill_worker(service)
    interrupts = iter([signal.SIGINT])

    def ended(worker: Worker, run: int, *, is_late: bool) -> str:
        for number in interrupts:  # the first time
            signal.raise_signal(number)
        return told(worker, run, is_late=is_late)

    told = Worker.ended
    monkeypatch.setattr(Worker, "ended", ended)

    with pytest.raises(KeyboardInterrupt):
        local.path_exists("/") if reader is None else reader.read(0, 1)
    assert local.path_exists("/")


def test_a_signal_handler_that_returns_leaves_the_call_alone(
    local: Filesystem, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    caught = []
    before = signal.signal(signal.SIGALRM, lambda *_: caught.append(True))
    opener = threading.Timer(0.8, lambda: (tmp_path / "fifo").write_bytes(b""))
    opener.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        local.new_random_access_file(str(tmp_path / "fifo")).close()
    finally:
        signal.signal(signal.SIGALRM, before)
        opener.join()
    assert caught == [True]


def test_too_many_faults_give_the_plugin_a_rest() -> None:
    with _service(most_worker_faults=2) as service:
        local = service.filesystem("")
        for _ in range(2):
            _kill_worker(service)

        with pytest.raises(UnavailableError, match="ended 2 times within 5 minutes"):
            local.path_exists("/")


def test_a_process_that_can_serve_no_more_calls_goes_on_with_those_it_has() -> None:
    with _service(plugin_dirs=(str(hostile_plugin()),)) as service:
        hostile = service.filesystem("hostile")
        hostile.new_writable_file("hostile://h/data").close()
        reader = hostile.new_random_access_file("hostile://h/data")
        hostile.path_exists("hostile://h/deed/no-descriptors")  # nor for the next channel
        told: list[object] = []
        for call in (lambda: hostile.path_exists("hostile://h/data"), lambda: reader.read(0, 1)):
            busy = threading.Thread(
                target=lambda: told.append(hostile.path_exists("hostile://h/deed/sleep"))
            )
            busy.start()
            while not any(found.in_flight for found in service.workers()):
                time.sleep(0.01)
            told.append(call())
            busy.join()
        assert told == [True, True, True, b""]
        assert [found.restarts for found in service.workers() if found.calls] == [0]


def test_a_process_that_cannot_take_the_descriptors_of_a_request_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exists(path: str) -> int:
        error = lib.mtf_path_exists(hostile.handle, path.encode())  # type: ignore[attr-defined]
        try:
            return 0 if error == ffi.NULL else error.code
        finally:
            if error != ffi.NULL:
                lib.mtf_error_free(error)

    monkeypatch.chdir(tmp_path)
    with _service(plugin_dirs=(str(hostile_plugin()),)) as service:
        hostile = service.filesystem("hostile")
        with hostile.new_writable_file("hostile://h/data") as file:
            file.append(b"some")
            hostile.path_exists("hostile://h/deed/no-descriptors")
            # More than fits into a message goes through memory, a relative path with a directory.
            long = "hostile://h/" + "x" * (1 << 20)
            assert [exists(path) for path in (long, "relative", long)] == [8, 8, 8]
            file.append(b" more")
            hostile.path_exists("hostile://h/deed/descriptors-again")
            assert [exists(path) for path in (long, "relative", long)] == [5, 5, 5]
            file.append(bytes(1 << 20))
        assert hostile.get_file_size("hostile://h/data") == len(b"some more") + (1 << 20)
        assert [found.restarts for found in service.workers() if found.calls] == [0]


@contextmanager
def _free_descriptors(count: int) -> Iterator[None]:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + count, most[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def test_a_host_without_descriptors_for_a_channel_says_so(local: Filesystem) -> None:
    with _free_descriptors(1), pytest.raises(ResourceExhaustedError, match="Too many open files"):
        local.path_exists("/")
    assert local.path_exists("/")


def test_a_host_without_a_descriptor_for_a_reply_says_so(
    service: PluginService, local: Filesystem, tmp_path: Path
) -> None:
    names = sorted(f"{number}{'x' * 200}" for number in range(400))  # more than fits into a message
    for name in names:
        (tmp_path / name).touch()
    assert sorted(local.get_children(str(tmp_path))) == names

    with _free_descriptors(0), pytest.raises(ResourceExhaustedError, match="Too many open files"):
        local.get_children(str(tmp_path))
    assert sorted(local.get_children(str(tmp_path))) == names
    assert [worker.restarts for worker in service.workers() if worker.calls] == [0]


def test_a_process_that_had_no_descriptors_for_a_while_serves_as_many_calls_as_before() -> None:
    with _service(plugin_dirs=(str(hostile_plugin()),)) as service:
        hostile = service.filesystem("hostile")
        hostile.path_exists("hostile://h/deed/no-descriptors")
        busy = threading.Thread(target=lambda: hostile.path_exists("hostile://h/deed/sleep"))
        busy.start()
        while not any(found.in_flight for found in service.workers()):
            time.sleep(0.01)
        hostile.path_exists("hostile://h/data")  # another channel is refused
        busy.join()
        hostile.path_exists("hostile://h/deed/descriptors-again")
        enough = threading.Event()

        def work() -> None:
            while not enough.is_set():
                hostile.path_exists("hostile://h/deed/sleep")

        def in_flight() -> int:
            return max(found.in_flight for found in service.workers())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60
        while (found := in_flight()) < 4 and time.monotonic() < end:
            time.sleep(0.05)
        enough.set()
        for thread in threads:
            thread.join()
        assert found == 4
        assert [found.restarts for found in service.workers() if found.calls] == [0]


def test_a_writer_tells_of_the_part_that_the_plugin_has_taken() -> None:
    with _service(plugin_dirs=(str(hostile_plugin()),)) as service:
        writer = service.filesystem("hostile").new_writable_file("hostile://h/full-after/1")
        with pytest.raises(ResourceExhaustedError, match="the disk is full"):
            writer.append(bytes(9 << 20))
        assert writer.appended() == writer.tell() == 8 << 20
        writer.discard()


def test_other_plugins_go_on(service: PluginService) -> None:
    ram = service.filesystem("ram")
    ram.recursively_create_dir("ram://h/d")
    _kill_worker(service)

    assert ram.is_directory("ram://h/d")


def test_a_relative_path_begins_where_this_process_is(
    local: Filesystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)

    assert local.is_directory("here")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(NotFoundError):
        local.stat("here")


def test_a_child_of_a_fork_has_a_worker_of_its_own(run_python: PythonRunner) -> None:
    child = run_python(
        """
        import os
        from modular_tf.service.service import PluginService
        with PluginService(isolation="process") as service:
            service.load()
            local = service.filesystem("")
            print(local.path_exists("/"), flush=True)
            pid = os.fork()
            if pid == 0:
                os._exit(0 if local.stat("/").is_directory else 1)
            print(os.waitpid(pid, 0)[1], local.path_exists("/"))
        """
    )

    assert child.stdout.split() == ["True", "0", "True"]


@pytest.mark.parametrize("size", [0, 1, 16 << 10, (16 << 10) + 1, (3 << 20) + 7])
def test_bytes_of_every_length_arrive(local: Filesystem, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    path = str(tmp_path / "file")
    with local.new_writable_file(path) as writer:
        writer.append(content)

    with local.new_random_access_file(path) as reader:
        assert reader.read(0, size + 5) == content
        assert reader.read(max(0, size - 3), 10) == content[max(0, size - 3) :]


def test_many_threads_share_a_worker(local: Filesystem, tmp_path: Path) -> None:
    contents = {str(tmp_path / str(n)): os.urandom(100_000 + n) for n in range(80)}
    wrong = []

    def work(path: str, content: bytes) -> None:
        with local.new_writable_file(path) as writer:
            writer.append(content)
        with local.new_random_access_file(path) as reader:
            if reader.read(0, len(content) + 1) != content:
                wrong.append(path)

    threads = [threading.Thread(target=work, args=item) for item in contents.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sorted(local.get_children(str(tmp_path)), key=int) == [str(n) for n in range(80)]


def test_nothing_is_left_after_the_close(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with _service() as service:
        local = service.filesystem("")
        local.path_exists("/")
        workers = [found.pid for found in service.workers() if found.pid]
        reader = local.new_random_access_file(__file__)

    assert not any(map(_runs, workers))
    with pytest.raises((ClosedError, FailedPreconditionError)):
        reader.read(0, 1)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 3  # the zygote's


def test_the_configuration_is_read_by_globs(tmp_path: Path) -> None:
    file = tmp_path / "modular-tf.toml"
    file.write_text('[isolation]\n"ram*" = "process"\n"*" = "none"\n')
    config = Config(isolation={"ram*": "process", "*": "none"})

    assert config.is_isolated("ram_filesystem")
    assert not config.is_isolated("posix_filesystem")
    with pytest.raises(ValueError, match=r"Config.isolation: expected 'none' or 'process'"):
        Config(isolation="container")


def test_a_variable_that_is_wrong_says_how_to_name_plugins(tmp_path: Path) -> None:
    nowhere = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    read = load_config({**nowhere, "MODULAR_TF_ISOLATION": "ram*=process,*=none"})
    assert read.isolation == {"ram*": "process", "*": "none"}
    wrong = "MODULAR_TF_ISOLATION: expected none, process, or GLOB=process,GLOB=none, found 'on'"
    with pytest.raises(ConfigError, match=re.escape(wrong)):
        load_config({**nowhere, "MODULAR_TF_ISOLATION": "on"})


def test_a_call_that_nobody_has_begun_with_is_made_in_a_new_process(
    service: PluginService, local: Filesystem
) -> None:
    assert local.path_exists("/")
    (pid,) = [found.pid for found in service.workers() if found.plugin == "posix_filesystem"]
    os.kill(pid, signal.SIGSTOP)  # it takes no request; the watcher ends it
    deadline = time.monotonic() + 20
    while _takes_requests(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert local.path_exists("/")
    (found,) = [found for found in service.workers() if found.plugin == "posix_filesystem"]
    assert (found.pid != pid, found.restarts) == (True, 1)


def test_the_zygote_reads_the_table_of_defects_for_all(run_python: PythonRunner) -> None:
    run_python(
        """
        from modular_tf.isolation.zygote import _warm_up
        from modular_tf.loading.published import known_stores
        _warm_up()
        assert known_stores.cache_info().currsize == 1
        """
    )


def test_where_the_plugin_has_no_options_none_are_refused(local: Filesystem) -> None:
    assert local.get_filesystem_configuration() == []
    with pytest.raises(NotFoundError, match="has no options"):
        local.set_filesystem_configuration_option(Option("nothing", ()))
