"""A browser without a window (Chromium in Qt), in a process of its own.

Usage: browser.py FILE SCRIPTING [EXPRESSION...]

Opens a file, evaluates expressions of JavaScript there one after the other, and prints a JSON
object: `values`, `console` (messages of the page), `requests` (URLs that it asked for) and `text`
(what is shown). SCRIPTING is `on`, or `off` for a browser in which pages run no script.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QTWEBENGINE_DISABLE_SANDBOX"] = "1"  # Chromium has none for root, nor in containers

LIBRARIES = (
    "libasound2 libegl1 libfontconfig1 libgbm1 libgl1 libglib2.0-0 libnss3 libxcomposite1"
    " libxdamage1 libxkbcommon0 libxkbfile1 libxrandr2 libxtst6"
)

try:
    from PySide6.QtCore import QUrl
    from PySide6.QtGui import QGuiApplication
    from PySide6.QtWebEngineCore import (
        QWebEnginePage,
        QWebEngineProfile,
        QWebEngineSettings,
        QWebEngineUrlRequestInfo,
        QWebEngineUrlRequestInterceptor,
    )
except ImportError as error:
    sys.exit(f"the browser cannot be loaded: {error}; it needs the Debian packages {LIBRARIES}")

WORLD = 0  # of the page's own scripts


class Requests(QWebEngineUrlRequestInterceptor):
    """Writes down what the page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def interceptRequest(self, info: QWebEngineUrlRequestInfo) -> None:  # noqa: N802  (Qt's name)
        self.urls.append(info.requestUrl().toString())


class Page(QWebEnginePage):
    """A page whose messages are kept."""

    def __init__(self, profile: QWebEngineProfile) -> None:
        super().__init__(profile)
        self.console: list[str] = []

    def javaScriptConsoleMessage(  # noqa: N802  (Qt's name)
        self, level: object, message: str, line: int, source: str
    ) -> None:
        self.console.append(f"{source}:{line}: {level}: {message}")


def main(file: str, scripting: str, *expressions: str) -> None:
    """Open the file, and print what came of it."""
    application = QGuiApplication([sys.argv[0], "--disable-gpu"])
    requests = Requests()
    profile = QWebEngineProfile()
    profile.setUrlRequestInterceptor(requests)
    page = Page(profile)
    attribute = QWebEngineSettings.WebAttribute.JavascriptEnabled
    page.settings().setAttribute(attribute, scripting == "on")
    values: list[object] = []

    def evaluate(left: list[str]) -> None:
        if left:
            # Qt hands over no arrays.
            page.runJavaScript(f"JSON.stringify({left[0]} ?? null)", WORLD, partial(keep, left[1:]))
        else:
            page.toPlainText(finish)

    def keep(left: list[str], value: str) -> None:
        values.append(json.loads(value))
        evaluate(left)

    def finish(text: str) -> None:
        found = {
            "values": values, "console": page.console, "requests": requests.urls, "text": text,
        }  # fmt: skip
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
        os._exit(0)  # Qt's end of a profile whose page is still there is no concern of the test

    def loaded(well: bool) -> None:
        if not well:
            sys.exit(f"{file} could not be opened")
        evaluate(list(expressions))

    page.loadFinished.connect(loaded)
    page.load(QUrl.fromLocalFile(file))
    application.exec()


if __name__ == "__main__":
    main(*sys.argv[1:])
