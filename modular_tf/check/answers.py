"""What an operation returned, and demands on it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Blocked, Deviation, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_OWN_DIRECTORY = re.compile(r"'[^']*/(?:FS|SE|KN)-\d{3}-\d+/([^']*)'")
"""A URI in a call, below the directory that a check was given; see `Roots`."""

_OUTPUT = re.compile(r", &\w+")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one operation returned.

    Attributes:
        code: The status code, 0 for OK, as the plugin gave it: it may be no `Code` at all.
        message: The status message, bytes that are not UTF-8 replaced; "" for none.
        value: What else it returned; see the operation. None for nothing.
        returned: What the C function returned, where it returns something; None through the host.
        touched: Whether the plugin set the status at all; None where that was not looked at.
        message_is_text: Whether the message was UTF-8.
        call: The operation with its arguments, as a report shows it.
    """

    code: int
    message: str = ""
    value: Any = None
    returned: Any = None
    touched: bool | None = None
    message_is_text: bool = True
    call: str = "the operation"

    @property
    def ok(self) -> bool:
        """Whether the code is OK."""
        return self.code == Code.OK

    @property
    def short_call(self) -> str:
        """The call with URIs below a check's own directory by their names: `stat(F)`."""
        return _OUTPUT.sub("", _IN_OWN_DIRECTORY.sub(r"\1", self.call))

    def must_be(self, *allowed: Code) -> Any:
        """Demand that the operation returned one of some codes, and return its value.

        Raises:
            Deviation: It returned another; what it opened is closed and cleaned up.
            Unsupported: It is UNIMPLEMENTED, and that is not among the codes.
        """
        if self.code in allowed:
            return self.value
        if self.code == Code.UNIMPLEMENTED:
            raise Unsupported(f"{self.short_call} is UNIMPLEMENTED")
        for end in ("close", "cleanup") if self.ok else ():  # a failure may leave what is freed
            if hasattr(self.value, end):
                getattr(self.value, end)()
        raise Deviation(
            f"{self.short_call} returned another code than it must",
            expected=" or ".join(f"{code.name} ({code.value})" for code in allowed),
            found=code_found(self),
        )

    def must_be_ok(self) -> Any:
        """Demand that the operation worked, and return its value; see `must_be`."""
        return self.must_be(Code.OK)

    def needed(self, see: str = "") -> Any:
        """Return the value of an operation that is only a step of a check.

        Args:
            see: The check that is about this operation.

        Raises:
            Blocked: It failed.
            Unsupported: It is UNIMPLEMENTED.
        """
        slot = self.call.partition("(")[0]
        if self.code == Code.UNIMPLEMENTED:
            raise Unsupported(f"{slot} is UNIMPLEMENTED")
        if not self.ok:
            raise Blocked(f"{slot} failed", see, found=code_found(self))
        return self.value

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Give the file or region that was opened within the block, and clean it up after it.

        Closing a file that is written to is the block's.

        Raises:
            Blocked: It could not be opened.
            Unsupported: The plugin opens none.
        """
        thing = self.needed()
        try:
            yield thing
        finally:
            getattr(thing, "cleanup", thing.close)()


def code_found(answer: Answer) -> str:
    """Return an answer's code by name and number, with its message."""
    try:
        name = Code(answer.code).name
    except ValueError:
        name = "no code of TF_Code"
    said = f": {answer.message}" if answer.message else ""
    return f"{name} ({answer.code}){said}"
