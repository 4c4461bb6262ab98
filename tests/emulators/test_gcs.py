from __future__ import annotations

import json
import socket
from urllib.parse import quote, urlsplit

import pytest

from tests.emulators.conversation import ask
from tests.fixtures.emulators import NAME

pytestmark = pytest.mark.emulator


class Client:
    """The requests that Google's client library sends."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.api = f"{endpoint}/storage/v1/b/{NAME}"
        self.uploads = f"{endpoint}/upload/storage/v1/b/{NAME}/o"

    def object(self, name):
        return f"{self.api}/o/{quote(name, safe='')}"

    def put(self, name, content):
        reply = ask("PUT", f"{self.endpoint}/{NAME}/{quote(name)}", content)
        assert reply.status == 200

    def content(self, name):
        reply = ask("GET", self.object(name) + "?alt=media")
        assert reply.status == 200
        return reply.body

    def names(self, **query):
        reply = ask("GET", f"{self.api}/o?" + "&".join(f"{k}={quote(v)}" for k, v in query.items()))
        found = reply.json()
        return [entry["name"] for entry in found["items"]], found["prefixes"]


@pytest.fixture(scope="module")
def client(gcs_store):
    return Client(gcs_store.endpoint)


def test_an_object_is_written_described_and_read(client):
    client.put("made/by put", b"content")

    description = ask("GET", client.object("made/by put")).json()

    assert (description["name"], description["size"]) == ("made/by put", "7")
    assert description["md5Hash"] == "mgNkuembtIDdJeHwKEyFVQ=="
    assert client.content("made/by put") == b"content"


def test_a_new_generation_replaces_the_old_one(client):
    client.put("twice", b"one")
    first = ask("GET", client.object("twice")).json()["generation"]
    client.put("twice", b"two")

    assert int(ask("GET", client.object("twice")).json()["generation"]) > int(first)
    assert client.content("twice") == b"two"


def test_an_empty_object_exists(client):
    client.put("empty", b"")

    assert client.content("empty") == b""


def test_the_xml_api_reads_ranges(client, gcs_store):
    client.put("ranged", b"0123456789")

    reply = ask("GET", f"{gcs_store.endpoint}/{NAME}/ranged", headers={"Range": "bytes=2-4"})

    assert (reply.status, reply.body) == (206, b"234")
    assert reply.headers["Content-Length"] == "3"


def test_reading_behind_the_end_gets_416(client):
    client.put("short", b"x")

    reply = ask("GET", client.object("short") + "?alt=media", headers={"Range": "bytes=1-"})

    assert reply.status == 416


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_missing_object_gets_404_as_json(client, method):
    reply = ask(method, client.object("absent"))

    assert reply.status == 404
    assert reply.json()["error"]["code"] == 404


def test_a_missing_bucket_gets_404(gcs_store):
    assert ask("GET", f"{gcs_store.endpoint}/storage/v1/b/absent").status == 404
    assert ask("PUT", f"{gcs_store.endpoint}/absent/x", b"").status == 404


def test_the_bucket_is_described(client):
    assert ask("GET", client.api).json()["name"] == NAME


def test_listing_folds_names_at_the_delimiter(client):
    for name in ("list/a", "list/b/", "list/b/c", "list/d/e"):
        client.put(name, b"")

    names, prefixes = client.names(prefix="list/", delimiter="/")

    assert names == ["list/a"]
    assert prefixes == ["list/b/", "list/d/"]


def test_listing_can_include_the_folders_themselves(client):
    client.put("marked/b/", b"")

    names, prefixes = client.names(prefix="marked/", delimiter="/", includeTrailingDelimiter="true")

    assert (names, prefixes) == (["marked/b/"], ["marked/b/"])


def test_listing_without_a_delimiter_is_flat(client):
    client.put("flat/a/b", b"")

    assert client.names(prefix="flat/") == (["flat/a/b"], [])


def test_delete_removes(client):
    client.put("gone", b"")

    assert ask("DELETE", client.object("gone")).status == 204
    assert ask("GET", client.object("gone")).status == 404


def test_rewrite_copies_and_reports_that_it_is_done(client):
    client.put("source", b"abc")

    target = f"{client.object('source')}/rewriteTo/b/{NAME}/o/{quote('to/there', safe='')}"
    reply = ask("POST", target, b"{}").json()

    assert reply["done"] is True
    assert reply["resource"]["name"] == "to/there"
    assert client.content("to/there") == b"abc"


def test_rewrite_of_a_missing_object_gets_404(client):
    assert ask("POST", f"{client.object('absent')}/rewriteTo/b/{NAME}/o/x", b"{}").status == 404


def test_compose_joins_in_order(client):
    client.put("part1", b"ab")
    client.put("part2", b"cd")
    sources = {"sourceObjects": [{"name": "part2"}, {"name": "part1"}]}

    reply = ask("POST", client.object("joined") + "/compose", json.dumps(sources).encode())

    assert reply.json()["size"] == "4"
    assert client.content("joined") == b"cdab"


def test_multipart_upload_keeps_every_byte(client):
    content = b"\r\nline\r\n--almost\r\n"
    body = (
        b'--edge\r\nContent-Type: application/json\r\n\r\n{"name": "parts"}\r\n'
        b"--edge\r\nContent-Type: application/octet-stream\r\n\r\n" + content + b"\r\n--edge--\r\n"
    )

    headers = {"Content-Type": 'multipart/related; boundary="edge"'}
    reply = ask("POST", client.uploads + "?uploadType=multipart", body, headers)

    assert reply.json()["name"] == "parts"
    assert client.content("parts") == content


def test_resumable_upload_in_pieces(client):
    start = ask("POST", client.uploads + "?uploadType=resumable", b'{"name": "pieces"}')
    session = start.headers["Location"]

    first = ask("PUT", session, b"abc", {"Content-Range": "bytes 0-2/*"})
    status = ask("PUT", session, b"", {"Content-Range": "bytes */*"})
    last = ask("PUT", session, b"de", {"Content-Range": "bytes 3-4/5"})

    assert (first.status, first.headers["Range"]) == (308, "bytes=0-2")
    assert (status.status, status.headers["Range"]) == (308, "bytes=0-2")
    assert (last.status, last.json()["size"]) == (200, "5")
    assert client.content("pieces") == b"abcde"


def test_resumable_upload_can_end_without_new_bytes(client):
    session = ask("POST", client.uploads + "?uploadType=resumable&name=ended").headers["Location"]

    ask("PUT", session, b"abc", {"Content-Range": "bytes 0-2/*"})
    last = ask("PUT", session, b"", {"Content-Range": "bytes */3"})

    assert last.json()["size"] == "3"


def test_a_body_may_come_in_chunks(client, gcs_store):
    reply = ask("PUT", f"{gcs_store.endpoint}/{NAME}/chunked", iter([b"one ", b"two"]))

    assert reply.status == 200
    assert client.content("chunked") == b"one two"


def test_a_client_that_waits_for_continue_gets_it_before_the_body(gcs_store):
    host = urlsplit(gcs_store.endpoint)
    head = f"PUT /{NAME}/expected HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
    with socket.create_connection((host.hostname, host.port), timeout=10) as connection:
        connection.sendall(head.encode() + b"Expect: 100-continue\r\n\r\n")
        proceed = connection.recv(100)
        connection.sendall(b"ok")
        final = connection.recv(1000)

    assert proceed.startswith(b"HTTP/1.1 100 ")
    assert final.startswith(b"HTTP/1.1 200 ")


def test_an_unknown_request_says_so(client):
    reply = ask("PATCH", client.object("x"), b"{}")

    assert reply.status == 501
    assert "PATCH" in reply.json()["error"]["message"]
