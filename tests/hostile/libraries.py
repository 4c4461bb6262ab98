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
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.plugins.matrix import Variant

_KEPT_OUT = frozenset(("rejected", "failed", "quarantined"))
_WITH_A_WARNING = frozenset(("loaded",))


class HostileLibrary(NamedTuple):
    """One library.

    Attributes:
        name: Tells it from all others.
        about: What it does.
        states: What may become of it. Where that is `loaded`, a warning has to tell of it.
        make: Builds it, in an empty folder.
        ends: How it ends the application after all its calls have returned, as a line on standard
            error says; "" where the application goes on.
        times: How often it does that before the next application is looked at.
    """

    name: str
    about: str
    states: frozenset[str]
    make: Callable[[Path], Path]
    ends: str = ""
    times: int = 1


_ENDS_THE_TRIAL = {
    "CRASH": "reads memory that is not there",
    "CALL_NULL": "calls a null function",
    "OVERFLOW": "overflows the stack",
    "OVERFLOW_IN_A_THREAD": "overflows the stack of a thread",
    "CRASH_IN_THREADS": "crashes in eight threads at once",
    "ABORT": "aborts",
    "EXIT_0": "ends the process as if all were well",
    "EXIT_3": "ends the process with status 3",
    "LEAVE_3": "ends the process without its exit handlers",
    "LEAVE_0": "ends the process with status 0, whatever status was asked for",
    "LAST_WORDS": "writes escape sequences to standard error and ends the process",
    "HANG": "never returns",
    "SPIN": "never returns, and takes a whole processor",
    "KILLED": "kills its process",
    "INTERRUPT": "interrupts its process",
    "TERMINATE": "terminates its process",
    "THROW": "throws a C++ exception",
    "CLOSE_ALL": "closes all descriptors",
    "CLOSE_OUTPUT": "closes standard output",
    "ALLOCATE": "keeps a gibibyte of memory",
    "TOUCH_AND_FREE": "takes a gibibyte of memory for a moment",
    "ALLOCATE_ALL": "asks for all memory",
    "FORK": "leaves a process behind",
    "DAEMON": "leaves a daemon behind",
    "FORK_MANY": "starts 40 processes",
    "FORK_AND_CRASH": "leaves a daemon behind and crashes",
    "ESCAPE": "leaves a daemon behind and kills its ancestors",
    "KILL_PARENT": "kills the process that watches over it",
    "STOP_PARENT": "stops the process that watches over it",
    "KILL_ANCESTORS": "kills all its ancestors that it can reach",
    "CATCH_INTERRUPT": "takes SIGINT for itself",
    "DEFAULT_PIPE": "has SIGPIPE end the process",
    "IGNORE_CHILDREN": "takes the exit status of all children away",
    "BLOCK_INTERRUPT": "blocks SIGINT",
    "CHANGE_LOCALE": "changes the locale",
    "FORGE": "reports in place of the trial, in a wrong shape",
    "FORGE_CALL": "reports a call whose name clears the terminal",
    "FORGE_CHANGE": "reports a change of a million characters",
    "FORGE_EXCUSE": "reports that it could not be tried",
    "SHUT_DOWN": "shuts the socket down that its trial reports by",
    "NO_FILES": "lets the process open no more files",
    "NO_FILE_SIZE": "lets the process write no more files",
    "NO_ADDRESSES": "lets the process map no more memory",
    "ALARM": "sets an alarm that ends the process later",
    "TIMER": "sets a timer that ends the process later",
    "FATAL_THREAD_TIMER": "sets a timer that sends one thread a signal that ends the process",
    "WAIT_FOR_ANY": "takes the exit status of any child",
    "WAIT_IN_A_THREAD": "has a thread take the exit status of any child",
    "ALL_WATCHES": "takes all inotify instances of the user",
    "MOST_DESCRIPTORS": "keeps most descriptors",
    "MOST_MAPPINGS": "keeps most mappings of memory",
    "LEAVE_NETWORK": "moves the process into a network of its own",
    "LEAVE_PIDS": "moves later children into a namespace of their own",
    "HIDE_PROC": "hides /proc",
    "FILTER": "filters system calls",
    "FILTER_OPEN": "lets the process open no files by a filter of system calls",
    "TRACE_ME": "has the process traced",
    "END_WITH_PARENT": "lets the process end with its parent",
    "CRASH_AT_FORK": "crashes at each later fork",
}
_LEAVES_A_TRACE = {
    "NOISE": "writes megabytes to standard output",
    "UNFLUSHED": "leaves half a line in the buffer of standard output",
    "CHAIN_INTERRUPT": "handles SIGINT and calls who did before",
    "CATCH_FPE": "handles SIGFPE",
    "CHANGE_DIRECTORY": "changes the working directory",
    "CHANGE_UMASK": "changes the umask",
    "CHANGE_ENVIRONMENT": "sets an environment variable",
    "FLUSH_TO_ZERO": "has the processor take denormal numbers for zero",
    "TRAP_INVALID": "has invalid floating-point operations end the process",
    "TRAP_INVALID_X87": "has invalid operations of the x87 unit end the process",
    "ROUND_UP": "has the processor round up",
    "NO_QUEUES": "lets the process have no message queues",
    "HANDLED_ALARM": "leaves an alarm running that it handles",
    "IGNORED_TIMER": "leaves a timer running whose signal is ignored",
    "THREAD_TIMER": "leaves a timer running that calls a function in a thread of its own",
    "WATCHES": "keeps many inotify instances",
    "DESCRIPTORS": "keeps many descriptors",
    "MAPPINGS": "keeps many mappings of memory",
    "CLOSE_ON_EXEC": "has standard output closed in programs that are started later",
    "INHERIT": "lets programs that are started later inherit all descriptors",
    "AFFINITY": "takes processors away",
    "NON_BLOCKING": "opens standard output anew without blocking",
    "PRELOAD": "has programs that are started later load a library",
}
_OWN_THREAD, _AT_EXIT = "a thread of its own", "an exit handler or destructor"
_ENDS_LATER = {
    "CRASH_LATER": ("crashes in a thread of its own", "SIGSEGV", _OWN_THREAD),
    "ABORT_LATER": ("aborts in a thread of its own", "SIGABRT", _OWN_THREAD),
    "EXIT_LATER": ("ends the process in a thread of its own", "exit(0)", _OWN_THREAD),
    "CRASH_AT_EXIT": ("crashes in an exit handler", "SIGSEGV", _AT_EXIT),
    "HANG_AT_EXIT": ("hangs in an exit handler", "exit() hangs", _AT_EXIT),
    "CRASH_WHEN_UNLOADED": ("crashes in its destructor", "SIGSEGV", _AT_EXIT),
    "HANG_WHEN_UNLOADED": ("hangs in its destructor", "exit() hangs", _AT_EXIT),
}
_OVERWRITES = "OVERWRITE_TABLES_LATER"
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


def hostile_libraries() -> Iterator[HostileLibrary]:
    """Yield all of them; none is built before its `make` is called."""
    for kind in _PLACES:
        yield from _misdeeds(kind)
        yield from _variants(kind)
    yield HostileLibrary(
        "elf-two-places-of-one-page",
        "has other bytes in memory than in the segment that a reader of the file looks at",
        frozenset(("rejected",)),
        _with_two_places_of_one_page,
    )
    for check_id in sorted(UNFIT - _NO_LIBRARY):
        states = _KEPT_OUT | _WITH_A_WARNING
        make = partial(unfit_library, check_id)
        yield HostileLibrary(f"unfit-{check_id}", f"breaks {check_id}", states, make)


def _with_two_places_of_one_page(folder: Path) -> Path:
    path = folder / "libpages.so"
    shown, other = (ElfBuilder(needed=(name,), undefined=()) for name in ("libm.so.6", "libx.so.6"))
    path.write_bytes(on_one_page(shown, other))
    return path


def _misdeeds(kind: str) -> Iterator[HostileLibrary]:
    for states, deeds in ((_KEPT_OUT, _ENDS_THE_TRIAL), (_WITH_A_WARNING, _LEAVES_A_TRACE)):
        for deed, about in deeds.items():
            yield _misdeed(kind, "INIT", deed, about, states)
    for place in (*_PLACES[kind], *_AT_THE_END):
        for deed in ("CRASH", "HANG"):
            yield _misdeed(kind, place, deed, _ENDS_THE_TRIAL[deed], _KEPT_OUT)
    for place in _AT_THE_END:
        for deed in ("LEAVE_0", "LEAVE_3"):
            yield _misdeed(kind, place, deed, _ENDS_THE_TRIAL[deed], _KEPT_OUT)
    for deed, (about, how, where) in _ENDS_LATER.items():
        library = _misdeed(kind, "INIT", deed, about, frozenset(("named",)))
        yield library._replace(ends=f"{how} in plugin {_name_of(deed, kind)}, {where} (")
    # Nothing says which plugin has done it.
    states = frozenset(("known to nobody",))
    library = _misdeed(kind, "INIT", "CANCEL_LATER", "cancels the main thread", states)
    name = _name_of("CANCEL_LATER", kind)
    yield library._replace(ends=f"main thread: the process ends; possibly by plugin {name} (")
    about = "overwrites the tables of other plugins, which then crash"
    library = _misdeed(kind, "INIT", _OVERWRITES, about, frozenset(("known to nobody",)))
    yield library._replace(ends="no plugin is blamed", times=3)


def _misdeed(
    kind: str, place: str, deed: str, about: str, states: frozenset[str]
) -> HostileLibrary:
    where = place.lower().replace("_", " ")
    name = f"{kind}-{deed.lower()}-{place.lower()}".replace("_", "-")
    return HostileLibrary(
        name, f"{about} (in {where})", states, lambda _: build_misdeed(deed, place, kind)
    )


def _name_of(deed: str, kind: str) -> str:
    """Return what users know it by, from the name of its file."""
    return f"{deed.lower()}_at_init" + ("" if kind == "device" else f"_of_{kind}")


def _variants(kind: str) -> Iterator[HostileLibrary]:
    """Yield the variants that do not serve, by their binaries, init functions and tables."""
    for variant in variants(kind).values():
        if variant.state in _KEPT_OUT:
            make = partial(_build, variant)
            yield HostileLibrary(f"{kind}-{variant.name}", variant.about, _KEPT_OUT, make)


def _build(variant: Variant, folder: Path) -> Path:
    del folder
    return build_plugin(variant, _SETTINGS[variant.family])
