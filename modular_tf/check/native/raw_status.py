"""A `TF_Status` of the host runtime that shows whether it was set."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.native.ffi import ffi
from modular_tf.native.runtime_library import load_runtime

if TYPE_CHECKING:
    from typing_extensions import Self

_SENTINEL = b"(the plugin did not set the status)"
_POISON = 2
_CDECLS = {
    "TF_NewStatus": "void *(*)(void)",
    "TF_DeleteStatus": "void(*)(void *)",
    "TF_SetStatus": "void(*)(void *, int, char const *)",
    "TF_GetCode": "int(*)(void const *)",
    "TF_Message": "char const *(*)(void const *)",
}


class StatusContent(NamedTuple):
    """What a status held after a call.

    Attributes:
        code: Its code, 0 where it was not set.
        message: Its message, undecodable bytes replaced.
        is_text: Whether the message was UTF-8.
        touched: Whether it was set.
    """

    code: int
    message: str
    is_text: bool
    touched: bool


@cache
def _functions() -> dict[str, Any]:
    """Return the host runtime's own functions, as plugins import them."""
    runtime = load_runtime()
    return {name: ffi.cast(cdecl, runtime.symbol(name)) for name, cdecl in _CDECLS.items()}


class RawStatus:
    """A status for one call; use it as a context manager, which deletes it. [one thread]

    It is OK, as every host presets it, yet holds a text that `TF_SetStatus` removes, whatever code
    it is given: so it shows whether the plugin set it.

    Attributes:
        pointer: The `TF_Status *`.

    Args:
        poisoned: Preset it to UNKNOWN instead.
    """

    __slots__ = ("_f", "pointer")

    def __init__(self, *, poisoned: bool = False) -> None:
        self._f = _functions()
        self.pointer = self._f["TF_NewStatus"]()
        self._f["TF_SetStatus"](self.pointer, _POISON, _SENTINEL)
        if not poisoned:
            # The runtime's own call would drop the text; the code is the first field (status.h).
            ffi.cast("int32_t *", self.pointer)[0] = 0

    def read(self) -> StatusContent:
        """Return what it holds now."""
        code = int(self._f["TF_GetCode"](self.pointer))
        raw = bytes(ffi.string(self._f["TF_Message"](self.pointer)))
        if raw == _SENTINEL:
            return StatusContent(code, "", is_text=True, touched=False)
        text = raw.decode("utf-8", "replace")
        return StatusContent(code, text, is_text=text.encode() == raw, touched=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._f["TF_DeleteStatus"](self.pointer)


def set_status(pointer: Any, code: int, message: str) -> None:
    """Set a `TF_Status` that a plugin lent, as the host's side of a callback does."""
    _functions()["TF_SetStatus"](pointer, code, message.encode("utf-8", "backslashreplace"))
