from __future__ import annotations

import re

import pytest

from tests.emulators.conversation import ask

pytestmark = pytest.mark.emulator


@pytest.fixture(scope="module")
def url(oss_store):
    return oss_store.endpoint


def _values(reply, name):
    return re.findall(f"<{name}>(.*?)</{name}>", reply.body.decode())


def test_an_object_is_written_read_and_deleted(url):
    assert ask("PUT", f"{url}/one", b"content").status == 200
    whole = ask("GET", f"{url}/one")
    part = ask("GET", f"{url}/one", headers={"Range": "bytes=1-3"})
    size = ask("HEAD", f"{url}/one")
    assert ask("DELETE", f"{url}/one").status == 204

    assert whole.body == b"content"
    assert (part.status, part.body) == (206, b"ont")
    assert size.headers["Content-Length"] == "7"
    assert ask("GET", f"{url}/one").status == 404


def test_listing_folds_names_at_the_delimiter(url):
    for name in ("list/a", "list/b/c", "list/%26"):
        ask("PUT", f"{url}/{name}", b"")

    reply = ask("GET", f"{url}/?prefix=list/&delimiter=/")

    assert _values(reply, "Key") == ["list/&amp;", "list/a"]
    assert _values(reply, "Prefix") == ["list/", "list/b/"]


def test_copy(url):
    ask("PUT", f"{url}/source", b"abc")

    reply = ask("PUT", f"{url}/target", b"", {"x-oss-copy-source": "/bucket/source"})

    assert _values(reply, "ETag")
    assert ask("GET", f"{url}/target").body == b"abc"


def test_copy_of_what_is_missing_gets_404(url):
    reply = ask("PUT", f"{url}/target", b"", {"x-oss-copy-source": "/bucket/absent"})

    assert (reply.status, _values(reply, "Code")) == (404, ["NoSuchKey"])


def test_multipart_upload_joins_parts_by_number(url):
    ask("PUT", f"{url}/source", b"0123456789")
    (session,) = _values(ask("POST", f"{url}/big?uploads"), "UploadId")
    target = f"{url}/big?uploadId={session}"

    ask("PUT", f"{target}&partNumber=2", b"two")
    copied = {"x-oss-copy-source": "/bucket/source", "x-oss-copy-source-range": "bytes=3-5"}
    ask("PUT", f"{target}&partNumber=1", b"", copied)
    listed = ask("GET", target)
    assert ask("POST", target, b"").status == 200

    assert _values(listed, "PartNumber") == ["1", "2"]
    assert ask("GET", f"{url}/big").body == b"345two"


@pytest.mark.parametrize("method", ["PUT", "GET", "POST"])
def test_an_unknown_upload_gets_404(url, method):
    reply = ask(method, f"{url}/big?uploadId=nothing&partNumber=1", b"")

    assert _values(reply, "Code") == ["NoSuchUpload"]


def test_an_unknown_request_says_so(url):
    assert ask("PATCH", f"{url}/x", b"").status == 501
