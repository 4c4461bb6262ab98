"""moto's server for S3, with a log that has the user agent of each request on a line of its own.

Usage: python -m tests.emulators.s3_with_log LOG
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from typing import TextIO


def handler_for(log: TextIO) -> type[WSGIRequestHandler]:
    """Return a handler class that writes to a log."""

    class LoggingHandler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *_: Any) -> None:
            log.write(f"{self.headers.get('User-Agent')}\n")

    return LoggingHandler


def main() -> None:
    """Serve until the process is ended."""
    with Path(sys.argv[1]).open("a", buffering=1, encoding="utf-8") as log:
        application = DomainDispatcherApplication(create_backend_app)
        server = make_server(
            "127.0.0.1", 0, application, threaded=True, request_handler=handler_for(log)
        )
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
