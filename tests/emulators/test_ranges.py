from __future__ import annotations

import pytest

from tests.emulators.conversation import ask

pytestmark = pytest.mark.emulator


@pytest.fixture
def page(http_store):
    (http_store.folder / "page.txt").write_bytes(b"0123456789")
    return http_store.uri("page.txt")


def test_a_file_comes_whole(page):
    reply = ask("GET", page)

    assert (reply.status, reply.body) == (200, b"0123456789")
    assert reply.headers["Accept-Ranges"] == "bytes"


def test_a_range_gets_partial_content(page):
    reply = ask("GET", page, headers={"Range": "bytes=3-5"})

    assert (reply.status, reply.body) == (206, b"345")
    assert reply.headers["Content-Range"] == "bytes 3-5/10"


def test_a_range_behind_the_end_gets_416_and_the_size(page):
    reply = ask("GET", page, headers={"Range": "bytes=10-"})

    assert (reply.status, reply.body) == (416, b"")
    assert reply.headers["Content-Range"] == "bytes */10"


def test_head_tells_the_size_without_the_content(page):
    reply = ask("HEAD", page)

    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["Content-Length"] == "10"


@pytest.mark.parametrize("path", ["absent", "../server.log", ""])
def test_what_is_not_a_file_below_the_folder_is_not_found(http_store, path):
    assert ask("GET", http_store.uri(path)).status == 404


def test_writing_is_refused(page):
    assert ask("PUT", page, b"x").status == 405


def test_the_other_mode_ignores_the_range(http_store_without_ranges):
    (http_store_without_ranges.folder / "page.txt").write_bytes(b"0123456789")

    reply = ask("GET", http_store_without_ranges.uri("page.txt"), headers={"Range": "bytes=3-5"})

    assert (reply.status, reply.body) == (200, b"0123456789")
    assert "Accept-Ranges" not in reply.headers
