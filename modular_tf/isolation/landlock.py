"""Landlock: what of the file system, the network and other processes this process can reach.

A rule set names what is allowed; what it does not name is refused with EACCES, and signals to other
processes with EPERM. It holds for this thread and all that it starts from then on, for good.
"""

from __future__ import annotations

import os
import struct
from stat import S_ISDIR
from typing import TYPE_CHECKING

from modular_tf.isolation.kernel_calls import address_of, system_call
from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from collections.abc import Iterable

# Of all machines the same.
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
# All rights of files that a version knows.
_KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_KNOWN_SINCE_5 = (1 << 16) - 1
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_CONNECT_AND_BIND = 3
_SOCKETS_AND_SIGNALS = 3


def landlock_version() -> int:
    """Return the version of the kernel's interface; 0 where it has none."""
    try:
        return system_call(_CREATE, 0, 0, _VERSION)
    except OSError:
        return 0


def restrict_reach(
    files: tuple[Iterable[str], Iterable[str]] | None, *, network: bool
) -> frozenset[str]:
    """Take away what is not named. `no_new_privs` has to be set.

    Args:
        files: The places to read, and those to write too; what is not there is passed over. None
            for all places.
        network: Whether TCP is left.

    Returns:
        Which of `files`, `network` and `processes` are limited.

    Raises:
        OSError: The kernel refuses it; nothing has changed.
    """
    version = landlock_version()
    if version == 0:
        return frozenset()
    known = _KNOWN.get(version, _KNOWN_SINCE_5)
    limits_network = not network and version >= _NETWORK_SINCE
    attributes = (
        known if files is not None else 0,
        _CONNECT_AND_BIND if limits_network else 0,
        _SOCKETS_AND_SIGNALS if version >= _SCOPES_SINCE else 0,
    )
    if not any(attributes):
        return frozenset()
    length = 3 if version >= _SCOPES_SINCE else 2 if version >= _NETWORK_SINCE else 1
    packed = ffi.new("char[]", struct.pack("=3Q", *attributes))
    rules = system_call(_CREATE, address_of(packed), 8 * length)
    try:
        if files is not None:
            _allow(rules, files[0], _READ & known)
            _allow(rules, files[1], known)
        system_call(_RESTRICT, rules)
    finally:
        os.close(rules)
    limited = ("files", "network", "processes")
    return frozenset(name for name, set_ in zip(limited, attributes, strict=True) if set_)


def _allow(rules: int, places: Iterable[str], rights: int) -> None:
    for place in places:
        try:
            file = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # it is not there, or not to be reached anyway
            continue
        try:
            given = rights if S_ISDIR(os.fstat(file).st_mode) else rights & _OF_FILES
            packed = ffi.new("char[]", struct.pack("=Qi", given, file))
            system_call(_ADD_RULE, rules, _PATH_BENEATH, address_of(packed))
        finally:
            os.close(file)
