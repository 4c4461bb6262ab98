"""Google Cloud Storage for tests: the JSON API, and the XML API's plain GET and PUT.

Usage: python -m tests.emulators.gcs BUCKET...

Authorisation, pagination, preconditions and access control are left out: the clients under test
use none of them against an emulator.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import quote, unquote

from tests.emulators.gcs_buckets import Buckets, StoredObject
from tests.emulators.gcs_uploads import Uploads, parse_multipart
from tests.emulators.http_server import (
    EMPTY,
    Answer,
    LoopbackServer,
    Request,
    RequestHandler,
    content_answer,
)

Route = tuple[str, re.Pattern[str], Callable[..., Answer]]


def json_answer(
    value: object, status: int = HTTPStatus.OK, headers: Mapping[str, str] = EMPTY
) -> Answer:
    """Answer with a JSON document."""
    return Answer(status, json.dumps(value).encode(), "application/json", headers)


def error_answer(status: int, message: str) -> Answer:
    """Answer with an error as the JSON API words it."""
    return json_answer({"error": {"code": int(status), "message": message, "errors": []}}, status)


def media_answer(request: Request, stored: StoredObject) -> Answer:
    """Answer with an object's content, or the range of it that was asked for."""
    return content_answer(request, stored.content, {"x-goog-generation": str(stored.generation)})


class Gcs:
    """The service: one method per operation, and the table of routes that lead to them."""

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._uploads = Uploads()
        bucket, name = r"/b/(?P<bucket>[^/]+)", r"/o/(?P<name>[^/]+)"
        target = r"/b/(?P<to_bucket>[^/]+)/o/(?P<to_name>[^/]+)"
        api, upload = "/storage/v1", "/upload/storage/v1"
        xml = r"/(?P<bucket>[^/]+)/(?P<name>.+)"
        self._routes: tuple[Route, ...] = (
            self._route("GET", api + bucket, self.bucket),
            self._route("GET", api + bucket + "/o", self.list_objects),
            self._route("POST", api + bucket + name + "/rewriteTo" + target, self.rewrite),
            self._route("POST", api + bucket + name + "/copyTo" + target, self.copy),
            self._route("POST", api + bucket + name + "/compose", self.compose),
            self._route("DELETE", api + bucket + name, self.delete),
            self._route("GET", "(?:/download)?" + api + bucket + name, self.get_object),
            self._route("POST", upload + bucket + "/o", self.upload),
            self._route("PUT", upload + bucket + "/o", self.continue_upload),
            self._route("GET|HEAD", xml, self.read_xml),
            self._route("PUT", xml, self.write_xml),
        )

    @staticmethod
    def _route(methods: str, path: str, operation: Callable[..., Answer]) -> Route:
        return methods, re.compile(path + r"\Z"), operation

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request."""
        for methods, path, operation in self._routes:
            found = path.match(request.path)
            if found and request.method in methods.split("|"):
                names = {key: unquote(value) for key, value in found.groupdict().items()}
                bucket = names.get("bucket", "")
                if bucket not in self._buckets:
                    return error_answer(HTTPStatus.NOT_FOUND, f"no bucket {bucket!r}")
                return operation(request, **names)
        return error_answer(HTTPStatus.NOT_IMPLEMENTED, f"{request.method} {request.path}")

    def bucket(self, request: Request, bucket: str) -> Answer:
        """Describe a bucket."""
        return json_answer({"kind": "storage#bucket", "id": bucket, "name": bucket})

    def list_objects(self, request: Request, bucket: str) -> Answer:
        """List objects and common prefixes, all in one page."""
        query = request.query
        listing = self._buckets.list(
            bucket,
            query.get("prefix", ""),
            query.get("delimiter", ""),
            with_folders=query.get("includeTrailingDelimiter") == "true",
        )
        items = [entry.description() for entry in listing.objects]
        return json_answer(
            {"kind": "storage#objects", "items": items, "prefixes": listing.prefixes}
        )

    def get_object(self, request: Request, bucket: str, name: str) -> Answer:
        """Return an object's content (`alt=media`) or its description."""
        stored = self._buckets.get(bucket, name)
        if stored is None:
            return missing(name)
        if request.query.get("alt") == "media":
            return media_answer(request, stored)
        return json_answer(stored.description())

    def delete(self, request: Request, bucket: str, name: str) -> Answer:
        """Remove an object."""
        return (
            Answer(HTTPStatus.NO_CONTENT) if self._buckets.delete(bucket, name) else missing(name)
        )

    def copy(
        self, request: Request, bucket: str, name: str, to_bucket: str, to_name: str
    ) -> Answer:
        """Copy an object, and describe the copy."""
        stored = self._buckets.get(bucket, name)
        if stored is None or to_bucket not in self._buckets:
            return missing(name)
        return json_answer(self._buckets.put(to_bucket, to_name, stored.content).description())

    def rewrite(self, request: Request, **names: str) -> Answer:
        """Copy an object, in one step, and report the progress: done."""
        copied = self.copy(request, **names)
        if copied.status != HTTPStatus.OK:
            return copied
        resource = json.loads(copied.body)
        size = resource["size"]
        return json_answer(
            {
                "kind": "storage#rewriteResponse",
                "totalBytesRewritten": size,
                "objectSize": size,
                "done": True,
                "resource": resource,
            }
        )

    def compose(self, request: Request, bucket: str, name: str) -> Answer:
        """Join objects of one bucket into another."""
        content = bytearray()
        for source in json.loads(request.body)["sourceObjects"]:
            stored = self._buckets.get(bucket, source["name"])
            if stored is None:
                return missing(source["name"])
            content += stored.content
        return json_answer(self._buckets.put(bucket, name, bytes(content)).description())

    def upload(self, request: Request, bucket: str) -> Answer:
        """Take a whole object, or begin a resumable upload."""
        kind = request.query.get("uploadType")
        if kind == "resumable":
            return self._begin_upload(request, bucket)
        if kind == "multipart":
            part = parse_multipart(request.headers["content-type"], request.body)
            name, content = request.query.get("name") or str(part.metadata["name"]), part.content
        elif kind == "media":
            name, content = request.query["name"], request.body
        else:
            return error_answer(HTTPStatus.BAD_REQUEST, f"unknown uploadType {kind!r}")
        return json_answer(self._buckets.put(bucket, name, content).description())

    def _begin_upload(self, request: Request, bucket: str) -> Answer:
        name = request.query.get("name") or json.loads(request.body)["name"]
        session = self._uploads.begin(name)
        path = f"/upload/storage/v1/b/{quote(bucket)}/o?uploadType=resumable&upload_id={session}"
        return Answer(headers={"Location": f"http://{request.headers['host']}{path}"})

    def continue_upload(self, request: Request, bucket: str) -> Answer:
        """Take the next piece of a resumable upload, or say how much has arrived."""
        upload = self._uploads.get(request.query.get("upload_id", ""))
        if upload is None:
            return error_answer(HTTPStatus.NOT_FOUND, "no such upload")
        if not upload.take(request.headers.get("content-range", ""), request.body):
            return Answer(HTTPStatus.PERMANENT_REDIRECT, headers=upload.progress())
        stored = self._buckets.put(bucket, upload.name, bytes(upload.content))
        return json_answer(stored.description())

    def read_xml(self, request: Request, bucket: str, name: str) -> Answer:
        """Return an object's content, as the XML API does."""
        stored = self._buckets.get(bucket, name)
        return missing(name) if stored is None else media_answer(request, stored)

    def write_xml(self, request: Request, bucket: str, name: str) -> Answer:
        """Store an object, empty ones too, as the XML API does."""
        stored = self._buckets.put(bucket, name, request.body)
        return Answer(headers={"x-goog-generation": str(stored.generation)})


def missing(name: str) -> Answer:
    """Answer that an object does not exist."""
    return error_answer(HTTPStatus.NOT_FOUND, f"no object {name!r}")


def handler_for(service: Gcs) -> type[RequestHandler]:
    """Return a handler class that hands every request to `service`."""

    class GcsHandler(RequestHandler):
        def answer(self, request: Request) -> Answer:
            return service.answer(request)

    return GcsHandler


def main() -> None:
    """Serve the buckets that the command line names."""
    LoopbackServer(handler_for(Gcs(Buckets(sys.argv[1:])))).announce_and_serve()


if __name__ == "__main__":
    main()
