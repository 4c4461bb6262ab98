"""The host runtime in this process, opened for plugins to bind to, and its statuses."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.contrib.outcome import UNTOUCHED, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator


class Runtime:
    """The host runtime. Only a child process may make one: it is visible to every library."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self.new = self._function("TF_NewStatus", ctypes.c_void_p)
        self.delete = self._function("TF_DeleteStatus", None, ctypes.c_void_p)
        self.set = self._function(
            "TF_SetStatus", None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
        )
        self.code = self._function("TF_GetCode", ctypes.c_int, ctypes.c_void_p)
        self.message = self._function("TF_Message", ctypes.c_char_p, ctypes.c_void_p)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = self._library[name]
        function.restype, function.argtypes = result, arguments
        return function

    @contextmanager
    def status(self) -> Iterator[int]:
        """Lend a status that says `UNTOUCHED` until a plugin sets it."""
        status = self.new()
        self.set(status, UNTOUCHED, b"untouched")
        try:
            yield status
        finally:
            self.delete(status)

    def outcome(self, status: int, value: Any = None) -> Outcome:
        """Read a status."""
        return Outcome(self.code(status), self.message(status).decode(), value)
