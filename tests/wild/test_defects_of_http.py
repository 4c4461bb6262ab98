"""The known defects of the HTTP filesystem of tensorflow-io, with and without workarounds."""

from __future__ import annotations

import http.server
import threading

import pytest

from tests.emulators.conversation import ask
from tests.fixtures.emulators import NO_PROXY, Store

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_SIZE = 10 << 20
_PATTERN = bytes(range(256)) * (_SIZE // 256)


@pytest.fixture(params=["http_store", "http_store_without_ranges"])
def web(request):
    """A web server that honours ranges, and one that does not, with a file of 10 MiB."""
    store = request.getfixturevalue(request.param)
    (store.folder / "big").write_bytes(_PATTERN)
    (store.folder / "small").write_bytes(b"content")
    (store.folder / "empty").write_bytes(b"")
    return store


_RANGES = """
    pattern = bytes(range(256)) * ((10 << 20) // 256)
    for offset, n in ((0, 5), (6, 100), (5_000_000, 77), (10_485_700, 1000), (20_000_000, 5)):
        expect(get("big", offset, n) == pattern[offset:offset + n], True)
    with fs.new_random_access_file(uri("big")) as file:
        expect(file.read(0, 20 << 20) == pattern, True)
        expect(file.read(9_000_000, 2_000_000) == pattern[9_000_000:], True)
        expect(file.read(3, 4), bytes([3, 4, 5, 6]))
    expect(get("small", 2, 3), b"nte")
    expect((get("small", 7, 1), get("empty")), (b"", b""))
    with fs.open(uri("big"), "rb") as stream:
        stream.seek(-256, 2)
        expect(stream.read() == pattern[:256], True)
    """


def test_http_server_ignores_range(web, run_subject):
    run_subject(web, _RANGES)
    honours = ask("GET", web.uri("small"), headers={"Range": "bytes=2-3"}).status == 206
    raw = run_subject(web, "print(get('small', 2, 100).decode())", without="*")
    assert raw.stdout == ("ntent\n" if honours else "content\n")


def test_http_leaks_descriptors(http_store, run_subject):
    """Few requests for many reads; and a clear refusal before the process has none left."""
    (http_store.folder / "big").write_bytes(_PATTERN)
    run_subject(
        http_store,
        """
        import os, resource
        def used():
            return len(os.listdir("/proc/self/fd"))
        before = used()
        with fs.new_random_access_file(uri("big")) as file:
            for offset in range(0, 10 << 20, 10_000):
                file.read(offset, 10_000)
        expect(used() - before < 40, True)

        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        for number in range(200):
            try:
                get("big", 0, 1)
            except errors.ResourceExhaustedError as error:
                expect("file descriptors" in str(error), True)
                break
        else:
            raise AssertionError("never refused")
        with open(os.devnull):
            pass
        """,
    )
    raw = run_subject(
        http_store,
        """
        import os
        before = len(os.listdir("/proc/self/fd"))
        with fs.new_random_access_file(uri("big")) as file:
            for offset in range(100):
                file.read(offset, 10)
        print(len(os.listdir("/proc/self/fd")) - before)
        """,
        without="*,require",
    )
    assert int(raw.stdout) >= 300


@pytest.fixture
def counting_server():
    """A web server that counts requests, and spells the header as HTTP/2 does."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.headers.get("Range"))
            if self.path not in {"/file", "/endless"}:
                self.send_error(404)
                return
            self.send_response(200)
            if self.path == "/file":
                self.send_header("content-length", "7")
            self.end_headers()
            self.wfile.write(b"content" if self.path == "/file" else _PATTERN)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        yield Store(url, url, NO_PROXY), requests
        server.shutdown()


def test_http_stat_fetches_everything(counting_server, run_subject):
    store, requests = counting_server
    run_subject(
        store,
        """
        expect((fs.stat(uri("file")).length, fs.get_file_size(uri("file"))), (7, 7))
        expect((fs.path_exists(uri("file")), fs.is_directory(uri("file"))), (True, False))
        """,
    )
    assert len(requests) == 2  # one for stat, whose length is missed, and one to measure

    run_subject(
        store,
        """
        for ask in (fs.stat, fs.get_file_size, fs.is_directory, fs.new_random_access_file, get,
                    fs.new_read_only_memory_region_from_file):
            expect_error(FileNotFoundError, ask, uri("missing"))
        for nothing in ("", "http://"):
            expect_error(FileNotFoundError, fs.stat, nothing)
            expect_error(FileNotFoundError, fs.new_random_access_file, nothing)
        expect((fs.path_exists(uri("missing")), fs.path_exists("")), (False, False))
        with fs.new_read_only_memory_region_from_file(uri("file")) as region:
            expect(bytes(region.view()), b"content")
        expect_error(NotImplementedError, put, "file")
        """,
    )
    run_subject(
        store,
        "expect_error(errors.InvalidArgumentError, fs.stat, uri('file'))",
        without="stat",
    )
    run_subject(
        store,
        "expect_error(errors.InternalError, fs.new_random_access_file, '')",
        without="not_found_message",
    )


def test_a_server_that_tells_no_length_is_read_whole(counting_server, run_subject):
    store, _ = counting_server
    run_subject(
        store,
        """
        pattern = bytes(range(256)) * ((10 << 20) // 256)
        expect(get("endless", 5_000_000, 1000) == pattern[5_000_000:5_001_000], True)
        expect(fs.get_file_size(uri("endless")), len(pattern))
        """,
    )
