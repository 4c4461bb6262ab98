"""The rights that a worker gives up before its plugin is mapped."""

from __future__ import annotations

import os
import resource
import sys
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.isolation.kernel_calls import prctl
from modular_tf.isolation.landlock import landlock_version, restrict_reach
from modular_tf.isolation.system_call_filter import refuse_needless_calls, refuse_network_sockets
from modular_tf.native.sanitizers import sanitizer_of_process
from modular_tf.processes.child import dump_no_core, lower_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SET_DUMPABLE, _SET_NO_NEW_PRIVS, _GET_SECCOMP = 4, 38, 21
_MOST_PROCESSES = 1024

PRIVILEGES = "no new privileges"
TRACES = "no tracing"
LIMITS = "limits of descriptors, processes and core dumps"
FILES = "named files only"
NETWORK = "no network"
PROCESSES = "no signals to other processes"
CALLS = "filtered system calls"
ALL = (PRIVILEGES, TRACES, LIMITS, FILES, NETWORK, PROCESSES, CALLS)
"""What a worker may have been restricted to, as messages name it."""


class Profile(NamedTuple):
    """What a worker may do.

    Attributes:
        network: Whether its plugin speaks to a network.
        files: Whether it may reach only the places below, the system's and the plugin's own.
        read: Places that it may read.
        write: Places that it may read and write.
    """

    network: bool = True
    files: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


@cache
def _known() -> dict[str, Any]:
    text = resources.files("modular_tf.isolation").joinpath("rights.toml").read_text("utf-8")
    return tomllib.loads(text)


def profile_of(
    schemes: Iterable[str], directories: Iterable[str], environment: Mapping[str, str]
) -> Profile:
    """Return what the worker of a plugin may do.

    Args:
        schemes: What the plugin serves.
        directories: Those that the configuration names for it.
        environment: The variables of the worker.
    """
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
    """Give up what no plugin needs, for good; called by the only thread of a worker.

    Returns:
        Which of `ALL` are in force; those that the kernel does not have are not.
    """
    dump_no_core()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lower_limit(resource.RLIMIT_NOFILE, soft)
    if _is_counted_alone():
        lower_limit(resource.RLIMIT_NPROC, _MOST_PROCESSES)
    taken = [LIMITS]
    if _is_done(lambda: prctl(_SET_DUMPABLE, 0)):
        taken.append(TRACES)
    if _is_done(lambda: prctl(_SET_NO_NEW_PRIVS, 1)):
        taken.append(PRIVILEGES)
    # A sanitizer traces its own process at the end.
    if sanitizer_of_process() is None and _is_done(lambda: refuse_needless_calls(_machines())):
        taken.append(CALLS)
    return taken


def limit_reach(profile: Profile, own: Iterable[str]) -> list[str]:
    """Leave no more of files, network and other processes than a plugin needs; as above.

    Args:
        profile: What is left.
        own: Files of the plugin; it may read what is in their directories.
    """
    files = None
    if profile.files:
        os.environ.pop("XDG_RUNTIME_DIR", None)  # where others keep their sockets
        files = (*profile.read, *_of_interpreter(), *_of_plugin(own)), profile.write
    try:
        limited = set(restrict_reach(files, network=profile.network))
    except OSError:  # a container forbids it
        limited = set()
    if not profile.network and _is_done(lambda: refuse_network_sockets(_machines())):
        limited.add("network")
    names = {"files": FILES, "network": NETWORK, "processes": PROCESSES}
    return [text for name, text in names.items() if name in limited]


def _machines() -> dict[str, Any]:
    machines: dict[str, Any] = _known()["system_calls"]
    return machines


def _is_done(step: Callable[[], bool | int]) -> bool:
    try:
        return step() is not False
    except OSError:  # the kernel does not have it, or a container forbids it
        return False


def _is_counted_alone() -> bool:
    """Return whether the kernel counts the processes here, and not all of the user's."""
    try:
        with open("/proc/self/uid_map", "rb") as numbers:
            return [line.split()[2] for line in numbers] == [b"1"]
    except OSError:
        return False


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
    told = {
        FILES: f"has {FILES}: `worker_directories` in the configuration names more",
        NETWORK: f"has {NETWORK}",
    }
    reasons = [text for name, text in told.items() if name in given]
    return f"its worker process {', '.join(reasons)}" if reasons else ""


def rights_here() -> dict[str, str]:
    """Return, by the names of `ALL`, what keeps each from being in force here; "" for nothing."""
    version = landlock_version()
    old = (
        f"the kernel has version {version} of Landlock" if version else "the kernel has no Landlock"
    )
    machine = os.uname().machine
    known = machine in _machines()
    filters = _is_done(lambda: prctl(_GET_SECCOMP))
    no_filter = "" if filters and known else "the kernel has no seccomp"
    if not known:
        no_filter = f"the system calls of {machine} are not known"
    return {
        PRIVILEGES: "",
        TRACES: "",
        LIMITS: "",
        FILES: "" if version >= 1 else old,
        NETWORK: no_filter and ("" if version >= 4 else old),  # noqa: PLR2004  (the version with it)
        PROCESSES: "" if version >= 6 else old,  # noqa: PLR2004  (likewise)
        CALLS: no_filter,
    }
