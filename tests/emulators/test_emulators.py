"""What the emulators answer where a wrong answer would have tests of plugins pass."""

from __future__ import annotations

import pytest

from tests.emulators.http_server import requested_range
from tests.fixtures.emulators import NAME, s3_client

pytestmark = pytest.mark.emulator


@pytest.fixture
def client(distant_s3):
    with s3_client(distant_s3.endpoint) as made:
        yield made
    distant_s3.set(delay_s=0, bytes_per_s=0, refuse="", deny="", region="")


@pytest.fixture
def put(client):
    def put(*keys, content=b"content"):
        for key in keys:
            client.put_object(Bucket=NAME, Key=key, Body=content)

    return put


def code_of(call, **arguments):
    from botocore.exceptions import ClientError

    with pytest.raises(ClientError) as caught:
        call(Bucket=NAME, **arguments)
    return caught.value.response["Error"]["Code"]


def listed(client, operation, **query):
    found = []
    for page in client.get_paginator(operation).paginate(Bucket=NAME, **query):
        found += [entry["Key"] for entry in page.get("Contents", ())]
        found += [entry["Prefix"] for entry in page.get("CommonPrefixes", ())]
    return found


@pytest.mark.parametrize("operation", ["list_objects", "list_objects_v2"])
def test_listings_come_in_pages(client, put, operation):
    put("tree/a", "tree/b/", "tree/b/1", "tree/b/2", "tree/b.c", "tree/d/é & <x>", "tree/e")
    put("tred", "tref")
    for size in (1, 2, 3, 1000):
        pages = {"PaginationConfig": {"PageSize": size}}
        names = listed(client, operation, Prefix="tree/", **pages)
        folded, begun, inner = (
            listed(client, operation, Prefix=prefix, Delimiter="/", **pages)
            for prefix in ("tree/", "tree/b", "tree/b/")
        )
        assert names == ["tree/a", "tree/b.c", "tree/b/", "tree/b/1", "tree/b/2", "tree/d/é & <x>",
                         "tree/e"]  # fmt: skip
        assert sorted(folded) == ["tree/a", "tree/b.c", "tree/b/", "tree/d/", "tree/e"]
        assert sorted(begun) == ["tree/b.c", "tree/b/"]
        assert inner == ["tree/b/", "tree/b/1", "tree/b/2"]
    after = listed(client, "list_objects_v2", Prefix="tree/", StartAfter="tree/b/2")
    assert after == ["tree/d/é & <x>", "tree/e"]


def test_clients_are_refused_and_each_right_can_be_missing(client, put, distant_s3):
    put("kept")
    calls = {
        "list": lambda: code_of(client.list_objects_v2),
        "read": lambda: code_of(client.get_object, Key="kept"),
        "write": lambda: code_of(client.put_object, Key="kept", Body=b""),
    }
    distant_s3.set(refuse="SignatureDoesNotMatch")
    assert {call() for call in calls.values()} == {"SignatureDoesNotMatch"}
    assert code_of(client.head_object, Key="kept") == "403"
    distant_s3.set(refuse="")
    for denied, call in calls.items():
        distant_s3.set(deny=denied)
        assert call() == "AccessDenied"
        for allowed in calls.keys() - {denied}:
            with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
                calls[allowed]()


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
