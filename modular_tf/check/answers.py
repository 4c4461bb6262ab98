"""What an operation returned, and demands on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Deviation, Unsupported


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
    """

    code: int
    message: str = ""
    value: Any = None
    returned: Any = None
    touched: bool | None = None
    message_is_text: bool = True

    @property
    def ok(self) -> bool:
        """Whether the code is OK."""
        return self.code == Code.OK


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
