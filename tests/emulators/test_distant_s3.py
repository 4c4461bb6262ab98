"""The emulator of S3, asked by the store's own client."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.emulators.conversation import ask
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


def content(client, key, **options):
    return client.get_object(Bucket=NAME, Key=key, **options)["Body"].read()


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


def test_an_object_is_written_described_read_and_changed(client, put):
    put("by put & <more>", content=b"one")
    put("by put & <more>", content=b"0123456789")
    head = client.head_object(Bucket=NAME, Key="by put & <more>")
    tag = head["ETag"]

    assert (head["ContentLength"], tag) == (10, '"781e5e245d69b566979b86e28d23f2c7"')
    assert content(client, "by put & <more>", IfMatch=tag) == b"0123456789"
    assert content(client, "by put & <more>", Range="bytes=8-99") == b"89"
    part = client.head_object(Bucket=NAME, Key="by put & <more>", Range="bytes=2-4")
    assert part["ContentLength"] == 3
    put("by put & <more>", content=b"")
    assert content(client, "by put & <more>") == b""
    for call, key, options, code in (
        (client.get_object, "by put & <more>", {"Range": "bytes=10-"}, "InvalidRange"),
        (client.head_object, "by put & <more>", {"Range": "bytes=10-"}, "416"),
        (client.get_object, "by put & <more>", {"IfMatch": tag}, "PreconditionFailed"),
        (client.get_object, "absent", {}, "NoSuchKey"),
        (client.head_object, "absent", {}, "404"),
    ):
        assert code_of(call, Key=key, **options) == code


def test_objects_are_copied_and_deleted(client, put):
    put("from/a b+c", "gone/a", "gone/b", content=b"copied")
    client.copy_object(Bucket=NAME, Key="to", CopySource={"Bucket": NAME, "Key": "from/a b+c"})
    for _ in range(2):
        client.delete_object(Bucket=NAME, Key="from/a b+c")
    named = [{"Key": "gone/a"}, {"Key": "gone/absent"}]
    client.delete_objects(Bucket=NAME, Delete={"Objects": named})

    assert content(client, "to") == b"copied"
    assert code_of(client.get_object, Key="from/a b+c") == "NoSuchKey"
    assert listed(client, "list_objects_v2", Prefix="gone/") == ["gone/b"]
    missing = {"Bucket": NAME, "Key": "absent"}
    assert code_of(client.copy_object, Key="to", CopySource=missing) == "NoSuchKey"


def test_a_big_object_arrives_in_parts_or_is_given_up(client, tmp_path):
    data = bytes(range(251)) * 40_000
    (tmp_path / "file").write_bytes(data)
    client.upload_file(str(tmp_path / "file"), NAME, "big")
    upload = client.create_multipart_upload(Bucket=NAME, Key="given up")["UploadId"]
    client.upload_part(Bucket=NAME, Key="given up", UploadId=upload, PartNumber=1, Body=b"x")
    client.abort_multipart_upload(Bucket=NAME, Key="given up", UploadId=upload)

    assert content(client, "big") == data
    assert code_of(client.get_object, Key="given up") == "NoSuchKey"
    assert code_of(client.abort_multipart_upload, Key="given up", UploadId=upload) == "NoSuchUpload"


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


def test_requests_are_counted_by_kind(client, put, distant_s3):
    distant_s3.forget_requests()
    put("counted")
    content(client, "counted", Range="bytes=0-1")
    client.head_object(Bucket=NAME, Key="counted")
    client.list_objects_v2(Bucket=NAME)
    client.list_buckets()

    kinds = ("GET range", "HEAD", "PUT", "list", "list buckets")
    assert distant_s3.requests() == dict.fromkeys(kinds, 1)
    assert distant_s3.most_at_once() == 1
    distant_s3.forget_requests()
    assert distant_s3.requests() == {}


def test_answers_come_late_beside_each_other_and_share_one_line(put, distant_s3):
    put("long", content=bytes(1 << 20))
    most_at_once = []
    for settings, least_s in (
        ({"delay_s": 0.2}, 0.2),
        # 4 MiB at 20 MiB a second, the last piece of which need not arrive
        ({"delay_s": 0, "bytes_per_s": 20 << 20}, 0.15),
    ):
        distant_s3.set(**settings)
        distant_s3.forget_requests()
        start = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(ask, ["GET"] * 4, [f"{distant_s3.endpoint}/{NAME}/long"] * 4))
        took = time.monotonic() - start

        assert [len(reply.body) for reply in replies] == [1 << 20] * 4
        assert took >= least_s
        most_at_once.append(distant_s3.most_at_once())
    assert most_at_once[0] > 1


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
