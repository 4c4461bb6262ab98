"""Alibaba's object store for tests: objects, listings, copies and multipart uploads, in XML.

Usage: python -m tests.emulators.oss

The bucket is the first label of the host name; this server keeps one bucket, whatever its name,
and checks no signatures.
"""

from __future__ import annotations

import hashlib
import re
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.sax.saxutils import escape

from tests.emulators.http_server import (
    Answer,
    LoopbackServer,
    Request,
    RequestHandler,
    content_answer,
)
from tests.emulators.oss_bucket import Bucket, Item

if TYPE_CHECKING:
    from collections.abc import Iterable

_COPY_SOURCE = "x-oss-copy-source"
_MOMENT = "2024-01-01T00:00:00.000Z"  # nobody asks when a part arrived


def element(name: str, *content: str) -> str:
    """Return an XML element around content that is XML already."""
    return f"<{name}>{''.join(content)}</{name}>"


def text(name: str, value: object) -> str:
    """Return an XML element around plain text."""
    return element(name, escape(str(value)))


def xml_answer(document: str, status: int = HTTPStatus.OK) -> Answer:
    """Answer with an XML document."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n{document}'.encode()
    return Answer(status, body, "application/xml")


def error_answer(status: int, code: str) -> Answer:
    """Answer with an error of the store."""
    return xml_answer(element("Error", text("Code", code), text("Message", code)), status)


def tag_of(content: bytes) -> str:
    """Return the entity tag of some content."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest().upper()}"'


class Oss:
    """The service: one method per operation."""

    def __init__(self) -> None:
        self._bucket = Bucket()

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request."""
        if not request.name:
            return self._list(request) if request.method == "GET" else unknown(request)
        if "uploadId" in request.query or "uploads" in request.query:
            return self._multipart(request)
        if request.method in {"GET", "HEAD"}:
            return self._read(request)
        if request.method == "PUT":
            return self._write(request)
        if request.method == "DELETE":
            self._bucket.delete(request.name)
            return Answer(HTTPStatus.NO_CONTENT)
        return unknown(request)

    def _list(self, request: Request) -> Answer:
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        items, folders = self._bucket.list(prefix, delimiter)
        listing = [text("Name", "bucket"), text("Prefix", prefix), text("Marker", "")]
        listing += [
            text("MaxKeys", 1000),
            text("Delimiter", delimiter),
            text("IsTruncated", "false"),
        ]
        listing += [describe(name, item) for name, item in items]
        listing += [element("CommonPrefixes", text("Prefix", folder)) for folder in folders]
        return xml_answer(element("ListBucketResult", *listing))

    def _read(self, request: Request) -> Answer:
        item = self._bucket.get(request.name)
        if item is None:
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchKey")
        changed = formatdate(item.changed, usegmt=True)
        headers = {"Last-Modified": changed, "ETag": tag_of(item.content)}
        return content_answer(request, item.content, headers)

    def _write(self, request: Request) -> Answer:
        content = self._sent_or_copied(request)
        if content is None:
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchKey")
        self._bucket.put(request.name, content)
        return written(request, content, "CopyObjectResult")

    def _sent_or_copied(self, request: Request) -> bytes | None:
        """Return the request's body, or what it asks to copy; None where that is missing."""
        source = request.headers.get(_COPY_SOURCE)
        if source is None:
            return request.body
        item = self._bucket.get(unquote(source).split("/", 2)[2])  # /bucket/name
        if item is None:
            return None
        part = re.match(r"bytes=(\d+)-(\d+)", request.headers.get(f"{_COPY_SOURCE}-range", ""))
        return item.content[int(part[1]) : int(part[2]) + 1] if part else item.content

    def _multipart(self, request: Request) -> Answer:
        if "uploads" in request.query and request.method == "POST":
            session = self._bucket.begin_upload()
            return xml_answer(upload_result("InitiateMultipartUploadResult", request, session))
        parts = self._bucket.parts(request.query.get("uploadId", ""))
        if parts is None:
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchUpload")
        if request.method == "PUT":
            return self._take_part(request, parts)
        if request.method == "GET":
            return list_parts(request, parts)
        if request.method == "POST":
            self._bucket.put(request.name, b"".join(part for _, part in sorted(parts.items())))
            return xml_answer(upload_result("CompleteMultipartUploadResult", request, ""))
        return unknown(request)

    def _take_part(self, request: Request, parts: dict[int, bytes]) -> Answer:
        content = self._sent_or_copied(request)
        if content is None:
            return error_answer(HTTPStatus.NOT_FOUND, "NoSuchKey")
        parts[int(request.query["partNumber"])] = content
        return written(request, content, "CopyPartResult")


def describe(name: str, item: Item) -> str:
    """Return an object as a listing shows it."""
    owner = element("Owner", text("ID", "1"), text("DisplayName", "owner"))
    facts = [
        text("Key", name),
        text("LastModified", item.moment),
        text("ETag", tag_of(item.content)),
    ]
    facts += [text("Type", "Normal"), text("Size", len(item.content))]
    return element("Contents", *facts, text("StorageClass", "Standard"), owner)


def written(request: Request, content: bytes, result: str) -> Answer:
    """Answer that something was stored; a copy's answer has a body."""
    body = b""
    if _COPY_SOURCE in request.headers:
        facts = text("LastModified", _MOMENT), text("ETag", tag_of(content))
        body = xml_answer(element(result, *facts)).body
    return Answer(HTTPStatus.OK, body, "application/xml", {"ETag": tag_of(content)})


def upload_result(name: str, request: Request, session: str) -> str:
    """Return the document about an upload as a whole."""
    facts = text("Bucket", "bucket"), text("Key", request.name), text("ETag", '"0"')
    return element(name, *facts, text("UploadId", session))


def list_parts(request: Request, parts: dict[int, bytes]) -> Answer:
    """Answer with the parts that have arrived."""
    head = [text("Bucket", "bucket"), text("Key", request.name)]
    head += [text("UploadId", request.query["uploadId"]), text("MaxParts", 1000)]
    head += [text("NextPartNumberMarker", max(parts, default=0)), text("IsTruncated", "false")]
    return xml_answer(element("ListPartsResult", *head, *_part_elements(parts.items())))


def _part_elements(parts: Iterable[tuple[int, bytes]]) -> Iterable[str]:
    for number, content in sorted(parts):
        facts = text("PartNumber", number), text("LastModified", _MOMENT)
        yield element("Part", *facts, text("ETag", tag_of(content)), text("Size", len(content)))


def unknown(request: Request) -> Answer:
    """Answer that this server does not know the request."""
    return error_answer(HTTPStatus.NOT_IMPLEMENTED, f"{request.method} {request.path}")


def handler_for(service: Oss) -> type[RequestHandler]:
    """Return a handler class that hands every request to `service`."""

    class OssHandler(RequestHandler):
        def answer(self, request: Request) -> Answer:
            return service.answer(request)

    return OssHandler


def main() -> None:
    """Serve one empty bucket."""
    LoopbackServer(handler_for(Oss())).announce_and_serve()


if __name__ == "__main__":
    main()
