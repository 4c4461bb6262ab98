"""What clients of the stores ask for and the tests of plugins do not show."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.emulators.conversation import ask
from tests.emulators.http_server import requested_range
from tests.fixtures.emulators import NAME

pytestmark = pytest.mark.emulator


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-3", (0, 4)),
        ("bytes=4-", (4, 10)),
        ("bytes=8-99", (8, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=10-", (10, 10)),
        ("bytes=-0", (10, 10)),
        ("bytes=5-4", None),
        ("bytes=0-1,3-4", None),
        ("bytes=-", None),
        ("lines=0-3", None),
        ("", None),
    ],
)
def test_a_range_selects_bytes_of_ten(header, expected):
    assert requested_range(header, 10) == expected


def test_a_folder_is_served_and_nothing_beside_it(http_store):
    (http_store.folder / "page.txt").write_bytes(b"0123456789")
    page = http_store.uri("page.txt")
    part, behind = (ask("GET", page, headers={"Range": f"bytes={at}"}) for at in ("3-5", "10-"))
    size = ask("HEAD", page)

    assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"345", "bytes 3-5/10")
    assert (behind.status, behind.body, behind.headers["Content-Range"]) == (416, b"", "bytes */10")
    assert (size.status, size.body, size.headers["Content-Length"]) == (200, b"", "10")
    for path in ("absent", "../server.log", ""):
        assert ask("GET", http_store.uri(path)).status == 404
    assert ask("PUT", page, b"x").status == 405


def test_the_other_mode_ignores_the_range(http_store_without_ranges):
    (http_store_without_ranges.folder / "page.txt").write_bytes(b"0123456789")

    reply = ask("GET", http_store_without_ranges.uri("page.txt"), headers={"Range": "bytes=3-5"})

    assert (reply.status, reply.body) == (200, b"0123456789")
    assert "Accept-Ranges" not in reply.headers


@pytest.fixture
def uploads(gcs_store):
    """Where Google's store takes uploads."""
    return f"{gcs_store.endpoint}/upload/storage/v1/b/{NAME}/o"


def content_of(gcs_store, name):
    return ask("GET", f"{gcs_store.endpoint}/storage/v1/b/{NAME}/o/{name}?alt=media").body


def test_gcs_lists_folders_as_objects_only_if_it_is_asked_to(gcs_store):
    for name in ("list/a", "list/b/", "list/b/c", "list/d/e"):
        ask("PUT", f"{gcs_store.endpoint}/{NAME}/{name}", b"")

    def listed(query):
        objects = f"{gcs_store.endpoint}/storage/v1/b/{NAME}/o"
        found = ask("GET", f"{objects}?prefix=list/&{query}").json()
        return [item["name"] for item in found["items"]], found["prefixes"]

    folders = ["list/b/", "list/d/"]
    assert listed("") == (["list/a", "list/b/", "list/b/c", "list/d/e"], [])
    assert listed("delimiter=/") == (["list/a"], folders)
    both = listed("delimiter=/&includeTrailingDelimiter=true")
    assert both == (["list/a", "list/b/"], folders)


def test_gcs_takes_an_upload_in_two_parts_of_one_body(gcs_store, uploads):
    content = b"\r\nline\r\n--almost\r\n"
    body = (
        b'--edge\r\nContent-Type: application/json\r\n\r\n{"name": "parts"}\r\n'
        b"--edge\r\nContent-Type: application/octet-stream\r\n\r\n" + content + b"\r\n--edge--\r\n"
    )
    headers = {"Content-Type": 'multipart/related; boundary="edge"'}

    assert ask("POST", f"{uploads}?uploadType=multipart", body, headers).json()["name"] == "parts"
    assert content_of(gcs_store, "parts") == content


def test_gcs_takes_an_upload_in_pieces(gcs_store, uploads):
    start = ask("POST", f"{uploads}?uploadType=resumable", b'{"name": "pieces"}')
    session = start.headers["Location"]
    first, status, last = (
        ask("PUT", session, piece, {"Content-Range": f"bytes {where}"})
        for piece, where in ((b"abc", "0-2/*"), (b"", "*/*"), (b"de", "3-4/5"))
    )

    assert (first.status, first.headers["Range"]) == (308, "bytes=0-2")
    assert (status.status, status.headers["Range"]) == (308, "bytes=0-2")
    assert (last.status, last.json()["size"]) == (200, "5")
    assert content_of(gcs_store, "pieces") == b"abcde"


def test_gcs_joins_objects_in_their_order(gcs_store):
    for name, content in (("part1", b"ab"), ("part2", b"cd")):
        ask("PUT", f"{gcs_store.endpoint}/{NAME}/{name}", content)
    sources = {"sourceObjects": [{"name": "part2"}, {"name": "part1"}]}
    place = f"{gcs_store.endpoint}/storage/v1/b/{NAME}/o/joined/compose"

    assert ask("POST", place, json.dumps(sources).encode()).json()["size"] == "4"
    assert content_of(gcs_store, "joined") == b"cdab"


def test_a_body_comes_in_chunks_or_after_100_continue(gcs_store):
    chunked = ask("PUT", f"{gcs_store.endpoint}/{NAME}/chunked", iter([b"one ", b"two"]))
    host = urlsplit(gcs_store.endpoint)
    head = f"PUT /{NAME}/expected HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
    with socket.create_connection((host.hostname, host.port), timeout=10) as connection:
        connection.sendall(head.encode() + b"Expect: 100-continue\r\n\r\n")
        proceed = connection.recv(100)
        connection.sendall(b"ok")
        final = connection.recv(1000)

    assert chunked.status == 200
    assert content_of(gcs_store, "chunked") == b"one two"
    assert proceed.startswith(b"HTTP/1.1 100 ")
    assert final.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("store", ["gcs_store", "oss_store"])
def test_an_unknown_request_is_named(store, request):
    reply = ask("PATCH", f"{request.getfixturevalue(store).endpoint}/x", b"{}")

    assert reply.status == 501
    assert b"PATCH /x" in reply.body


def test_oss_joins_parts_by_number_and_copies_into_them(oss_store):
    def identity(reply):
        return reply.body.decode().partition("<UploadId>")[2].partition("<")[0]

    ask("PUT", f"{oss_store.endpoint}/source", b"0123456789")
    session = identity(ask("POST", f"{oss_store.endpoint}/big?uploads"))
    target = f"{oss_store.endpoint}/big?uploadId={session}"
    ask("PUT", f"{target}&partNumber=2", b"two")
    copied = {"x-oss-copy-source": "/bucket/source", "x-oss-copy-source-range": "bytes=3-5"}
    ask("PUT", f"{target}&partNumber=1", b"", copied)
    listed = ask("GET", target).body.decode()
    assert ask("POST", target, b"").status == 200

    assert listed.index("<PartNumber>1<") < listed.index("<PartNumber>2<")
    assert ask("GET", f"{oss_store.endpoint}/big").body == b"345two"
    missing = ask("PUT", f"{oss_store.endpoint}/x", b"", {"x-oss-copy-source": "/bucket/absent"})
    assert (missing.status, b"NoSuchKey" in missing.body) == (404, True)
    assert b"NoSuchUpload" in ask("PUT", target, b"").body
