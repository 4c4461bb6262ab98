"""A web server for the files of one folder that understands `Range`, or pretends not to.

Usage: python -m tests.emulators.ranges FOLDER [--ignore-range]
"""

from __future__ import annotations

import sys
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path

from tests.emulators.http_server import (
    Answer,
    ControlledService,
    Request,
    Settings,
    content_answer,
    run,
)


class Folder(ControlledService[Settings]):
    """The service: the files below a folder, to be read."""

    def __init__(self, folder: Path, *, ignores_range: bool) -> None:
        super().__init__(Settings())
        self._folder = folder.resolve()
        self._ignores_range = ignores_range

    def answer(self, request: Request) -> Answer:
        """Answer a GET or HEAD for a file."""
        if request.method not in {"GET", "HEAD"}:
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        file = (self._folder / request.name).resolve()
        if not file.is_relative_to(self._folder) or not file.is_file():
            return Answer(HTTPStatus.NOT_FOUND)
        if self._ignores_range:
            return Answer(body=file.read_bytes())
        changed = formatdate(file.stat().st_mtime, usegmt=True)
        return content_answer(request, file.read_bytes(), {"Last-Modified": changed})


if __name__ == "__main__":
    run(Folder(Path(sys.argv[1]), ignores_range="--ignore-range" in sys.argv))
