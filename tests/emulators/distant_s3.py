"""S3 for tests and benchmarks: every answer may take a while, and requests are counted by kind.

Usage: python -m tests.emulators.distant_s3 [--port PORT] [--delay SECONDS] BUCKET...

Everything is kept in memory. Signatures are not looked at; `refuse`, `deny` and `region` among the
settings say what is answered to a client with wrong keys. `http_server` says how requests are
counted and how settings are changed.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from email.utils import format_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.emulators import s3_documents as documents
from tests.emulators.buckets import Bucket, StoredObject
from tests.emulators.http_server import (
    Answer,
    ControlledService,
    Request,
    Settings,
    content_answer,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCOPE = re.compile(r"Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/")
_DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_WRITES = {"PUT", "POST", "DELETE"}


@dataclass(frozen=True)
class S3Settings(Settings):
    """What can be changed while the emulator runs.

    Attributes:
        region: Where the buckets lie; requests that are signed for another region are refused, but
            with "" none is.
        refuse: A code, such as InvalidAccessKeyId or SignatureDoesNotMatch, with which everything
            is refused, by 403; "" for nothing.
        deny: Of "list", "read" and "write" those that are refused with AccessDenied, with commas
            between.
        owners: `BUCKET=KEY`, with commas between: the access key with which requests for a bucket
            have to be signed.
        oddities: With commas between: "bare errors" for error documents with a declaration and no
            element, as if cut off there; "whole objects" where a part is asked for.
    """

    region: str = ""
    refuse: str = ""
    deny: str = ""
    owners: str = ""
    oddities: str = ""


class DistantS3(ControlledService[S3Settings]):
    """The service: buckets by name."""

    def __init__(self, names: Iterable[str], settings: S3Settings) -> None:
        super().__init__(settings)
        self._buckets = {name: Bucket() for name in names}

    def kind(self, request: Request) -> str:
        """Return the operation, or the method with "range" for a part of an object."""
        bucket, _, key = request.name.partition("/")
        if not key:
            listed = "list" if bucket else "list buckets"
            return {"GET": listed, "POST": "delete many"}.get(
                request.method, f"{request.method} bucket"
            )
        if "uploads" in request.query or "uploadId" in request.query:
            return f"{request.method} upload"
        if "x-amz-copy-source" in request.headers:
            return "copy"
        return super().kind(request)

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request."""
        oddities = self.settings.oddities.split(",")
        if "whole objects" in oddities:
            headers = {name: value for name, value in request.headers.items() if name != "range"}
            request = replace(request, headers=headers)
        answer = self._full_answer(request)
        if "bare errors" in oddities and answer.status >= HTTPStatus.BAD_REQUEST:
            return replace(answer, body=_DECLARATION)
        return answer

    def _full_answer(self, request: Request) -> Answer:
        name, _, key = request.name.partition("/")
        refusal = self._refusal(request, key)
        if refusal is not None:
            return refusal
        if not name:
            return documents.bucket_list(self._buckets)
        if not key and request.method == "PUT":
            self._buckets.setdefault(name, Bucket())
        bucket = self._buckets.get(name)
        if bucket is None:
            return documents.error(HTTPStatus.NOT_FOUND, "NoSuchBucket", BucketName=name)
        if not key:
            return self._bucket_answer(request, name, bucket)
        if "uploads" in request.query or "uploadId" in request.query:
            return _upload_answer(request, bucket, name, key)
        return self._object_answer(request, bucket, key)

    def _refusal(self, request: Request, key: str) -> Answer | None:
        """Return the answer to a client that may not do this; None if it may."""
        settings = self.settings
        if settings.refuse:
            return documents.error(HTTPStatus.FORBIDDEN, settings.refuse)
        scope = _SCOPE.search(request.headers.get("authorization", ""))
        if settings.region and scope and scope["region"] != settings.region:
            told = f"the region {scope['region']!r} is wrong; expecting {settings.region!r}"
            malformed = "AuthorizationHeaderMalformed"
            refused = documents.error(
                HTTPStatus.BAD_REQUEST, malformed, told, Region=settings.region
            )
            headers = {"x-amz-bucket-region": settings.region}
            return Answer(refused.status, refused.body, refused.content_type, headers)
        owners = dict(pair.split("=") for pair in settings.owners.split(",") if pair)
        owner = owners.get(request.name.partition("/")[0])
        if owner is not None and (scope is None or scope["key"] != owner):
            return documents.error(HTTPStatus.FORBIDDEN, "AccessDenied", "Access Denied")
        wanted = "read" if key else "list"
        if request.method in _WRITES:
            wanted = "write"
        if wanted in settings.deny.split(","):
            return documents.error(HTTPStatus.FORBIDDEN, "AccessDenied", "Access Denied")
        return None

    def _bucket_answer(self, request: Request, name: str, bucket: Bucket) -> Answer:
        if request.method in {"HEAD", "PUT"}:
            return Answer(headers={"x-amz-bucket-region": self.settings.region or "us-east-1"})
        if request.method == "DELETE":
            del self._buckets[name]
            return Answer(HTTPStatus.NO_CONTENT)
        if "delete" in request.query:
            return _deleted(bucket, documents.values(request.body, "Key"))
        if "location" in request.query:
            return documents.document("LocationConstraint")
        return documents.listing(name, bucket, request.query)

    def _object_answer(self, request: Request, bucket: Bucket, key: str) -> Answer:
        if request.method == "PUT":
            return self._stored(request, bucket, key)
        if request.method == "DELETE":
            bucket.delete(key)
            return Answer(HTTPStatus.NO_CONTENT)
        stored = bucket.get(key)
        return _no_such_key(key) if stored is None else _content(request, stored)

    def _stored(self, request: Request, bucket: Bucket, key: str) -> Answer:
        if request.headers.get("if-none-match") == "*" and bucket.get(key) is not None:
            return documents.error(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")
        source = unquote(request.headers.get("x-amz-copy-source", "")).removeprefix("/")
        if not source:
            return Answer(headers={"ETag": bucket.put(key, _payload(request)).etag})
        from_bucket, _, from_key = source.partition("/")
        found = self._buckets.get(from_bucket, Bucket()).get(from_key)
        if found is None:
            return _no_such_key(from_key)
        return documents.copy_result(bucket.put(key, found.content))


def _no_such_key(key: str) -> Answer:
    return documents.error(HTTPStatus.NOT_FOUND, "NoSuchKey", Key=key)


def _deleted(bucket: Bucket, keys: Iterable[str]) -> Answer:
    done = []
    for key in keys:
        bucket.delete(key)
        done.append(("Deleted", (("Key", key),)))
    return documents.document("DeleteResult", *done)


def _content(request: Request, stored: StoredObject) -> Answer:
    headers = {"Last-Modified": format_datetime(stored.changed, usegmt=True), "ETag": stored.etag}
    if request.headers.get("if-match", stored.etag) not in {stored.etag, "*"}:
        return documents.error(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")
    if request.headers.get("if-none-match") == stored.etag:
        return Answer(HTTPStatus.NOT_MODIFIED, headers=headers)
    answer = content_answer(request, stored.content, headers)
    if answer.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return answer
    told = documents.error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "InvalidRange")
    return Answer(told.status, told.body, told.content_type, answer.headers)


def _upload_answer(request: Request, bucket: Bucket, name: str, key: str) -> Answer:
    """Answer a request about an upload in parts."""
    if "uploads" in request.query:
        started = bucket.begin_upload(key)
        result = ("Bucket", name), ("Key", key), ("UploadId", started)
        return documents.document("InitiateMultipartUploadResult", *result)
    upload_id = request.query["uploadId"]
    upload = bucket.uploads.get(upload_id)
    if upload is None:
        return documents.error(HTTPStatus.NOT_FOUND, "NoSuchUpload")
    if request.method == "PUT":
        part = StoredObject.made_of(_payload(request))
        upload.parts[int(request.query["partNumber"])] = part
        return Answer(headers={"ETag": part.etag})
    if request.method == "DELETE":
        del bucket.uploads[upload_id]
        return Answer(HTTPStatus.NO_CONTENT)
    numbers = list(map(int, documents.values(request.body, "PartNumber")))
    stored = bucket.end_upload(upload_id, numbers)
    result = ("Bucket", name), ("Key", key), ("ETag", stored.etag)
    return documents.document("CompleteMultipartUploadResult", *result)


def _payload(request: Request) -> bytes:
    """Return the body, without the frames of `aws-chunked`."""
    if "x-amz-decoded-content-length" not in request.headers:
        return request.body
    content, rest = bytearray(), memoryview(request.body)
    while rest:
        line, _, _ = bytes(rest[:200]).partition(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        if not size:
            break  # only trailers follow
        start = len(line) + 2
        content += rest[start : start + size]
        rest = rest[start + size + 2 :]
    return bytes(content)


def main() -> None:
    """Serve the buckets that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="default: one that is free")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("buckets", nargs="*", metavar="BUCKET")
    options = parser.parse_args()
    run(DistantS3(options.buckets, S3Settings(delay_s=options.delay)), options.port)


if __name__ == "__main__":
    main()
