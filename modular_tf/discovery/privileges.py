"""A check whether this process has rights that its user lacks, so that variables are ignored.

A setuid or setgid program has them, and so has one whose file carries capabilities. The kernel
informs the dynamic linker when it starts such a program (AT_SECURE, getauxval(3)); the linker then
ignores the user's variables, and so does this package.
"""

from __future__ import annotations

import os
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING

from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Mapping

_AUXILIARY_VECTOR = "/proc/self/auxv"
_STATUS = "/proc/self/status"
_ENTRY = Struct("@LL")  # type and value
_AT_SECURE = 23


def is_privileged() -> bool:
    """Return whether this process runs with rights that its user lacks. [any thread]"""
    differs = os.geteuid() != os.getuid() or os.getegid() != os.getgid()
    return differs or _started_with_more_rights()


def linker_variable(name: str, environment: Mapping[str, str]) -> str:
    """Return a variable of the dynamic linker's, such as LD_LIBRARY_PATH; empty if it is ignored.

    Where `environment` is `os.environ`, which a program may have changed since its start, the
    variables that the process started with come first.
    """
    if is_privileged():
        return ""
    # A program that changes its own title overwrites the variables of the start.
    of_start = variables_of_start().get(name) if environment is os.environ else None
    return of_start or environment.get(name, "")


def variables_of_start() -> dict[str, str]:
    """Return the variables that this process started with; empty if they cannot be read."""
    try:
        with open("/proc/self/environ", "rb") as stream:
            pairs = (entry.partition(b"=") for entry in stream.read().split(b"\0"))
        return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}
    except OSError as error:
        raise_shortage(error)
        return {}


@cache
def _started_with_more_rights() -> bool:
    """Return whether the kernel started the process with more rights (AT_SECURE)."""
    try:
        with open(_AUXILIARY_VECTOR, "rb", buffering=0) as stream:
            data = stream.read()
    except OSError as error:
        raise_shortage(error)
        return _has_more_capabilities()
    whole = data[: len(data) - len(data) % _ENTRY.size]
    return any(kind == _AT_SECURE and value for kind, value in _ENTRY.iter_unpack(whole))


def _has_more_capabilities() -> bool:
    """Return whether the process has capabilities that its file gave it.

    The kernel hides the vector from a program that such a file started; and from one that gave up
    root's rights later, which then has none left. Ambient capabilities come from the parent, which
    had them.
    """
    try:
        with open(_STATUS, "rb") as stream:
            lines = dict(line.split(b":", 1) for line in stream if line.startswith(b"Cap"))
        permitted, ambient = (int(lines.get(name, b"0"), 16) for name in (b"CapPrm", b"CapAmb"))
    except (OSError, ValueError) as error:
        raise_shortage(error)
        return True  # unknown, so the variables of the user do not count
    return os.geteuid() != 0 and permitted & ~ambient != 0
