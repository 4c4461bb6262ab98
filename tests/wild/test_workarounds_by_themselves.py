"""The workarounds without a plugin: edge cases."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

from modular_tf.errors import (
    InternalError,
    UnavailableError,
    UnimplementedError,
)
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.filesystem.store_files import PiecewiseReader
from modular_tf.filesystem.workarounds import azure, endpoints
from modular_tf.filesystem.workarounds.azure import Azure
from modular_tf.filesystem.workarounds.endpoints import Endpoints, named_server
from modular_tf.filesystem.workarounds.hdfs import Hdfs
from modular_tf.filesystem.workarounds.http import Http
from modular_tf.filesystem.workarounds.oss import Oss
from modular_tf.filesystem.workarounds.s3 import S3
from modular_tf.service.service import PluginService


def test_no_memory_of_the_caller_is_written_to_after_a_failure():
    began, failed, may_end = threading.Event(), threading.Event(), threading.Event()

    class OneFails(RandomAccessFile):
        uri = "x://"

        def readinto(self, offset, buffer):
            if offset == 0:
                began.wait(60)
                failed.set()
                raise InternalError("the first piece is lost")
            began.set()
            may_end.wait(60)
            memoryview(buffer)[:] = b"late"
            return len(buffer)

        def close(self):
            """Nothing is open."""

    memory = bytearray(8)
    reader = PiecewiseReader(OneFails(), 4, 4, length=8)
    with ThreadPoolExecutor(1) as crew:
        reading = crew.submit(reader.readinto, 0, memory)
        failed.wait(60)
        assert not wait([reading], timeout=0.5).done
        may_end.set()
        with pytest.raises(InternalError, match="lost"):
            reading.result()
    assert memory == b"\0\0\0\0late"


@pytest.fixture
def ram():
    """The filesystem of a plugin of our own, whose tables stores are made of."""
    with PluginService() as service:
        service.load()
        yield service.filesystem("ram")


@pytest.fixture
def store_of(ram, request):
    """Return what makes a store over that plugin, whose server refuses what closes a file."""

    def make(kind):
        class Refusing(kind):
            def require(self, operation, uri):
                if operation == "close":
                    raise UnavailableError("the server accepts no connection", plugin="plugin")

        store = Refusing(ram.tables, "plugin")
        PluginFilesystem.recursively_create_dir(store, "ram://b/d")
        request.addfinalizer(store.close)
        return store

    return make


def test_a_file_without_a_byte_is_refused_in_words_and_another_failure_is_reported(store_of):
    for kind, data, error, words in (
        (Oss, b"", UnimplementedError, "plugin cannot write a file of no bytes"),
        (Oss, b"x", UnavailableError, "accepts no connection"),
        (S3, b"", UnavailableError, "accepts no connection"),
    ):
        writer = store_of(kind).new_writable_file("ram://b/d/f")
        writer.append(data)
        with pytest.raises(error, match=words) as raised:
            writer.close()
        if error is UnimplementedError:
            assert (raised.value.operation, raised.value.path) == ("close", "ram://b/d/f")
        else:  # and nothing is stored later
            assert writer.closed
            writer.close()


def test_leaked_descriptors_are_closed_though_the_file_cannot_be(store_of, monkeypatch):
    closed = []
    monkeypatch.setattr(azure, "close_leaked", closed.append)
    writer = store_of(Azure).new_writable_file("ram://b/d/f")
    writer.append(b"x")
    with pytest.raises(UnavailableError):
        writer.close()
    assert closed


def test_any_place_of_a_library_will_do(ram, monkeypatch):
    monkeypatch.setenv("PLACE", "/nowhere")
    store = Hdfs(ram.tables, "plugin")
    store.libraries = ("$PLACE/libmissing.so", "/nowhere/libmissing.so")
    monkeypatch.delenv("PLACE")
    with pytest.raises(UnavailableError, match=r"(?s)needs libmissing.so: PLACE is not set; /now"):
        store.stat("ram://f")
    store.libraries = ("$PLACE/libc.so.6", "libc.so.6")
    assert not store.path_exists("ram://f")
    store.close()


@pytest.fixture
def no_proxy(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def _by_host(environment):
    return Endpoints(lambda uri: Http.server(uri, environment), "plugin", environment)


def test_a_dead_server_holds_up_nobody_who_asks_another(monkeypatch, no_proxy):
    """The healthy one is asked while the name of the dead one is still being looked up."""
    is_asked, may_fail = threading.Event(), threading.Event()

    def resolve(host, port, **_):
        if host == "dead":
            is_asked.set()
            assert may_fail.wait(30)
            raise OSError("no such host")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    check = _by_host({})
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(6) as crew:
        asking = [crew.submit(check.require, "stat", "http://dead/x") for _ in range(6)]
        assert is_asked.wait(30)
        check.require("stat", f"http://healthy:{server.getsockname()[1]}/x")
        assert not any(call.done() for call in asking)
        may_fail.set()
    assert {type(call.exception()) for call in asking} == {UnavailableError}


def test_a_server_that_was_waited_for_in_vain_is_asked_once(monkeypatch, no_proxy):
    asked = []

    def resolve(host, port, **_):
        asked.append((host, port))
        clock[0] += 4
        raise TimeoutError("no answer")

    clock = [100.0]
    monkeypatch.setattr(endpoints, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    check = _by_host({})
    for number in range(3):
        with pytest.raises(UnavailableError, match=rf"stat 'http://dead/{number}'.*no answer"):
            check.require("stat", f"http://dead/{number}")
    assert len(asked) == 1
    clock[0] += 60
    with pytest.raises(UnavailableError):
        check.require("stat", "http://dead/x")
    assert len(asked) == 2


def test_a_server_that_refuses_at_once_is_asked_again(no_proxy):
    check = _by_host({})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UnavailableError):
        check.require("stat", f"http://127.0.0.1:{port}/x")
    with socket.create_server(("127.0.0.1", port)):
        check.require("stat", f"http://127.0.0.1:{port}/x")


def test_a_server_is_asked_where_no_thread_can_be_had(monkeypatch, no_proxy):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        _by_host({}).require("stat", f"http://127.0.0.1:{port}/x")
    with pytest.raises(UnavailableError, match="accepts no connection"):
        _by_host({}).require("stat", f"http://127.0.0.1:{port}/x")


def test_a_bracket_that_is_not_closed_is_reported(no_proxy):
    url = "http://user:hush@[::1:9000/"
    environment = {"E": url}
    check = Endpoints(lambda _: named_server(environment, "E"), "plugin", environment)
    with pytest.raises(UnavailableError, match="E names it: correct it"):
        check.require("stat", "xx://bucket/file")
    assert str(check.server_of("xx://bucket/file")) == "[::1:9000"


_WITHOUT_DESCRIPTORS = """
    import os, resource, sys
    from modular_tf.errors import ResourceExhaustedError
    from modular_tf.filesystem.workarounds.azure import close_leaked
    from modular_tf.filesystem.workarounds.endpoints import Endpoints, Server
    from modular_tf.filesystem.workarounds.http import require_descriptors

    place = sys.argv[1]
    leaked = os.open(place, os.O_RDWR | os.O_CREAT)
    os.unlink(place)
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
    held = []
    try:
        while True:
            held.append(os.dup(0))
    except OSError:
        pass
    checks = (
        lambda *call: require_descriptors(1, *call, "plugin"),
        Endpoints(lambda _: Server("http://127.0.0.1:9"), "plugin", {}).require,
    )
    for check in checks:
        try:
            check("stat", "http://h/x")
        except ResourceExhaustedError as error:
            found = str(error)
        assert "ulimit -n" in found and "http://h/x" in found
    close_leaked(place)
    assert os.dup(0) == leaked
"""


def test_no_descriptor_left_is_a_typed_error(run_python, tmp_path):
    run_python(_WITHOUT_DESCRIPTORS, tmp_path / "leaked_by_plugin")
