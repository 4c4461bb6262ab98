"""The workarounds without a plugin: edge cases."""

from __future__ import annotations

import os
import resource
import socket
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

from modular_tf.errors import (
    ClosedError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from modular_tf.filesystem.files import RandomAccessFile, WritableFile
from modular_tf.filesystem.workarounds import endpoint_check
from modular_tf.filesystem.workarounds.bounded_reader import BoundedReader
from modular_tf.filesystem.workarounds.descriptors import DescriptorCheck
from modular_tf.filesystem.workarounds.endpoint_check import EndpointCheck
from modular_tf.filesystem.workarounds.library_check import LibraryCheck
from modular_tf.filesystem.workarounds.readers import BlockReader, PiecewiseReader
from modular_tf.filesystem.workarounds.store_lookup import depth_of, store_uri
from modular_tf.filesystem.workarounds.whole_file import WholeFile
from modular_tf.filesystem.workarounds.writer import WorkaroundWriter
from modular_tf.loading.workarounds import Workarounds
from modular_tf.service.service import PluginService

CONTENT = bytes(range(200))


class Server(RandomAccessFile):
    """A file on a server; one that ignores ranges overflows a buffer that is too small."""

    uri = "http://host/file"

    def __init__(self, *, ranges, content=CONTENT):
        self.ranges = ranges
        self.content = content
        self.requests = []
        self.closed = False

    def readinto(self, offset, buffer):
        self.requests.append((offset, len(buffer)))
        piece = self.content[offset : offset + len(buffer)] if self.ranges else self.content
        if len(piece) > len(buffer):
            raise InternalError("(23): overflow")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self):
        self.closed = True


def reader_of(server, told=200):
    return BlockReader(
        server,
        first=16,
        block=64,
        checked_call=lambda call: call(),
        size=lambda: told,
        is_overflow=lambda error: "(23)" in error.message,
        honours_ranges={},
    )


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("told", [len(CONTENT), 0])
@pytest.mark.parametrize(("offset", "n"), [(0, 5), (10, 20), (30, 170), (150, 100), (500, 3)])
def test_any_piece_is_right(ranges, told, offset, n):
    server = Server(ranges=ranges)
    with reader_of(server, told) as reader:
        for _ in range(2):
            assert reader.read(offset, n) == CONTENT[offset : offset + n]
    assert server.closed


@pytest.mark.parametrize("ranges", [True, False])
def test_a_short_file_costs_one_request(ranges):
    server = Server(ranges=ranges, content=b"short")
    reader = reader_of(server)
    assert [reader.read(0, 9), reader.read(2, 2), reader.read(5, 1)] == [b"short", b"or", b""]
    assert server.requests == [(0, 16)]


def test_small_reads_are_served_from_blocks_and_large_ones_handed_on():
    server = Server(ranges=True)
    reader = reader_of(server)
    assert b"".join(reader.read(offset, 1) for offset in range(200)) == CONTENT
    assert server.requests == [(0, 16), (1, 1), (16, 64), (80, 64), (144, 64)]
    reader.read(0, 100)
    assert server.requests[-1] == (0, 100)


def test_a_closed_reader_refuses():
    reader = reader_of(Server(ranges=True))
    reader.close()
    reader.close()
    with pytest.raises(ClosedError):
        reader.read(0, 1)


def test_another_error_is_no_overflow():
    class Failing(Server):
        def readinto(self, offset, buffer):
            raise InternalError("500")

    with pytest.raises(InternalError, match="500"):
        reader_of(Failing(ranges=True))


def test_pieces_are_never_larger_than_they_may():
    server = Server(ranges=True)
    assert PiecewiseReader(server, 32).read(10, 500) == CONTENT[10:]
    assert max(n for _, n in server.requests) == 32


def test_pieces_that_are_read_at_once_have_their_own_size():
    server = Server(ranges=True)
    reader = PiecewiseReader(BoundedReader(server, 200), 64, 40)
    assert [reader.read(10, 150), reader.read(0, 40)] == [CONTENT[10:160], CONTENT[:40]]
    assert sorted(server.requests) == [(0, 40), (10, 40), (50, 40), (90, 40), (130, 30)]


@pytest.mark.parametrize("size", [30, 190, 300])
def test_pieces_that_are_read_at_once_come_into_the_memory_of_the_caller(size):
    server, memory = Server(ranges=True), bytearray(b"." * size)
    reader = PiecewiseReader(BoundedReader(server, 200), 64, 40)
    with ThreadPoolExecutor(1) as crew:  # where no interrupt comes
        count = crew.submit(reader.readinto, 10, memory).result()
    assert memory == CONTENT[10 : 10 + size].ljust(size, b".")
    assert count == min(size, 190)
    assert max(n for _, n in server.requests) <= 40


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
    reader = PiecewiseReader(BoundedReader(OneFails(), 8), 4, 4)
    with ThreadPoolExecutor(1) as crew:
        reading = crew.submit(reader.readinto, 0, memory)
        failed.wait(60)
        assert not wait([reading], timeout=2).done
        may_end.set()
        with pytest.raises(InternalError, match="lost"):
            reading.result()
    assert memory == b"\0\0\0\0late"


def test_a_file_that_was_read_when_it_was_opened_is_asked_nothing():
    with WholeFile("xx://bucket/file", b"content") as file:
        assert [file.read(4, 9), file.read(7, 1), file.read(9, 1)] == [b"ent", b"", b""]
        buffer = bytearray(3)
        assert (file.readinto(1, buffer), bytes(buffer)) == (3, b"ont")
        assert (file.readinto(6, buffer), bytes(buffer)) == (1, b"tnt")
        assert file.known_length() == 7
        for offset, n in ((-1, 1), (0, -1)):
            with pytest.raises(InvalidArgumentError, match="no file has"):
                file.read(offset, n)
    for refused in (lambda: file.read(0, 1), file.known_length):
        with pytest.raises(ClosedError):
            refused()


class Refusing(WritableFile):
    """A file that cannot be closed."""

    uri = "xx://bucket/file"

    def append(self, data):
        pass

    def tell(self):
        return 0

    def close(self):
        raise InternalError("no part was sent", plugin="plugin")


class Counting:
    """Stands in for what a plugin forgets."""

    closed = 0

    def close(self):
        self.closed += 1


def _writer(leaked=None, position=0, needs_bytes=True):
    return WorkaroundWriter(
        Refusing(),
        position=position,
        touch=False,
        needs_bytes=needs_bytes,
        leaked=leaked,
        checked_close=lambda close: close(),
    )


def test_a_file_without_a_byte_is_refused_in_words():
    writer = _writer()
    writer.append(b"")
    with pytest.raises(UnimplementedError, match="plugin cannot write a file of no bytes") as told:
        writer.close()
    assert (told.value.operation, told.value.path) == ("close", "xx://bucket/file")


@pytest.mark.parametrize(
    ("data", "position", "needs_bytes"), [(b"x", 0, True), (b"", 7, True), (b"", 0, False)]
)
def test_another_failure_of_close_is_told_as_it_is(data, position, needs_bytes):
    writer = _writer(position=position, needs_bytes=needs_bytes)
    writer.append(data)
    with pytest.raises(InternalError, match="no part was sent"):
        writer.close()


def test_leaked_descriptors_are_closed_though_the_file_cannot_be():
    leaked = Counting()
    with pytest.raises(UnimplementedError):
        _writer(leaked).close()
    assert leaked.closed == 1


def test_what_a_check_kept_from_its_store_is_not_stored_later():
    def refused(_close):
        raise UnavailableError("the server accepts no connection")

    with PluginService() as service:
        service.load()
        store = service.filesystem("ram")
        file = store.new_writable_file("ram://f")
        writer = WorkaroundWriter(
            file, position=0, touch=False, needs_bytes=False, leaked=None, checked_close=refused
        )
        with pytest.raises(UnavailableError):
            writer.close()
        assert file.closed


@pytest.mark.parametrize("end", ["close", "discard"])
def test_a_file_that_is_closed_asks_its_server_no_more(end):
    """Which may be gone by then; the end of its service closes what is open still."""
    asked = []

    def checked(close):
        asked.append("server")
        if len(asked) > 1:
            raise UnavailableError("the server accepts no connection")
        close()

    with PluginService() as service:
        service.load()
        file = service.filesystem("ram").new_writable_file("ram://f")
        writer = WorkaroundWriter(
            file, position=0, touch=False, needs_bytes=False, leaked=None, checked_close=checked
        )
        getattr(writer, end)()
        writer.close()
    assert asked == (["server"] if end == "close" else [])


def test_descriptors_are_counted_against_the_limit():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    DescriptorCheck(1, "plugin").require("read", "uri")
    with pytest.raises(ResourceExhaustedError, match=f"of {limit} file descriptors"):
        DescriptorCheck(limit, "plugin").require("read", "uri")


def test_any_place_of_a_library_will_do(monkeypatch):
    monkeypatch.setenv("PLACE", "/nowhere")
    LibraryCheck(("$PLACE/libc.so.6", "libc.so.6"), "plugin").require("stat", "uri")
    monkeypatch.delenv("PLACE")
    missing = LibraryCheck(("$PLACE/libmissing.so", "/nowhere/libmissing.so"), "plugin")
    with pytest.raises(UnavailableError, match=r"(?s)needs libmissing.so: PLACE is not set; /now"):
        missing.require("stat", "uri")


def test_nothing_is_tried_where_no_server_is_known(monkeypatch):
    monkeypatch.delenv("NO_SUCH_ENDPOINT", raising=False)
    EndpointCheck(Workarounds(endpoint_variables=("NO_SUCH_ENDPOINT",)), "p").require(
        "stat", "xx://h/p"
    )
    pattern = r"http://(?P<host>[^/]+)"
    EndpointCheck(Workarounds(endpoint_pattern=pattern), "p").require("stat", "/no/server")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:1", "http://127.0.0.1:x"])
def test_a_server_that_takes_no_connection_is_told(url, monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SOME_ENDPOINT", url)
    check = EndpointCheck(Workarounds(endpoint_variables=("SOME_ENDPOINT",)), "plugin")
    with pytest.raises(UnavailableError, match="accepts no connection") as raised:
        check.require("stat", "xx://bucket/file")
    assert check.server_of("xx://bucket/file") == url.rpartition("/")[2]
    assert (raised.value.operation, raised.value.path) == ("stat", "xx://bucket/file")


@pytest.mark.parametrize(
    ("uri", "plain", "depth"),
    [
        ("xx://bucket", "xx://bucket/", 0),
        ("xx://bucket/", "xx://bucket/", 0),
        ("xx://bucket/a//", "xx://bucket/a", 1),
        ("xx://bucket/a/b", "xx://bucket/a/b", 2),
    ],
)
def test_uris_of_a_store_have_one_form(uri, plain, depth):
    assert (store_uri(uri), depth_of(uri)) == (plain, depth)


def _in_threads(count, work):
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


@pytest.fixture
def no_proxy(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


_BY_HOST = Workarounds(endpoint_pattern=r"(?P<scheme>https?)://(?P<host>[^/?#]+)")


def test_a_dead_server_holds_up_nobody_who_asks_another(monkeypatch, no_proxy):
    """The healthy one is asked while the name of the dead one is still being looked up."""
    is_asked, may_fail = threading.Event(), threading.Event()

    def resolve(host, port):
        if host == "dead":
            is_asked.set()
            assert may_fail.wait(30)
            raise OSError("no such host")
        return [(socket.AF_INET, ("127.0.0.1", port))]

    monkeypatch.setattr(endpoint_check, "_resolve", resolve)
    check = EndpointCheck(_BY_HOST, "plugin", {})
    refused = []

    def ask_the_dead():
        with pytest.raises(UnavailableError):
            check.require("stat", "http://dead/x")
        refused.append(True)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threads = _in_threads(6, ask_the_dead)
        assert is_asked.wait(30)
        check.require("stat", f"http://healthy:{server.getsockname()[1]}/x")
        assert refused == []
        may_fail.set()
        for thread in threads:
            thread.join(30)
    assert refused == [True] * 6


def test_a_server_that_was_waited_for_in_vain_is_asked_once(monkeypatch, no_proxy):
    asked = []

    def resolve(host, port):
        asked.append((host, port))
        clock[0] += 4
        raise TimeoutError("no answer")

    clock = [100.0]
    monkeypatch.setattr(endpoint_check, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(endpoint_check, "_resolve", resolve)
    check = EndpointCheck(_BY_HOST, "plugin", {})
    for number in range(3):
        with pytest.raises(UnavailableError, match=rf"stat 'http://dead/{number}'.*no answer"):
            check.require("stat", f"http://dead/{number}")
    assert len(asked) == 1
    clock[0] += 60
    with pytest.raises(UnavailableError):
        check.require("stat", "http://dead/x")
    assert len(asked) == 2


def test_a_server_that_refuses_at_once_is_asked_again(no_proxy):
    check = EndpointCheck(_BY_HOST, "plugin", {})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UnavailableError):
        check.require("stat", f"http://127.0.0.1:{port}/x")
    with socket.create_server(("127.0.0.1", port)):
        check.require("stat", f"http://127.0.0.1:{port}/x")


def test_a_bracket_that_is_not_closed_is_told(no_proxy):
    url = "http://user:hush@[::1:9000/"
    check = EndpointCheck(Workarounds(endpoint_variables=("E",)), "plugin", {"E": url})
    with pytest.raises(UnavailableError, match="E names it: correct it"):
        check.require("stat", "xx://bucket/file")
    assert check.server_of("xx://bucket/file") == "[::1:9000"


_WITHOUT_DESCRIPTORS = """
    import os, resource, sys
    from modular_tf.errors import ResourceExhaustedError
    from modular_tf.filesystem.workarounds.descriptors import DescriptorCheck, LeakedDescriptors
    from modular_tf.filesystem.workarounds.endpoint_check import EndpointCheck
    from modular_tf.loading.workarounds import Workarounds

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
        DescriptorCheck(1, "plugin"),
        EndpointCheck(Workarounds(endpoint_variables=("E",)), "plugin", {"E": "http://127.0.0.1:9"}),
    )
    for check in checks:
        try:
            check.require("stat", "http://h/x")
        except ResourceExhaustedError as error:
            found = str(error)
        assert "ulimit -n" in found and "http://h/x" in found
    LeakedDescriptors(place).close()
    assert os.dup(0) == leaked
"""


def test_no_descriptor_left_is_a_typed_error(run_python, tmp_path):
    run_python(_WITHOUT_DESCRIPTORS, tmp_path / "leaked_by_plugin")
