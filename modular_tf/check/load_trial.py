"""Loading a library in a child process, to know what the checks of it may dare."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from modular_tf.check.calls import listen
from modular_tf.errors import ModularTFError
from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import try_plugins
from modular_tf.loading.binding import map_file
from modular_tf.loading.task import Task
from modular_tf.processes.child import Report, become_child, dump_no_core, flush_output
from modular_tf.processes.descendants import adopt_orphans
from modular_tf.processes.ending import ChildEnding
from modular_tf.processes.watched_child import WatchedChild

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.target import Target
    from modular_tf.discovery.candidate import LoadFacts
    from modular_tf.discovery.probe import Probe
    from modular_tf.first_contact.finding import Finding

_OUTPUT = 1
_WORDS_SHOWN = 400


def first_contact_of(probe: Probe, facts: LoadFacts, limits: Limits | None = None) -> Finding:
    """Try a library as a host does before it loads it."""
    task = Task(
        plugin=probe.candidate.name,
        file=probe.candidate.path,
        companions=facts.companions,
        absent=facts.absent,
        kinds=tuple(sorted(kind.value for kind in facts.kinds)),
    )
    (finding,) = try_plugins([task], limits or Limits())
    return finding


class LoadTrial(NamedTuple):
    """The steps of loading that were completed."""

    mapped: bool = False  # the dynamic linker was done with it
    returned: bool = False  # `TF_InitPlugin` returned
    taken: bool = False  # the host read what it left, and freed it
    repeated: bool = False  # `TF_InitPlugin` returned when it was called once more
    refused: bool = False  # the host found a step wrong, and nothing else came of it
    threads: int = 0  # how many threads ran more after mapping than before
    seconds: float = 0.0  # how long mapping took
    words: str = ""  # what was printed until it was mapped, shortened


def try_loading(target: Target, limit_s: float) -> LoadTrial:
    """Load the library of a target in a child process, which is killed after `limit_s` seconds."""
    adopt_orphans()
    trial = LoadTrial()

    def take(entry: dict[str, Any]) -> None:
        nonlocal trial
        trial = trial._replace(**entry)

    child = WatchedChild(partial(_load, target), None, ChildEnding(), seconds=limit_s, take=take)
    while not child.is_over():
        child.listen()
    child.end(())
    return trial


def _load(target: Target, ends: Sequence[int], parent: int) -> NoReturn:
    """Load the library, and report each step when it is done."""
    from modular_tf.check.filesystem.library_session import (  # noqa: PLC0415  (of one kind)
        RegistrationMemory,
    )

    try:
        words = os.memfd_create("modular_tf_words")
        become_child((words, words, ends[2]), parent)
        dump_no_core()
        report = Report()
        listen()
        threads, start = _threads(), time.monotonic()
        library = map_file(target.path, target.companions, target.absent)
        step = {"threads": _threads() - threads, "seconds": time.monotonic() - start}
        flush_output()
        said = os.pread(_OUTPUT, _WORDS_SHOWN, 0).decode("utf-8", "replace")
        report.write({"mapped": True, "words": said, **step})
        registration = RegistrationMemory(library)
        report.write({"returned": True})
        registration.take()
        report.write({"taken": True})
        RegistrationMemory(library)
        report.write({"repeated": True})
    except ModularTFError:
        report.write({"refused": True})
    finally:
        os._exit(0)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))
