"""A browser without a window (Chromium's), by its protocol for debuggers."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import dataclass, field

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
        messages: What the browser reports of it.
    """

    values: list = field(default_factory=list)
    text: str = ""
    requests: list = field(default_factory=list)
    messages: list = field(default_factory=list)


class Browser:
    """A process of the browser, which shows one page after the other.

    Args:
        profile: The folder for what it stores.
    """

    def __init__(self, profile):
        program = shutil.which(PROGRAM)
        assert program, f"{PROGRAM} is missing; scripts/fetch_system_libraries fetches it"
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
        self._session = {}
        self._calls = 0
        self._events = []

    def close(self):
        os.close(self._to)
        os.close(self._from)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def opened(self, file, *expressions, scripting=True):
        """Open a file, and evaluate expressions of JavaScript there, one after the other."""
        self._session = {}
        page = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        self._call("Emulation.setScriptExecutionDisabled", value=not scripting)
        for domain in ("Page", "Network", "Log"):
            self._call(f"{domain}.enable")
        self._events.clear()
        self._call("Page.navigate", url=file.as_uri())
        while "Page.loadEventFired" not in dict(self._events):
            next(self._messages)
        seen = Seen()
        for expression in expressions:
            seen.values.append(self._value_of(f"JSON.stringify({expression} ?? null)"))
        seen.text = self._value_of("JSON.stringify(document.body.innerText)")
        for event, values in self._events:
            if event == "Network.requestWillBeSent":
                seen.requests.append(values["request"]["url"])
            elif event == "Log.entryAdded":
                seen.messages.append(values["entry"]["text"])
        return seen

    def _call(self, method, **parameters):
        self._calls += 1
        call = {"id": self._calls, "method": method, "params": parameters, **self._session}
        os.write(self._to, json.dumps(call).encode() + b"\0")
        for message in self._messages:
            if message.get("id") == self._calls:
                assert "error" not in message, message
                return message["result"]
        raise AssertionError(f"the browser ended in {method}")

    def _value_of(self, expression):
        """Return what an expression gives, which is a text of JSON."""
        result = self._call("Runtime.evaluate", expression=expression)
        assert "exceptionDetails" not in result, result
        return json.loads(result["result"]["value"])

    def _received(self):
        """Yield messages, and record the events among them."""
        rest = b""
        while data := os.read(self._from, 1 << 16):
            *whole, rest = (rest + data).split(b"\0")
            for message in map(json.loads, whole):
                if "method" in message:
                    self._events.append((message["method"], message.get("params", {})))
                yield message
