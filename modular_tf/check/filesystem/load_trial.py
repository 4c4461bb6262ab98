"""Loading a library in a child process, to know what the checks of it may dare."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from modular_tf.check.calls import listen
from modular_tf.check.filesystem.library_session import RegistrationMemory
from modular_tf.errors import ModularTFError
from modular_tf.loading.binding import map_file
from modular_tf.processes.child import flush_output

if TYPE_CHECKING:
    from modular_tf.check.target import Target

_WORDS_SHOWN = 400
_MAPPED, _RETURNED, _TAKEN, _REPEATED = "mapped", "returned", "taken", "repeated"
_REFUSED = "refused"
_FATAL = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)


@dataclass(frozen=True, slots=True)
class LoadTrial:
    """The steps of loading that were completed.

    Attributes:
        mapped: The dynamic linker was done with it.
        returned: `TF_InitPlugin` returned.
        taken: The host read what it left, and freed it.
        repeated: `TF_InitPlugin` returned when it was called once more.
        refused: The host found a step wrong, and nothing else came of it.
        threads: How many threads ran more after mapping than before.
        seconds: How long mapping took.
        words: What was printed up to then, shortened.
    """

    mapped: bool = False
    returned: bool = False
    taken: bool = False
    repeated: bool = False
    refused: bool = False
    threads: int = 0
    seconds: float = 0.0
    words: str = ""


def try_loading(target: Target, limit_s: float) -> LoadTrial:
    """Load the library of a target in a child process, which ends with it. [one thread]

    Args:
        target: The library.
        limit_s: How many seconds it may take before the child is killed.
    """
    words = os.memfd_create("modular_tf_words")
    reader, writer = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            _load_and_exit(target, writer, words)
        os.close(writer)
        told = _read_until_end(reader, child, limit_s)
        return _trial_of(told, os.pread(words, _WORDS_SHOWN, 0))
    finally:
        os.close(reader)
        os.close(words)


def _load_and_exit(target: Target, writer: int, words: int) -> NoReturn:
    """Load the library, and report each step when it is done."""
    try:
        _become_expendable(writer, words)
        threads, start = _threads(), time.monotonic()
        library = map_file(target.path, target.companions, target.absent)
        seconds = time.monotonic() - start
        flush_output()
        said = os.fstat(words).st_size
        _tell(writer, f"{_MAPPED} {_threads() - threads} {seconds} {said}")
        registration = RegistrationMemory(library)
        _tell(writer, _RETURNED)
        registration.take()
        _tell(writer, _TAKEN)
        RegistrationMemory(library)
        _tell(writer, _REPEATED)
    except ModularTFError:
        _tell(writer, _REFUSED)
    finally:
        os._exit(0)


def _become_expendable(writer: int, words: int) -> None:
    """Let whatever happens here show nowhere but in these two files."""
    listen(lambda _: None)
    for number in _FATAL:
        signal.signal(number, signal.SIG_DFL)
    for stream in (1, 2):
        os.dup2(words, stream)
    # The watcher of this process reads of its end through one of the others.
    kept = {0, 1, 2, writer, words}
    for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
        with suppress(OSError):
            os.close(descriptor)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _tell(writer: int, step: str) -> None:
    os.write(writer, f"{step}\n".encode())


def _read_until_end(reader: int, child: int, limit_s: float) -> str:
    """Return what the child told until it ended, or its time did, which ends it."""
    end = time.monotonic() + limit_s
    told = b""
    while (left := end - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        piece = os.read(reader, 4096)
        if not piece:
            break
        told += piece
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
    return told.decode()


def _trial_of(told: str, words: bytes) -> LoadTrial:
    steps = {line.split()[0]: line.split()[1:] for line in told.splitlines()}
    if _MAPPED not in steps:
        return LoadTrial(refused=_REFUSED in steps)
    threads, seconds, said = steps[_MAPPED]
    return LoadTrial(
        mapped=True,
        returned=_RETURNED in steps,
        taken=_TAKEN in steps,
        repeated=_REPEATED in steps,
        refused=_REFUSED in steps,
        threads=int(threads),
        seconds=float(seconds),
        words=words[: int(said)].decode("utf-8", "replace"),
    )
