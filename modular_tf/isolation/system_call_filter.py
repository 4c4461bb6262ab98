"""A filter of system calls (seccomp): what no plugin needs is refused with EPERM.

It holds for this thread and all that it starts from then on, for good.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING, Any

from modular_tf.isolation.kernel_calls import address_of, system_call
from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SET_MODE_FILTER = 1
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _IS_EQUAL, _IS_AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in seccomp_data; all machines here are LE
_CLONE_FS = 0x200
_NEW_NAMESPACES = 0x7E020000
_AF_UNIX = 1

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def refuse_needless_calls(machines: Mapping[str, Any]) -> bool:
    """Refuse what no plugin needs, from now on. `no_new_privs` has to be set.

    Args:
        machines: The numbers of system calls, by machine.

    Returns:
        Whether that was done: not where the numbers of this machine are not known.

    Raises:
        OSError: The kernel refuses it, or has no filters.
    """
    return _filter(machines, _needless)


def refuse_network_sockets(machines: Mapping[str, Any]) -> bool:
    """Refuse sockets of all families but that of this machine's own processes; as above."""
    return _filter(machines, _network_sockets)


def _filter(
    machines: Mapping[str, Any], checks: Callable[[Mapping[str, Any]], Iterator[_Instruction]]
) -> bool:
    numbers = machines.get(os.uname().machine)
    if numbers is None:
        return False
    program = [*_begin(numbers), *checks(numbers), _ALLOWED]
    code = ffi.new("char[]", b"".join(struct.pack("=HBBI", *one) for one in program))
    header = ffi.new("char[]", struct.pack("@HP", len(program), address_of(code)))
    system_call(numbers["seccomp"], _SET_MODE_FILTER, 0, address_of(header))
    return True


_REFUSED: _Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_ALLOWED: _Instruction = (_RETURN, 0, 0, _ALLOW)


def _begin(numbers: Mapping[str, Any]) -> Iterator[_Instruction]:
    yield _LOAD, 0, 0, _MACHINE
    yield _IS_EQUAL, 1, 0, numbers["audit"]
    yield _REFUSED  # calls of another machine's code, whose numbers mean something else
    yield _LOAD, 0, 0, _NUMBER
    if "foreign" in numbers:
        yield _IS_AT_LEAST, 0, 1, numbers["foreign"]
        yield _REFUSED


def _needless(numbers: Mapping[str, Any]) -> Iterator[_Instruction]:
    for number in numbers["refused"].values():
        yield _IS_EQUAL, 0, 1, number
        yield _REFUSED
    # Its flags lie in memory, where no filter looks: the C library then calls `clone`.
    yield _IS_EQUAL, 0, 1, numbers["clone3"]
    yield _RETURN, 0, 0, _ERRNO | errno.ENOSYS
    yield _IS_EQUAL, 0, 4, numbers["clone"]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _HAS_BITS, 0, 1, _NEW_NAMESPACES
    yield _REFUSED
    yield _ALLOWED
    # A thread of ours has a current directory of its own.
    yield _IS_EQUAL, 0, 4, numbers["unshare"]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _IS_EQUAL, 1, 0, _CLONE_FS
    yield _REFUSED
    yield _ALLOWED


def _network_sockets(numbers: Mapping[str, Any]) -> Iterator[_Instruction]:
    yield _IS_EQUAL, 0, 3, numbers["socket"]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _IS_EQUAL, 1, 0, _AF_UNIX
    yield _REFUSED
