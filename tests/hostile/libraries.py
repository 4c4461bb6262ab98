"""The hostile libraries: what each does, and what may become of it.

They are built from what other tests have: the misdeeds of first contact, the defective variants of
the fixture plugins, and files that are no plugins.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.check.unfit_libraries import UNFIT, unfit_library
from tests.discovery.elf_builder import ElfBuilder, on_one_page
from tests.first_contact.conftest import build_misdeed
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_KEPT_OUT = frozenset(("rejected", "failed", "quarantined"))
_WITH_A_WARNING = frozenset(("loaded",))


class HostileLibrary(NamedTuple):
    """One library.

    Attributes:
        name: Tells it from all others.
        states: What may become of it. Where that is `loaded`, a warning has to tell of it.
        make: Builds it, in an empty folder.
        ends: How it ends the application after all its calls have returned, as a line on standard
            error says; "" where the application goes on.
        times: How often it does that before the next application is looked at.
    """

    name: str
    states: frozenset[str]
    make: Callable[[Path], Path]
    ends: str = ""
    times: int = 1


# The misdeeds, as the sources in `tests/first_contact` have them.
_ENDS_THE_TRIAL = """
    CRASH CALL_NULL OVERFLOW OVERFLOW_IN_A_THREAD CRASH_IN_THREADS ABORT EXIT_0 EXIT_3 LEAVE_3
    LEAVE_0 LAST_WORDS HANG SPIN KILLED INTERRUPT TERMINATE THROW CLOSE_ALL CLOSE_OUTPUT
    ALLOCATE TOUCH_AND_FREE ALLOCATE_ALL FORK DAEMON FORK_MANY FORK_AND_CRASH ESCAPE
    KILL_PARENT STOP_PARENT KILL_ANCESTORS CATCH_INTERRUPT DEFAULT_PIPE IGNORE_CHILDREN
    BLOCK_INTERRUPT CHANGE_LOCALE FORGE FORGE_CALL FORGE_CHANGE FORGE_EXCUSE SHUT_DOWN
    NO_FILES NO_FILE_SIZE NO_ADDRESSES ALARM TIMER FATAL_THREAD_TIMER WAIT_FOR_ANY
    WAIT_IN_A_THREAD ALL_WATCHES MOST_DESCRIPTORS MOST_MAPPINGS LEAVE_NETWORK LEAVE_PIDS
    HIDE_PROC FILTER FILTER_OPEN TRACE_ME END_WITH_PARENT CRASH_AT_FORK
"""
_LEAVES_A_TRACE = """
    NOISE UNFLUSHED CHAIN_INTERRUPT CATCH_FPE CHANGE_DIRECTORY CHANGE_UMASK CHANGE_ENVIRONMENT
    FLUSH_TO_ZERO TRAP_INVALID TRAP_INVALID_X87 ROUND_UP NO_QUEUES HANDLED_ALARM IGNORED_TIMER
    THREAD_TIMER WATCHES DESCRIPTORS MAPPINGS CLOSE_ON_EXEC INHERIT AFFINITY NON_BLOCKING
    PRELOAD
"""
_ENDS_LATER = {
    "CRASH_LATER": "SIGSEGV in plugin {}, a thread of its own (",
    "ABORT_LATER": "SIGABRT in plugin {}, a thread of its own (",
    "EXIT_LATER": "exit(0) in plugin {}, a thread of its own (",
    "CRASH_AT_EXIT": "SIGSEGV in plugin {}, an exit handler or destructor (",
    "HANG_AT_EXIT": "exit() hangs in plugin {}, an exit handler or destructor (",
    "CRASH_WHEN_UNLOADED": "SIGSEGV in plugin {}, an exit handler or destructor (",
    "HANG_WHEN_UNLOADED": "exit() hangs in plugin {}, an exit handler or destructor (",
    # Nothing says which plugin has done these.
    "CANCEL_LATER": "main thread: the process ends; possibly by plugin {} (",
    "OVERWRITE_TABLES_LATER": "no plugin is blamed",
}
_SETTINGS = {
    "device": {"FIXTURE_TYPE": "HOSTILE", "FIXTURE_PLATFORM": "HOSTILE_PLATFORM"},
    "filesystem": {"FIXTURE_SCHEME": "hostile"},
}
_NO_LIBRARY = {"LD-001", "LD-002"}  # nothing is there, or a directory
_PLACES = {
    "device": ("CONSTRUCTOR", "CREATE_DEVICE", "MEMORY_USAGE", "DESTROY_DEVICE"),
    "filesystem": ("CONSTRUCTOR", "SCHEME_INIT", "CLEANUP"),
}
_AT_THE_END = ("EXIT_HANDLER", "DESTRUCTOR")


def hostile_libraries():
    """Yield all of them; none is built before its `make` is called."""
    for kind in _PLACES:
        yield from _misdeeds(kind)
        for variant in variants(kind).values():  # by their binaries, init functions and tables
            if variant.state in _KEPT_OUT:
                make = partial(_build, variant)
                yield HostileLibrary(f"{kind}-{variant.name}", _KEPT_OUT, make)
    rejected = frozenset(("rejected",))
    yield HostileLibrary("elf-two-places-of-one-page", rejected, _with_two_places_of_one_page)
    for check_id in sorted(UNFIT - _NO_LIBRARY):
        make = partial(unfit_library, check_id)
        yield HostileLibrary(f"unfit-{check_id}", _KEPT_OUT | _WITH_A_WARNING, make)


def _with_two_places_of_one_page(folder):
    path = folder / "libpages.so"
    shown, other = (ElfBuilder(needed=(name,), undefined=()) for name in ("libm.so.6", "libx.so.6"))
    path.write_bytes(on_one_page(shown, other))
    return path


def _misdeeds(kind):
    for deed in _ENDS_THE_TRIAL.split():
        yield _misdeed(kind, "INIT", deed, _KEPT_OUT)
    for deed in _LEAVES_A_TRACE.split():
        yield _misdeed(kind, "INIT", deed, _WITH_A_WARNING)
    for place in (*_PLACES[kind], *_AT_THE_END):
        for deed in ("CRASH", "HANG", *(("LEAVE_0", "LEAVE_3") if place in _AT_THE_END else ())):
            yield _misdeed(kind, place, deed, _KEPT_OUT)
    for deed, ends in _ENDS_LATER.items():
        # Users know it by a name from that of its file.
        name = f"{deed.lower()}_at_init" + ("" if kind == "device" else f"_of_{kind}")
        is_blamed = deed not in {"CANCEL_LATER", "OVERWRITE_TABLES_LATER"}
        states = frozenset(("named" if is_blamed else "known to nobody",))
        times = 3 if deed == "OVERWRITE_TABLES_LATER" else 1
        library = _misdeed(kind, "INIT", deed, states)
        yield library._replace(ends=ends.format(name), times=times)


def _misdeed(kind, place, deed, states):
    name = f"{kind}-{deed.lower()}-{place.lower()}".replace("_", "-")
    return HostileLibrary(name, states, lambda _: build_misdeed(deed, place, kind))


def _build(variant, _):
    return build_plugin(variant, _SETTINGS[variant.family])
