"""Google Cloud Storage for tests: the JSON API, and the XML API's plain GET and PUT.

Usage: python -m tests.emulators.gcs BUCKET...

Authorisation, pagination, preconditions and access control are left out: the clients under test
use none of them against an emulator.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from urllib.parse import quote, unquote

from tests.emulators.buckets import Bucket, StoredObject
from tests.emulators.http_server import (
    EMPTY,
    Answer,
    ControlledService,
    Request,
    Settings,
    content_answer,
    run,
)

Route = tuple[str, re.Pattern[str], Callable[..., Answer]]
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)\Z")


def json_answer(
    value: object, status: int = HTTPStatus.OK, headers: Mapping[str, str] = EMPTY
) -> Answer:
    """Answer with a JSON document."""
    return Answer(status, json.dumps(value).encode(), "application/json", headers)


def error_answer(status: int, message: str) -> Answer:
    """Answer with an error as the JSON API words it."""
    return json_answer({"error": {"code": int(status), "message": message, "errors": []}}, status)


def missing(name: str) -> Answer:
    """Answer that an object does not exist."""
    return error_answer(HTTPStatus.NOT_FOUND, f"no object {name!r}")


def description(bucket: str, name: str, stored: StoredObject) -> dict[str, str]:
    """Return the object resource of the JSON API, with an MD5 and no `crc32c`."""
    created = stored.changed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{stored.generation}",
        "bucket": bucket,
        "name": name,
        "size": str(len(stored.content)),
        "contentType": "application/octet-stream",
        "generation": str(stored.generation),
        "metageneration": "1",
        "timeCreated": created,
        "updated": created,
        "timeStorageClassUpdated": created,
        "storageClass": "STANDARD",
        "md5Hash": base64.b64encode(bytes.fromhex(stored.digest)).decode(),
    }


def parts_of(content_type: str, body: bytes) -> tuple[dict[str, str], bytes]:
    """Return the object resource and the content that a `multipart/related` body has."""
    boundary = re.search(r"""boundary=['"]?([^'";]+)""", content_type)
    assert boundary is not None, content_type
    _, metadata, content, _ = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode())
    resource, content = (part.split(b"\r\n\r\n", 1)[1] for part in (metadata, content))
    return json.loads(resource), content


class Upload:
    """One resumable upload: what has arrived so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.content = bytearray()

    def take(self, content_range: str, body: bytes) -> bool:
        """Add a piece, which replaces what it overlaps; return True for the last one."""
        found = _CONTENT_RANGE.match(content_range)
        if found is None:
            self.content[:] = body
            return True
        first, _, total = found.groups()
        if first is not None:
            self.content[int(first) :] = body
        return total != "*" and len(self.content) == int(total)


class Gcs(ControlledService[Settings]):
    """The service: one method per operation, and the table of routes that lead to them."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(Settings())
        self._buckets = {name: Bucket() for name in names}
        self._uploads: list[Upload] = []
        bucket, name = r"/b/(?P<bucket>[^/]+)", r"/o/(?P<name>[^/]+)"
        target = r"/b/(?P<to_bucket>[^/]+)/o/(?P<to_name>[^/]+)"
        api, upload = "/storage/v1", "/upload/storage/v1"
        xml = r"/(?P<bucket>[^/]+)/(?P<name>.+)"
        routes = (
            ("GET", api + bucket, self.bucket),
            ("GET", api + bucket + "/o", self.list_objects),
            ("POST", api + bucket + name + "/rewriteTo" + target, self.rewrite),
            ("POST", api + bucket + name + "/copyTo" + target, self.copy),
            ("POST", api + bucket + name + "/compose", self.compose),
            ("DELETE", api + bucket + name, self.delete),
            ("GET", "(?:/download)?" + api + bucket + name, self.get_object),
            ("POST", upload + bucket + "/o", self.upload),
            ("PUT", upload + bucket + "/o", self.continue_upload),
            ("GET|HEAD", xml, self.read_xml),
            ("PUT", xml, self.write_xml),
        )
        self._routes: list[Route] = [
            (methods, re.compile(path + r"\Z"), operation) for methods, path, operation in routes
        ]

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request."""
        for methods, path, operation in self._routes:
            found = path.match(request.path)
            if found and request.method in methods.split("|"):
                names = {key: unquote(value) for key, value in found.groupdict().items()}
                if names["bucket"] not in self._buckets:
                    return error_answer(HTTPStatus.NOT_FOUND, f"no bucket {names['bucket']!r}")
                return operation(request, **names)
        return error_answer(HTTPStatus.NOT_IMPLEMENTED, f"{request.method} {request.path}")

    def _stored(self, bucket: str, name: str, content: bytes) -> Answer:
        """Store an object, and describe it."""
        return json_answer(description(bucket, name, self._buckets[bucket].put(name, content)))

    def bucket(self, request: Request, bucket: str) -> Answer:
        """Describe a bucket."""
        return json_answer({"kind": "storage#bucket", "id": bucket, "name": bucket})

    def list_objects(self, request: Request, bucket: str) -> Answer:
        """List objects and common prefixes, all in one page."""
        query, found = request.query, self._buckets[bucket]
        page = found.page(query.get("prefix", ""), query.get("delimiter", ""))
        names = list(page.keys)
        if query.get("includeTrailingDelimiter") == "true":
            names += page.folders
        stored = ((name, found.get(name)) for name in sorted(names))
        items = [description(bucket, name, entry) for name, entry in stored if entry is not None]
        return json_answer(
            {"kind": "storage#objects", "items": items, "prefixes": sorted(page.folders)}
        )

    def get_object(self, request: Request, bucket: str, name: str) -> Answer:
        """Return an object's content (`alt=media`) or its description."""
        if request.query.get("alt") == "media":
            return self.read_xml(request, bucket, name)
        stored = self._buckets[bucket].get(name)
        return missing(name) if stored is None else json_answer(description(bucket, name, stored))

    def delete(self, request: Request, bucket: str, name: str) -> Answer:
        """Remove an object."""
        if self._buckets[bucket].delete(name):
            return Answer(HTTPStatus.NO_CONTENT)
        return missing(name)

    def copy(
        self, request: Request, bucket: str, name: str, to_bucket: str, to_name: str
    ) -> Answer:
        """Copy an object, and describe the copy."""
        stored = self._buckets[bucket].get(name)
        if stored is None or to_bucket not in self._buckets:
            return missing(name)
        return self._stored(to_bucket, to_name, stored.content)

    def rewrite(self, request: Request, **names: str) -> Answer:
        """Copy an object, in one step, and report the progress: done."""
        copied = self.copy(request, **names)
        if copied.status != HTTPStatus.OK:
            return copied
        resource = json.loads(copied.body)
        sizes = dict.fromkeys(("totalBytesRewritten", "objectSize"), resource["size"])
        done = {"kind": "storage#rewriteResponse", "done": True, "resource": resource}
        return json_answer({**done, **sizes})

    def compose(self, request: Request, bucket: str, name: str) -> Answer:
        """Join objects of one bucket into another."""
        content = bytearray()
        for source in json.loads(request.body)["sourceObjects"]:
            stored = self._buckets[bucket].get(source["name"])
            if stored is None:
                return missing(source["name"])
            content += stored.content
        return self._stored(bucket, name, bytes(content))

    def upload(self, request: Request, bucket: str) -> Answer:
        """Take a whole object, or begin a resumable upload."""
        kind, name = request.query.get("uploadType"), request.query.get("name", "")
        if kind == "resumable":
            self._uploads.append(Upload(name or json.loads(request.body)["name"]))
            query = f"uploadType=resumable&upload_id={len(self._uploads) - 1}"
            path = f"/upload/storage/v1/b/{quote(bucket)}/o?{query}"
            return Answer(headers={"Location": f"http://{request.headers['host']}{path}"})
        if kind == "multipart":
            metadata, content = parts_of(request.headers["content-type"], request.body)
            return self._stored(bucket, name or metadata["name"], content)
        if kind == "media":
            return self._stored(bucket, name, request.body)
        return error_answer(HTTPStatus.BAD_REQUEST, f"unknown uploadType {kind!r}")

    def continue_upload(self, request: Request, bucket: str) -> Answer:
        """Take the next piece of a resumable upload, or say how much has arrived."""
        upload = self._uploads[int(request.query["upload_id"])]
        if upload.take(request.headers.get("content-range", ""), request.body):
            return self._stored(bucket, upload.name, bytes(upload.content))
        arrived = {"Range": f"bytes=0-{len(upload.content) - 1}"} if upload.content else {}
        return Answer(HTTPStatus.PERMANENT_REDIRECT, headers=arrived)

    def read_xml(self, request: Request, bucket: str, name: str) -> Answer:
        """Return an object's content, or a part of it, as the XML API does."""
        stored = self._buckets[bucket].get(name)
        if stored is None:
            return missing(name)
        headers = {"x-goog-generation": str(stored.generation)}
        return content_answer(request, stored.content, headers)

    def write_xml(self, request: Request, bucket: str, name: str) -> Answer:
        """Store an object, empty ones too, as the XML API does."""
        stored = self._buckets[bucket].put(name, request.body)
        return Answer(headers={"x-goog-generation": str(stored.generation)})


if __name__ == "__main__":
    run(Gcs(sys.argv[1:]))
