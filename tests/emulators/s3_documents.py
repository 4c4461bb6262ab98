"""The XML documents that an S3 sends and takes."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.emulators.http_server import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from http import HTTPStatus

    from tests.emulators.buckets import Bucket, Page, StoredObject

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def document(name: str, *content: tuple[str, object]) -> Answer:
    """Answer with a document; `content` has pairs of a name and a text, or of a name and pairs."""
    return _xml(ET.Element(name, xmlns=_NAMESPACE), content)


def _xml(root: ET.Element, content: tuple[tuple[str, object], ...]) -> Answer:
    _fill(root, content)
    body = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return Answer(body=body, content_type="application/xml")


def _fill(element: ET.Element, content: object) -> None:
    if not isinstance(content, tuple):
        element.text = str(content)
        return
    for name, inner in content:
        _fill(ET.SubElement(element, name), inner)


def error(status: HTTPStatus, code: str, message: str = "", **more: str) -> Answer:
    """Answer with an error; HEAD has no body, so its client sees the status alone."""
    content = ("Code", code), ("Message", message or code), *more.items()
    told = _xml(ET.Element("Error"), content)  # clients look for one without a namespace
    return Answer(status, told.body, told.content_type)


def bucket_list(buckets: Mapping[str, Bucket]) -> Answer:
    """Answer with all buckets."""
    found = tuple(
        ("Bucket", (("Name", name), ("CreationDate", _time(bucket.created))))
        for name, bucket in sorted(buckets.items())
    )
    owner = (("ID", "owner"), ("DisplayName", "owner"))
    return document("ListAllMyBucketsResult", ("Owner", owner), ("Buckets", found))


def listing(name: str, bucket: Bucket, query: Mapping[str, str]) -> Answer:
    """Answer with a page of a bucket's listing, in the first or the second version."""
    second = query.get("list-type") == "2"
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    room = min(int(query.get("max-keys", 1000)), 1000)
    after = _after(query) if second else query.get("marker", "")
    page = bucket.page(prefix, delimiter, after, room)

    def text(key: str) -> str:
        return quote(key, safe="/") if query.get("encoding-type") == "url" else key

    content: list[tuple[str, object]] = [
        ("Name", name),
        ("Prefix", text(prefix)),
        ("Delimiter", text(delimiter)),
        ("MaxKeys", room),
        ("IsTruncated", str(bool(page.after)).lower()),
    ]
    if "encoding-type" in query:
        content.append(("EncodingType", query["encoding-type"]))
    content += _second_version(page) if second else _first_version(page, text(page.after))
    for key in page.keys:
        stored = bucket.get(key)
        assert stored is not None
        content.append(("Contents", (("Key", text(key)), *_facts(stored))))
    content += [("CommonPrefixes", (("Prefix", text(folder)),)) for folder in page.folders]
    return document("ListBucketResult", *content)


def _after(query: Mapping[str, str]) -> str:
    token = query.get("continuation-token", "")
    return base64.urlsafe_b64decode(token).decode() if token else query.get("start-after", "")


def _second_version(page: Page) -> list[tuple[str, object]]:
    count: tuple[str, object] = ("KeyCount", len(page.keys) + len(page.folders))
    token = base64.urlsafe_b64encode(page.after.encode()).decode()
    return [count, ("NextContinuationToken", token)] if page.after else [count]


def _first_version(page: Page, after: str) -> list[tuple[str, object]]:
    return [("NextMarker", after)] if page.after else []


def _facts(stored: StoredObject) -> tuple[tuple[str, object], ...]:
    return (
        ("LastModified", _time(stored.changed)),
        ("ETag", stored.etag),
        ("Size", len(stored.content)),
        ("StorageClass", "STANDARD"),
    )


def copy_result(stored: StoredObject) -> Answer:
    """Answer that an object was copied."""
    changed = ("LastModified", _time(stored.changed))
    return document("CopyObjectResult", changed, ("ETag", stored.etag))


def values(body: bytes, name: str) -> list[str]:
    """Return the texts of all elements with a name in a document."""
    return [element.text or "" for element in ET.fromstring(body).findall(f".//{{*}}{name}")]


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
