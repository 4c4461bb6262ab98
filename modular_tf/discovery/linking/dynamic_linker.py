"""What the dynamic linker of this process would map with a library, by its own answer.

With LD_TRACE_LOADED_OBJECTS it maps a program and all that it needs, lists that and ends. None of
its code runs: no constructor, no resolver (IFUNC), no auditing library. The program is this one,
with the variables that it was started with; a library from memory needs the files in question.

The files may have been made to harm the linker: it runs in a process of its own, with limits.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from contextlib import ExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.stub_library import stub_library
from modular_tf.discovery.privileges import linker_variable
from modular_tf.errors import ElfError
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import names_shortage, raise_shortage, require_descriptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_TIMEOUT_S = 10.0
_MOST_CPU_S = 10
_MOST_ADDRESSES = 1 << 38  # of a process that maps libraries of several GiB, and touches little
_MOST_OUTPUT = 64 << 20  # a thousand libraries, each looked for in a hundred directories
# Those that decide what it finds; others could make it run code, or print something else.
_VARIABLES = ("GLIBC_TUNABLES", "LD_HWCAP_MASK", "LD_ASSUME_KERNEL")
_ORIGIN = re.compile(r"\$(?:ORIGIN(?![A-Za-z0-9_])|\{ORIGIN\})")
_AMBIGUOUS = re.compile(r"\n| => ")
_DEBUG = re.compile(r" *[0-9]+:\t(?:  trying file=(.*))?.*")
_OF_KERNEL = r"linux-(?:vdso|gate)\.so\.1 (?:=> +)?\(0x[0-9a-f]+\)$"  # a file has a path as well
_LISTED = re.compile(rf"\t(?!{_OF_KERNEL})(?:(.*) => )?(.*) \(0x[0-9a-f]+\)")
_ABSENT = re.compile(r"\t(.*) => not found")
_REFUSED = re.compile(r": error while loading shared libraries: (.*)")
_OF_LIMITS = (signal.SIGKILL, signal.SIGXCPU, signal.SIGXFSZ)


class Program(NamedTuple):
    """The program of this process."""

    path: str
    linker: str  # the dynamic linker that it names
    machine: int  # the ELF number of its processor


class Trace(NamedTuple):
    """What the dynamic linker would map."""

    # Name and path of each library, in the order in which symbols are looked up; the path is None
    # for one that is not found.
    listed: tuple[tuple[str, str | None], ...]
    tried: tuple[str, ...]  # the paths at which it looked for libraries by their names


@cache
def running_program() -> Program:
    """Return the program of this process. [any thread]"""
    try:
        path = os.readlink("/proc/self/exe")
        elf = ElfFile(path)
    except (OSError, ElfError) as error:  # such as a program that was replaced since
        raise_shortage(error)
        path = os.path.realpath(sys.executable)
        elf = ElfFile(path)
    with elf:
        linker = elf.image.interpreter()
        if linker is None or "CS_GNU_LIBC_VERSION" not in os.confstr_names:
            message = f"{path} does not run with the dynamic linker of glibc"
            raise ElfError(message, path=path, rule=rules.LINKING_BOUNDED)
        return Program(path, linker, elf.image.machine_number)


def ask_linker(
    needed: Sequence[str] = (),
    *,
    library_path: str = "",
    preload: str = "",
    already_provided: Iterable[str] = (),
) -> Trace:
    """Return what would be mapped if this program also needed some libraries. [any thread]

    `needed` are names or absolute paths, in order. `library_path` and `preload` are the values of
    LD_LIBRARY_PATH and LD_PRELOAD when this process started. Names that are
    `already_provided` are not looked for.

    Raises:
        ElfError: The linker refuses one of them (LD-002 to LD-005), or it takes too long (LD-096).
        ShortageError: No process can be started now, or it has too little memory.
    """
    program = running_program()
    subject = needed[-1] if needed else program.path
    for text in (program.path, library_path, *needed):
        require_readable(text, subject)
    stubs = [stub_library(name, (), program.machine) for name in already_provided]
    if needed:
        stubs.append(stub_library("libmodular_tf_asks.so", needed, program.machine))
    with ExitStack() as opened:
        output, *fds = (_in_memory(data, opened) for data in (b"", *stubs))
        own = [f"/proc/self/fd/{fd}" for fd in fds]
        origin = os.path.dirname(program.path)
        environment = {
            **{name: linker_variable(name, os.environ) for name in _VARIABLES},
            "LD_TRACE_LOADED_OBJECTS": "1",
            "LD_DEBUG": "libs",
            "LD_PRELOAD": " ".join((preload, *own)),
            "LD_LIBRARY_PATH": _ORIGIN.sub(lambda _: origin, library_path),
        }
        environment = {name: value for name, value in environment.items() if value}
        status = _run(program, environment, fds, output, subject)
        lines = os.fsdecode(os.pread(output, _MOST_OUTPUT, 0)).split("\n")
    tried = [found[1] for line in lines if (found := _DEBUG.fullmatch(line)) and found[1]]
    # The status is lost where the application ignores SIGCHLD, or waits for any child.
    if status or not any(map(_LISTED.fullmatch, lines)):
        raise _refusal(status, lines, needed, tried)
    listed: list[tuple[str, str | None]] = []
    for line in lines:
        if found := _LISTED.fullmatch(line):
            path = found[2]
            listed += [(found[1] or path, absolute(path))] if path not in own else []
        elif found := _ABSENT.fullmatch(line):
            listed.append((found[1], None))
    return Trace(tuple(listed), tuple(dict.fromkeys(path.removeprefix("./") for path in tried)))


def require_readable(text: str, path: str) -> None:
    """Raise `ElfError` (LD-096) for a name or path that the linker's output cannot show.

    It has a line break, or an arrow as the linker writes it.
    """
    if _AMBIGUOUS.search(text):
        message = f"{path}: the dynamic linker's list of libraries is ambiguous for {text!r}"
        raise ElfError(message, path=path, rule=rules.LINKING_BOUNDED)


def _in_memory(data: bytes, opened: ExitStack) -> int:
    try:
        fd = os.memfd_create("modular_tf", os.MFD_CLOEXEC)
        opened.callback(os.close, fd)
        os.write(fd, data)
    except OSError as error:
        raise_shortage(error)
        raise
    return fd


def absolute(path: str) -> str:
    """Return the absolute form of a path, with the links in it."""
    if path.startswith("/"):
        return path
    try:
        return os.path.join(os.getcwd(), path.removeprefix("./"))
    except FileNotFoundError:  # the current directory is gone
        return path


def _run(
    program: Program, environment: Mapping[str, str], fds: Sequence[int], output: int, subject: str
) -> int:
    """Return the exit status of the linker."""
    import resource  # noqa: PLC0415  (known plugins need none of this)
    import subprocess  # noqa: PLC0415

    own = os.geteuid(), os.getegid()  # else variables would not count where the user was changed
    user, group = own if own != (os.getuid(), os.getgid()) else (None, None)
    try:
        process = subprocess.Popen(  # noqa: S603  (the linker that this program names)
            [program.linker, program.path],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=fds,
            user=user,
            group=group,
        )
    except OSError as error:
        raise_shortage(error)
        message = f"{subject}: what it needs is unknown, {program.linker} cannot run: {error}"
        raise ElfError(message, path=subject, rule=rules.LINKING_BOUNDED) from error
    try:
        for kind, most in (
            (resource.RLIMIT_CPU, _MOST_CPU_S),
            (resource.RLIMIT_AS, _MOST_ADDRESSES),
            (resource.RLIMIT_FSIZE, _MOST_OUTPUT),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(OSError, ValueError):  # it has ended, or has lower limits
                resource.prlimit(process.pid, kind, (most, most))
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(_TIMEOUT_S)
            if -status not in _OF_LIMITS and os.fstat(output).st_size < _MOST_OUTPUT:
                return status
            own_most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
            if -status == signal.SIGXFSZ and 0 <= own_most < _MOST_OUTPUT:
                raise_shortage(OSError(errno.EFBIG, os.strerror(errno.EFBIG)))
    finally:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # it may wait for a file system
            process.wait(1)
    message = f"linking {os.path.basename(subject)} takes the dynamic linker too long"
    raise ElfError(message, path=subject, rule=rules.LINKING_BOUNDED)


def _refusal(
    status: int, lines: Iterable[str], needed: Sequence[str], tried: Sequence[str]
) -> ElfError:
    """Return why the linker listed nothing: by the file that it names, else by the last ones."""
    reason = next((found[1] for line in lines if (found := _REFUSED.search(line))), "")
    if names_shortage(reason):
        require_descriptor()
        raise_shortage(MemoryError(reason))
    if reason:
        named = (path for path in (*tried, *needed) if reason.startswith(f"{path}: "))
        files = [max(named, key=len, default=reason.partition(": ")[0])]
    else:  # it ended by a signal
        reason = f"it ends with status {status}"
        files = [*needed[-1:], *reversed(tried)] or [running_program().path]
    for path in map(absolute, files):
        try:
            with ElfFile(path) as elf:
                elf.require_shared_object()
                elf.find("")  # reads the hash table, in which the linker looks as well
        except ElfError as error:
            if len(files) == 1 or error.rule == rules.WHOLE_ELF:
                return error
    path = absolute(files[0])
    why = f"the dynamic linker refuses it: {reason}"
    message = f"{os.path.basename(path)} is cut off or damaged: {why}"
    return ElfError(message, path=path, rule=rules.WHOLE_ELF)
