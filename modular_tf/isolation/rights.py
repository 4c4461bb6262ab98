"""The rights that a worker gives up before its plugin is mapped."""

from __future__ import annotations

import os
import resource
import struct
import sys
from contextlib import suppress
from functools import cache
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.filesystem.uri import is_of_this_machine
from modular_tf.native.c_library import prctl, system_call
from modular_tf.native.ffi import ffi
from modular_tf.processes.child import dump_no_core, lower_limit
from modular_tf.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SET_DUMPABLE, _SET_NO_NEW_PRIVS = 4, 38
_MOST_PROCESSES = 1024

PRIVILEGES = "no new privileges"
TRACES = "no tracing"
LIMITS = "limits of descriptors, processes and core dumps"
FILES = "named files only"
NETWORK = "no network"
PROCESSES = "no signals to other processes"
ALL = (PRIVILEGES, TRACES, LIMITS, FILES, NETWORK, PROCESSES)
"""What a worker may have been restricted to, as messages name it."""


class Profile(NamedTuple):
    """What a worker may do."""

    network: bool = True  # its plugin speaks to a network
    files: bool = False  # it may reach only the places below, the system's and the plugin's own
    read: tuple[str, ...] = ()  # places that it may read
    write: tuple[str, ...] = ()  # places that it may read and write


@cache
def _known() -> dict[str, Any]:
    return read_table("isolation/rights.toml")


def profile_of(
    schemes: Iterable[str], directories: Iterable[str], environment: Mapping[str, str]
) -> Profile:
    """Return what the worker of a plugin may do."""
    named, known = tuple(directories), _known()
    if all(map(is_of_this_machine, schemes)):
        read = tuple(known["read"]) if named else ()
        return Profile(network=False, files=bool(named), read=read, write=named)
    temporary = environment.get("TMPDIR", "")
    own = (temporary,) if os.path.isabs(temporary) else ()
    readable = (*known["read"], *_of_home(schemes, environment), *_of_variables(environment))
    return Profile(network=True, files=True, read=readable, write=(*known["write"], *own, *named))


def _of_home(schemes: Iterable[str], environment: Mapping[str, str]) -> Iterator[str]:
    home, rows = environment.get("HOME", ""), _known()["home"]
    if os.path.isabs(home):
        for scheme in schemes:
            yield from (os.path.join(home, name) for name in rows.get(scheme, rows[""]))


def _of_variables(environment: Mapping[str, str]) -> Iterator[str]:
    folders = frozenset(_known()["folder_variables"])
    for name, value in environment.items():
        places = value.split(":") if name in folders else [value]
        for place in filter(os.path.isabs, places):
            # A pattern of Java's class path names what is in a directory.
            path = place.removesuffix("/*")
            if name in folders or os.path.isfile(path):
                yield path


def give_up_rights() -> list[str]:
    """Give up what no plugin needs, in the only thread of a worker; return what is in force."""
    dump_no_core()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lower_limit(resource.RLIMIT_NOFILE, soft)
    with suppress(OSError), open("/proc/self/uid_map", "rb") as numbers:
        # The kernel counts the processes here, and not all of the user's.
        if [line.split()[2] for line in numbers] == [b"1"]:
            lower_limit(resource.RLIMIT_NPROC, _MOST_PROCESSES)
    taken = [LIMITS]
    for name, option, value in (
        (TRACES, _SET_DUMPABLE, 0),
        (PRIVILEGES, _SET_NO_NEW_PRIVS, 1),
    ):
        with suppress(OSError):  # a container forbids it
            prctl(option, value)
            taken.append(name)
    return taken


def limit_reach(profile: Profile, own: Iterable[str]) -> list[str]:
    """Leave only what a plugin needs of files, network and processes; return what is in force.

    It may read what is in the directories of its own files.
    """
    files = None
    if profile.files:
        os.environ.pop("XDG_RUNTIME_DIR", None)  # where others keep their sockets
        files = (*profile.read, *_of_interpreter(), *_of_plugin(own)), profile.write
    try:
        return _restrict_reach(files, network=profile.network)
    except OSError:  # a container forbids it
        return []


def _of_interpreter() -> Iterator[str]:
    """Yield where Python's modules are, of which some are imported late."""
    yield from filter(os.path.isabs, sys.path)
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix)
    for name in ("modular_tf", "modular_tf.native"):
        yield from sys.modules[name].__path__


def _of_plugin(files: Iterable[str]) -> Iterator[str]:
    """Yield its files and the directories that they lie in, where no other files are to be read."""
    home = os.path.realpath(os.environ.get("HOME", "/"))
    for file in files:
        yield file
        folder = os.path.dirname(os.path.realpath(file))
        if os.path.commonpath((folder, home)) != folder:  # neither the home directory nor above it
            yield folder


def why_refused(limits: Iterable[str]) -> str:
    """Return what may have refused a plugin something, for a message; "" for nothing."""
    given = set(limits)
    explanations = {
        FILES: f"has {FILES}: `worker_directories` in the configuration names more",
        NETWORK: f"has {NETWORK}",
    }
    reasons = [text for name, text in explanations.items() if name in given]
    return f"its worker process {', '.join(reasons)}" if reasons else ""


def rights_here() -> dict[str, str]:
    """Return, by the names of `ALL`, what keeps each from being in force here; "" for nothing."""
    version = landlock_version()
    old = (
        f"the kernel has version {version} of Landlock" if version else "the kernel has no Landlock"
    )
    return {
        PRIVILEGES: "",
        TRACES: "",
        LIMITS: "",
        FILES: "" if version >= 1 else old,
        NETWORK: "" if version >= _NETWORK_SINCE else old,
        PROCESSES: "" if version >= _SCOPES_SINCE else old,
    }


# -- Landlock -------------------------------------------------------------------------------------
#
# A rule set names what is allowed; what it does not name is refused with EACCES, and signals to
# other processes with EPERM. It holds for this thread and all that it starts, for good.

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


def _restrict_reach(
    files: tuple[Iterable[str], Iterable[str]] | None, *, network: bool
) -> list[str]:
    """Take away what is not named, and TCP, after `no_new_privs`; return what is in force.

    Files are those to read, and those to write too; what is not there is passed over. None: all.
    """
    version = landlock_version()
    if version == 0:
        return []
    known = _KNOWN.get(version, _KNOWN_SINCE_5)
    limits_network = not network and version >= _NETWORK_SINCE
    attributes = (
        known if files is not None else 0,
        _CONNECT_AND_BIND if limits_network else 0,
        _SOCKETS_AND_SIGNALS if version >= _SCOPES_SINCE else 0,
    )
    if not any(attributes):
        return []
    length = 3 if version >= _SCOPES_SINCE else 2 if version >= _NETWORK_SINCE else 1
    packed = ffi.new("char[]", struct.pack("=3Q", *attributes))
    rules = system_call(_CREATE, packed, 8 * length, 0)
    try:
        if files is not None:
            _allow(rules, files[0], _READ & known)
            _allow(rules, files[1], known)
        system_call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)
    limited = (FILES, NETWORK, PROCESSES)
    return [name for name, bits in zip(limited, attributes, strict=True) if bits]


def _allow(rules: int, places: Iterable[str], rights: int) -> None:
    for place in places:
        try:
            file = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # it is not there, or not to be reached anyway
            continue
        try:
            given = rights if S_ISDIR(os.fstat(file).st_mode) else rights & _OF_FILES
            packed = ffi.new("char[]", struct.pack("=Qi", given, file))
            system_call(_ADD_RULE, rules, _PATH_BENEATH, packed, 0)
        finally:
            os.close(file)
