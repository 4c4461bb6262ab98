"""A browser without a window (Chromium's), by its protocol for debuggers."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Self

PROGRAM = "chromium-headless-shell"  # its package is named so, too
_OPTIONS = ("--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--no-sandbox")
_COMMANDS, _ANSWERS = 3, 4  # the descriptors by which it is asked


@dataclass
class Seen:
    """A page as the browser has it.

    Attributes:
        values: Of the expressions.
        text: What is shown.
        requests: The URLs that the page asked for.
        messages: What the browser says of it.
    """

    values: list[Any] = field(default_factory=list)
    text: str = ""
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def opened(file: Path, *expressions: str, scripting: bool = True) -> Seen:
    """Open a file, and evaluate expressions of JavaScript there, one after the other."""
    program = shutil.which(PROGRAM)
    assert program is not None, f"{PROGRAM} is missing; scripts/fetch_system_libraries fetches it"
    with _Browser(program, file.with_suffix(".profile")) as browser:
        browser.call("Emulation.setScriptExecutionDisabled", value=not scripting)
        for domain in ("Page", "Network", "Log"):
            browser.call(f"{domain}.enable")
        browser.call("Page.navigate", url=file.as_uri())
        browser.wait_for("Page.loadEventFired")
        seen = Seen()
        for expression in expressions:
            seen.values.append(browser.value_of(f"JSON.stringify({expression} ?? null)"))
        seen.text = browser.value_of("JSON.stringify(document.body.innerText)")
        for event, values in browser.events:
            if event == "Network.requestWillBeSent":
                seen.requests.append(values["request"]["url"])
            elif event == "Log.entryAdded":
                seen.messages.append(values["entry"]["text"])
        return seen


class _Browser:
    """A process of the browser, with one page."""

    def __init__(self, program: str, profile: Path) -> None:
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        self._pid = os.posix_spawn(
            program,
            [program, *_OPTIONS, f"--user-data-dir={profile}"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, commands, _COMMANDS + 100),
                (os.POSIX_SPAWN_DUP2, answers, _ANSWERS),
                (os.POSIX_SPAWN_DUP2, _COMMANDS + 100, _COMMANDS),
            ],
        )
        os.close(commands)
        os.close(answers)
        self._messages = self._received()
        self._session: dict[str, str] = {}
        self._calls = 0
        self.events: list[tuple[str, dict[str, Any]]] = []
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)
        os.close(self._from)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its answer."""
        self._calls += 1
        call = {"id": self._calls, "method": method, "params": parameters, **self._session}
        os.write(self._to, json.dumps(call).encode() + b"\0")
        for message in self._messages:
            if message.get("id") == self._calls:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
        raise AssertionError(f"the browser ended in {method}")

    def value_of(self, expression: str) -> Any:
        """Return what an expression gives, which is a text of JSON."""
        result = self.call("Runtime.evaluate", expression=expression)
        assert "exceptionDetails" not in result, result
        return json.loads(result["result"]["value"])

    def wait_for(self, event: str) -> None:
        """Wait for an event of the page."""
        while event not in dict(self.events):
            next(self._messages)

    def _received(self) -> Iterator[dict[str, Any]]:
        """Yield messages; events among them are kept, too."""
        rest = b""
        while data := os.read(self._from, 1 << 16):
            *whole, rest = (rest + data).split(b"\0")
            for message in map(json.loads, whole):
                if "method" in message:
                    self.events.append((message["method"], message.get("params", {})))
                yield message
