from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.emulators.conversation import ask
from tests.fixtures.emulators import NAME

pytestmark = pytest.mark.emulator


@pytest.fixture
def client(distant_s3):
    import boto3

    made = boto3.client(
        "s3",
        endpoint_url=distant_s3.endpoint,
        region_name="us-east-1",
        aws_access_key_id="nobody",
        aws_secret_access_key="secret",
    )
    yield made
    distant_s3.set(delay_s=0, bytes_per_s=0, refuse="", deny="", region="")
    made.close()


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


def test_an_object_is_written_described_and_read(client, put):
    put("made/by put & <more>", content=b"one")
    put("made/by put & <more>", content=b"other")

    head = client.head_object(Bucket=NAME, Key="made/by put & <more>")

    assert head["ContentLength"] == 5
    assert head["ETag"] == '"795f3202b17cb6bc3d4b771d8c6c9eaf"'
    assert content(client, "made/by put & <more>") == b"other"


def test_an_empty_object_exists(client, put):
    put("empty", content=b"")

    assert content(client, "empty") == b""


def test_parts_are_read_and_head_answers_for_the_part_too(client, put):
    put("ranged", content=b"0123456789")

    assert content(client, "ranged", Range="bytes=2-4") == b"234"
    assert content(client, "ranged", Range="bytes=8-99") == b"89"
    assert client.head_object(Bucket=NAME, Key="ranged", Range="bytes=2-4")["ContentLength"] == 3
    assert code_of(client.get_object, Key="ranged", Range="bytes=10-") == "InvalidRange"
    assert code_of(client.head_object, Key="ranged", Range="bytes=10-") == "416"


def test_an_object_that_changed_is_not_read_on(client, put):
    put("changing")
    before = client.head_object(Bucket=NAME, Key="changing")["ETag"]

    assert content(client, "changing", IfMatch=before) == b"content"
    put("changing", content=b"other")
    assert code_of(client.get_object, Key="changing", IfMatch=before) == "PreconditionFailed"


def test_a_missing_object_and_a_missing_bucket_are_told_apart(client):
    assert code_of(client.get_object, Key="absent") == "NoSuchKey"
    assert code_of(client.head_object, Key="absent") == "404"
    with pytest.raises(client.exceptions.NoSuchBucket):
        client.list_objects_v2(Bucket="absent")


def test_an_object_is_copied_and_deleted(client, put):
    put("from/a b+c", content=b"copied")
    client.copy_object(Bucket=NAME, Key="to", CopySource={"Bucket": NAME, "Key": "from/a b+c"})
    client.delete_object(Bucket=NAME, Key="from/a b+c")
    client.delete_object(Bucket=NAME, Key="from/a b+c")

    assert content(client, "to") == b"copied"
    assert code_of(client.get_object, Key="from/a b+c") == "NoSuchKey"
    missing = {"Bucket": NAME, "Key": "absent"}
    assert code_of(client.copy_object, Key="to", CopySource=missing) == "NoSuchKey"


def test_many_objects_are_deleted_at_once(client, put):
    put("gone/a", "gone/b", "gone/c")
    named = [{"Key": "gone/a"}, {"Key": "gone/b"}, {"Key": "gone/absent"}]

    client.delete_objects(Bucket=NAME, Delete={"Objects": named})

    assert listed(client, "list_objects_v2", Prefix="gone/") == ["gone/c"]


def test_a_big_object_arrives_in_parts(client, tmp_path):
    data = bytes(range(251)) * 100_000
    (tmp_path / "file").write_bytes(data)

    client.upload_file(str(tmp_path / "file"), NAME, "big")

    assert content(client, "big") == data


def test_an_upload_in_parts_can_be_given_up(client):
    upload = client.create_multipart_upload(Bucket=NAME, Key="given up")["UploadId"]
    client.upload_part(Bucket=NAME, Key="given up", UploadId=upload, PartNumber=1, Body=b"x")
    client.abort_multipart_upload(Bucket=NAME, Key="given up", UploadId=upload)

    assert code_of(client.get_object, Key="given up") == "NoSuchKey"
    assert code_of(client.abort_multipart_upload, Key="given up", UploadId=upload) == "NoSuchUpload"


def listed(client, operation, **query):
    found = []
    for page in client.get_paginator(operation).paginate(Bucket=NAME, **query):
        found += [entry["Key"] for entry in page.get("Contents", ())]
        found += [entry["Prefix"] for entry in page.get("CommonPrefixes", ())]
    return found


@pytest.mark.parametrize("operation", ["list_objects", "list_objects_v2"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_listings_come_in_pages(client, put, operation, size):
    put("tree/a", "tree/b/", "tree/b/1", "tree/b/2", "tree/b.c", "tree/d/é & <x>", "tree/e")
    put("tred", "tref")
    pages = {"PaginationConfig": {"PageSize": size}}

    names = listed(client, operation, Prefix="tree/", **pages)
    folded = listed(client, operation, Prefix="tree/", Delimiter="/", **pages)
    begun = listed(client, operation, Prefix="tree/b", Delimiter="/", **pages)
    inner = listed(client, operation, Prefix="tree/b/", Delimiter="/", **pages)

    assert names == ["tree/a", "tree/b.c", "tree/b/", "tree/b/1", "tree/b/2", "tree/d/é & <x>",
                     "tree/e"]  # fmt: skip
    assert sorted(folded) == ["tree/a", "tree/b.c", "tree/b/", "tree/d/", "tree/e"]
    assert sorted(begun) == ["tree/b.c", "tree/b/"]
    assert inner == ["tree/b/", "tree/b/1", "tree/b/2"]


def test_a_listing_begins_where_it_is_told(client, put):
    put("order/1", "order/2", "order/3")

    assert listed(client, "list_objects_v2", Prefix="order/", StartAfter="order/1") == [
        "order/2",
        "order/3",
    ]


def test_buckets_are_made_listed_and_removed(client):
    client.create_bucket(Bucket="second")
    both = [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
    client.head_bucket(Bucket="second")
    client.delete_bucket(Bucket="second")

    assert both == [NAME, "second"]
    assert [bucket["Name"] for bucket in client.list_buckets()["Buckets"]] == [NAME]


def test_requests_are_counted_by_kind(client, put, distant_s3):
    distant_s3.forget_requests()

    put("counted")
    content(client, "counted", Range="bytes=0-1")
    client.head_object(Bucket=NAME, Key="counted")
    client.list_objects_v2(Bucket=NAME)
    client.list_buckets()

    assert distant_s3.requests() == {
        "GET range": 1,
        "HEAD": 1,
        "PUT": 1,
        "list": 1,
        "list buckets": 1,
    }
    assert distant_s3.most_at_once() == 1
    distant_s3.forget_requests()
    assert distant_s3.requests() == {}


def test_answers_come_late_and_beside_each_other(put, distant_s3):
    put("late")
    distant_s3.set(delay_s=0.2)
    distant_s3.forget_requests()

    start = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(ask, ["GET"] * 8, [f"{distant_s3.endpoint}/{NAME}/late"] * 8))
    took = time.monotonic() - start

    assert {reply.body for reply in replies} == {b"content"}
    assert took >= 0.2
    assert distant_s3.most_at_once() > 1


def test_all_answers_share_one_line(put, distant_s3):
    put("long", content=bytes(1 << 20))
    distant_s3.set(bytes_per_s=20 << 20)

    start = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(ask, ["GET"] * 4, [f"{distant_s3.endpoint}/{NAME}/long"] * 4))
    took = time.monotonic() - start

    assert [len(reply.body) for reply in replies] == [1 << 20] * 4
    assert took >= 0.15  # 4 MiB at 20 MiB a second, the last piece of which need not arrive


@pytest.mark.parametrize("code", ["InvalidAccessKeyId", "SignatureDoesNotMatch"])
def test_clients_with_wrong_keys_are_refused(client, put, distant_s3, code):
    put("kept")
    distant_s3.set(refuse=code)

    assert code_of(client.get_object, Key="kept") == code
    assert code_of(client.head_object, Key="kept") == "403"
    assert code_of(client.list_objects_v2) == code
    assert code_of(client.put_object, Key="kept", Body=b"") == code


@pytest.mark.parametrize("denied", ["list", "read", "write"])
def test_each_right_can_be_missing(client, put, distant_s3, denied):
    put("kept")
    calls = {
        "list": lambda: code_of(client.list_objects_v2),
        "read": lambda: code_of(client.get_object, Key="kept"),
        "write": lambda: code_of(client.put_object, Key="kept", Body=b""),
    }
    distant_s3.set(deny=denied)

    assert calls.pop(denied)() == "AccessDenied"
    for allowed in calls.values():
        with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
            allowed()


def test_a_wrong_region_is_refused(client, distant_s3):
    distant_s3.set(region="eu-west-1")
    reply = ask(
        "GET",
        f"{distant_s3.endpoint}/{NAME}",
        headers={
            "Authorization": "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request"
        },
    )

    assert reply.status == 400
    assert b"<Code>AuthorizationHeaderMalformed</Code>" in reply.body
    assert b"<Region>eu-west-1</Region>" in reply.body
    assert reply.headers["x-amz-bucket-region"] == "eu-west-1"
    assert client.head_bucket(Bucket=NAME)["BucketRegion"] == "eu-west-1"  # boto3 follows
