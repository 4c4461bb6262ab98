"""What an operation returned, and demands on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Deviation, Unsupported

_IN_OWN_DIRECTORY = re.compile(r"'[^']*/(?:FS|SE|KN)-\d{3}-\d+/([^']*)'")
"""A URI in a call, below the directory that a check was given; see `StageRoot`."""


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
        return _IN_OWN_DIRECTORY.sub(r"\1", self.call)

    def must_be(self, *allowed: Code) -> Any:
        """Demand that the operation returned one of some codes, and return its value.

        Raises:
            Deviation: It returned another.
            Unsupported: It is UNIMPLEMENTED, and that is not among the codes.
        """
        expect_code(self, self.short_call, *allowed)
        return self.value

    def must_be_ok(self) -> Any:
        """Demand that the operation worked, and return its value; see `must_be`."""
        return self.must_be(Code.OK)


def expect_ok(answer: Answer, what: str) -> Any:
    """Demand that an operation worked, and return the answer's value.

    Args:
        answer: What it returned.
        what: The operation with its arguments, such as `stat(F)`.

    Raises:
        Deviation: It failed.
        Unsupported: It is UNIMPLEMENTED.
    """
    expect_code(answer, what, Code.OK)
    return answer.value


def expect_code(answer: Answer, what: str, *allowed: Code) -> None:
    """Demand that an operation returned one of some codes.

    Args:
        answer: What it returned.
        what: The operation with its arguments, such as `stat(X)`.
        *allowed: The codes that fit.

    Raises:
        Deviation: It returned another.
        Unsupported: It is UNIMPLEMENTED, and that is not among the codes.
    """
    if answer.code in allowed:
        return
    if answer.code == Code.UNIMPLEMENTED:
        raise Unsupported(f"{what} is UNIMPLEMENTED")
    raise Deviation(
        f"{what} returned another code than it must",
        expected=" or ".join(f"{code.name} ({code.value})" for code in allowed),
        found=code_found(answer),
    )


def code_found(answer: Answer) -> str:
    """Return an answer's code by name and number, with its message."""
    try:
        name = Code(answer.code).name
    except ValueError:
        name = "no code of TF_Code"
    said = f": {answer.message}" if answer.message else ""
    return f"{name} ({answer.code}){said}"
