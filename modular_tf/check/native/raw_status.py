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


class _Functions(NamedTuple):
    """The host runtime's own, as plugins import them."""

    new: Any
    delete: Any
    set: Any
    code: Any
    message: Any


@cache
def _functions() -> _Functions:
    runtime = load_runtime()

    def function(name: str, cdecl: str) -> Any:
        address = runtime.symbol(name)
        if address is None:
            raise RuntimeError(f"the host runtime has no {name}")
        return ffi.cast(cdecl, address)

    return _Functions(
        new=function("TF_NewStatus", "void *(*)(void)"),
        delete=function("TF_DeleteStatus", "void(*)(void *)"),
        set=function("TF_SetStatus", "void(*)(void *, int, char const *)"),
        code=function("TF_GetCode", "int(*)(void const *)"),
        message=function("TF_Message", "char const *(*)(void const *)"),
    )


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
        self.pointer = self._f.new()
        self._f.set(self.pointer, _POISON, _SENTINEL)
        if not poisoned:
            # The runtime's own call would drop the text; the code is the first field (status.h).
            ffi.cast("int32_t *", self.pointer)[0] = 0

    def read(self) -> StatusContent:
        """Return what it holds now."""
        code = int(self._f.code(self.pointer))
        raw = bytes(ffi.string(self._f.message(self.pointer)))
        if raw == _SENTINEL:
            return StatusContent(code, "", is_text=True, touched=False)
        text = raw.decode("utf-8", "replace")
        return StatusContent(code, text, is_text=text.encode() == raw, touched=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._f.delete(self.pointer)


def set_status(pointer: Any, code: int, message: str) -> None:
    """Set a `TF_Status` that a plugin lent, as the host's side of a callback does."""
    _functions().set(pointer, code, message.encode("utf-8", "backslashreplace"))
