"""A web server for the files of one folder that understands `Range`, or pretends not to.

Usage: python -m tests.emulators.ranges FOLDER [--ignore-range]
"""

from __future__ import annotations

import argparse
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path

from tests.emulators.http_server import (
    Answer,
    LoopbackServer,
    Request,
    RequestHandler,
    content_answer,
)


def file_answer(request: Request, folder: Path, *, ignore_range: bool) -> Answer:
    """Answer a GET or HEAD for a file below `folder`."""
    if request.method not in {"GET", "HEAD"}:
        return Answer(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
    file = (folder / request.name).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        return Answer(HTTPStatus.NOT_FOUND)
    if ignore_range:
        return Answer(body=file.read_bytes())
    changed = formatdate(file.stat().st_mtime, usegmt=True)
    return content_answer(request, file.read_bytes(), {"Last-Modified": changed})


def handler_for(folder: Path, *, ignore_range: bool) -> type[RequestHandler]:
    """Return a handler class that serves `folder`."""

    class FolderHandler(RequestHandler):
        def answer(self, request: Request) -> Answer:
            return file_answer(request, folder, ignore_range=ignore_range)

    return FolderHandler


def main() -> None:
    """Serve the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ignore-range", action="store_true")
    options = parser.parse_args()
    handler = handler_for(options.folder, ignore_range=options.ignore_range)
    LoopbackServer(handler).announce_and_serve()


if __name__ == "__main__":
    main()
