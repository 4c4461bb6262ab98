"""Alibaba's object store for tests: objects, listings, copies and multipart uploads, in XML.

Usage: python -m tests.emulators.oss

The bucket is the first label of the host name; this server keeps one bucket, whatever its name,
and checks no signatures.
"""

from __future__ import annotations

import re
from email.utils import format_datetime
from http import HTTPStatus
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

_COPY_SOURCE = "x-oss-copy-source"
_MOMENT = "2024-01-01T00:00:00.000Z"  # nobody asks when a part arrived


class Oss(ControlledService[Settings]):
    """The service: one method per operation."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self._bucket = Bucket()

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request."""
        if not request.name and request.method == "GET":
            return documents.listing("bucket", self._bucket, request.query)
        if "uploads" in request.query and request.method == "POST":
            return upload_answer("Initiate", request, self._bucket.begin_upload(request.name))
        if "uploadId" in request.query:
            return self._upload(request, request.query["uploadId"])
        if request.name and request.method in {"GET", "HEAD"}:
            return self._read(request)
        if request.name and request.method == "PUT":
            return self._write(request)
        if request.name and request.method == "DELETE":
            self._bucket.delete(request.name)
            return Answer(HTTPStatus.NO_CONTENT)
        return documents.error(HTTPStatus.NOT_IMPLEMENTED, f"{request.method} {request.path}")

    def _read(self, request: Request) -> Answer:
        stored = self._bucket.get(request.name)
        if stored is None:
            return documents.error(HTTPStatus.NOT_FOUND, "NoSuchKey")
        changed = format_datetime(stored.changed, usegmt=True)
        return content_answer(
            request, stored.content, {"Last-Modified": changed, "ETag": stored.etag}
        )

    def _write(self, request: Request) -> Answer:
        content = self._sent_or_copied(request)
        if content is None:
            return documents.error(HTTPStatus.NOT_FOUND, "NoSuchKey")
        return written(request, self._bucket.put(request.name, content), "CopyObjectResult")

    def _sent_or_copied(self, request: Request) -> bytes | None:
        """Return the request's body, or what it asks to copy; None where that is missing."""
        source = request.headers.get(_COPY_SOURCE)
        if source is None:
            return request.body
        stored = self._bucket.get(unquote(source).split("/", 2)[2])  # /bucket/name
        if stored is None:
            return None
        part = re.match(r"bytes=(\d+)-(\d+)", request.headers.get(f"{_COPY_SOURCE}-range", ""))
        return stored.content[int(part[1]) : int(part[2]) + 1] if part else stored.content

    def _upload(self, request: Request, session: str) -> Answer:
        upload = self._bucket.uploads.get(session)
        if upload is None:
            return documents.error(HTTPStatus.NOT_FOUND, "NoSuchUpload")
        if request.method == "POST":
            self._bucket.end_upload(session, sorted(upload.parts))
            return upload_answer("Complete", request, "")
        if request.method == "GET":
            numbers = ("PartNumber", "LastModified", "ETag", "Size")
            shown = (
                (
                    "Part",
                    tuple(
                        zip(numbers, (number, _MOMENT, part.etag, len(part.content)), strict=True)
                    ),
                )
                for number, part in sorted(upload.parts.items())
            )
            return documents.document("ListPartsResult", ("IsTruncated", "false"), *shown)
        content = self._sent_or_copied(request)
        if content is None:
            return documents.error(HTTPStatus.NOT_FOUND, "NoSuchKey")
        part = StoredObject.made_of(content)
        upload.parts[int(request.query["partNumber"])] = part
        return written(request, part, "CopyPartResult")


def written(request: Request, stored: StoredObject, result: str) -> Answer:
    """Answer that something was stored; a copy's answer has a body."""
    body = b""
    if _COPY_SOURCE in request.headers:
        body = documents.document(result, ("LastModified", _MOMENT), ("ETag", stored.etag)).body
    return Answer(HTTPStatus.OK, body, "application/xml", {"ETag": stored.etag})


def upload_answer(step: str, request: Request, session: str) -> Answer:
    """Answer about an upload as a whole."""
    facts = ("Bucket", "bucket"), ("Key", request.name), ("ETag", '"0"'), ("UploadId", session)
    return documents.document(f"{step}MultipartUploadResult", *facts)


if __name__ == "__main__":
    run(Oss())
