"""Alibaba's object store for tests: objects, listings, copies and multipart uploads, in XML.

Usage: python -m tests.emulators.oss

The bucket is the first label of the host name; this server keeps one bucket, whatever its name,
and checks no signatures.
"""

from __future__ import annotations

import re
from email.utils import format_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.sax.saxutils import escape

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
    from collections.abc import Mapping

_COPY_SOURCE = "x-oss-copy-source"
_MOMENT = "2024-01-01T00:00:00.000Z"  # nobody asks when a part arrived


def element(name: str, *content: str) -> str:
    """Return an XML element around content that is XML already."""
    return f"<{name}>{''.join(content)}</{name}>"


def texts(**values: object) -> str:
    """Return XML elements around plain texts, by their names."""
    return "".join(element(name, escape(str(value))) for name, value in values.items())


def xml_answer(name: str, *content: str, status: int = HTTPStatus.OK) -> Answer:
    """Answer with an XML document."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n{element(name, *content)}'.encode()
    return Answer(status, body, "application/xml")


def error_answer(status: int, code: str) -> Answer:
    """Answer with an error of the store."""
    return xml_answer("Error", texts(Code=code, Message=code), status=status)


def tag_of(stored: StoredObject) -> str:
    """Return an entity tag as this store writes it."""
    return stored.etag.upper()


class Oss(ControlledService[Settings]):
    """The service: one method per operation."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self._bucket = Bucket()

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request."""
        if not request.name and request.method == "GET":
            return self._list(request.query)
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
        return error_answer(HTTPStatus.NOT_IMPLEMENTED, f"{request.method} {request.path}")

    def _list(self, query: Mapping[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        page = self._bucket.page(prefix, delimiter)
        objects = ((key, self._bucket.get(key)) for key in page.keys)
        return xml_answer(
            "ListBucketResult",
            texts(Name="bucket", Prefix=prefix, Marker="", MaxKeys=1000, Delimiter=delimiter),
            texts(IsTruncated="false"),
            *(described(key, stored) for key, stored in objects if stored is not None),
            *(element("CommonPrefixes", texts(Prefix=folder)) for folder in page.folders),
        )

    def _read(self, request: Request) -> Answer:
        stored = self._bucket.get(request.name)
        if stored is None:
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchKey")
        changed = format_datetime(stored.changed, usegmt=True)
        headers = {"Last-Modified": changed, "ETag": tag_of(stored)}
        return content_answer(request, stored.content, headers)

    def _write(self, request: Request) -> Answer:
        content = self._sent_or_copied(request)
        if content is None:
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchKey")
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
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchUpload")
        if request.method == "POST":
            self._bucket.end_upload(session, sorted(upload.parts))
            return upload_answer("Complete", request, "")
        if request.method == "GET":
            return parts_answer(request, upload.parts)
        content = self._sent_or_copied(request)
        if content is None:
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchKey")
        part = StoredObject.made_of(content)
        upload.parts[int(request.query["partNumber"])] = part
        return written(request, part, "CopyPartResult")


def described(key: str, stored: StoredObject) -> str:
    """Return an object as a listing shows it."""
    return element(
        "Contents",
        texts(Key=key, LastModified=stored.changed.strftime("%Y-%m-%dT%H:%M:%S.000Z")),
        texts(ETag=tag_of(stored), Type="Normal", Size=len(stored.content)),
        texts(StorageClass="Standard"),
        element("Owner", texts(ID="1", DisplayName="owner")),
    )


def written(request: Request, stored: StoredObject, result: str) -> Answer:
    """Answer that something was stored; a copy's answer has a body."""
    body = b""
    if _COPY_SOURCE in request.headers:
        body = xml_answer(result, texts(LastModified=_MOMENT, ETag=tag_of(stored))).body
    return Answer(HTTPStatus.OK, body, "application/xml", {"ETag": tag_of(stored)})


def upload_answer(step: str, request: Request, session: str) -> Answer:
    """Answer about an upload as a whole."""
    facts = texts(Bucket="bucket", Key=request.name, ETag='"0"', UploadId=session)
    return xml_answer(f"{step}MultipartUploadResult", facts)


def parts_answer(request: Request, parts: Mapping[int, StoredObject]) -> Answer:
    """Answer with the parts that have arrived."""
    shown = (
        texts(PartNumber=number, LastModified=_MOMENT, ETag=tag_of(part), Size=len(part.content))
        for number, part in sorted(parts.items())
    )
    return xml_answer(
        "ListPartsResult",
        texts(Bucket="bucket", Key=request.name, UploadId=request.query["uploadId"]),
        texts(MaxParts=1000, NextPartNumberMarker=max(parts, default=0), IsTruncated="false"),
        *(element("Part", part) for part in shown),
    )


if __name__ == "__main__":
    run(Oss())
