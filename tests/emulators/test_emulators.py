"""What an emulator answers where a wrong answer would have tests of plugins pass."""

from __future__ import annotations

import pytest

from tests.fixtures.emulators import NAME, s3_client

pytestmark = pytest.mark.emulator


@pytest.fixture
def client(distant_s3):
    with s3_client(distant_s3.endpoint) as made:
        yield made


def listed(client, operation, **query):
    found = []
    for page in client.get_paginator(operation).paginate(Bucket=NAME, **query):
        found += [entry["Key"] for entry in page.get("Contents", ())]
        found += [entry["Prefix"] for entry in page.get("CommonPrefixes", ())]
    return found


@pytest.mark.parametrize("operation", ["list_objects", "list_objects_v2"])
def test_listings_come_in_pages(client, operation):
    inside = "tree/a", "tree/b/", "tree/b/1", "tree/b/2", "tree/b.c", "tree/d/é & <x>", "tree/e"
    for key in (*inside, "tred", "tref"):
        client.put_object(Bucket=NAME, Key=key, Body=b"content")
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
