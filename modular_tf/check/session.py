"""What the checks of one process are tried on: a plugin that is loaded, or its library alone."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, cast

from modular_tf.check.calls import CallJournal
from modular_tf.check.expectation import Blocked
from modular_tf.check.outcome import Pass
from modular_tf.errors import ModularTFError
from modular_tf.filesystem.workarounds import import_stores
from modular_tf.loading.binding import map_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.check.check import Check
    from modular_tf.check.target import Target
    from modular_tf.native.library import Library
    from modular_tf.service.service import PluginService

_STATE = ("XDG_STATE_HOME", "XDG_CACHE_HOME")


class Session:
    """A plugin, or its library alone, for all checks of one process. [one thread]

    The process may end at any call.

    Attributes:
        target: What is checked, and how it is reached.
        journal: Records each call.
        random: Seeded by the run's seed and the id of the current check.
    """

    random: Random

    def __init__(self, target: Target) -> None:
        self.target = target
        self.journal = CallJournal()

    @property
    def calls(self) -> list[str]:
        """The calls of the current check, C-like and shortened; the runner clears it."""
        return self.journal.calls

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return the first of these slots that cannot be called, None where all can."""
        del needs
        return None

    @contextmanager
    def workspace(self, check: Check) -> Iterator[Any]:
        """Return what the check's function is given, and clean up after it.

        That is the session itself, where a check leaves nothing behind.
        """
        self.random = random_for(self.target, check.id)
        yield self

    def close(self) -> None:
        """Take the plugin down; a library alone stays as it is.

        Raises `Breach` where the plugin did harm to memory meanwhile.
        """


class LibrarySession(Session):
    """A library that is mapped when a check first needs it; nothing of it is called before."""

    _library: Library | None = None

    @property
    def is_mapped(self) -> bool:
        """Whether the library is mapped here."""
        return self._library is not None

    def map(self) -> Library:
        """Return the library, which is mapped at the first call; see `mapped_library`."""
        if self._library is None:
            call = f"dlopen({os.path.basename(self.target.path)})"
            self.journal.enter(call)
            self._library = mapped_library(self.target)
            self.journal.leave(call)
        return self._library


def random_for(target: Target, check_id: str) -> Random:
    """Return random numbers that a run with the same seed repeats."""
    return Random(f"{target.seed}:{check_id}")  # noqa: S311  (nothing secret)


def mapped_library(target: Target) -> Library:
    """Map the library of a target; raise `PluginError` where it cannot be mapped (LD-050)."""
    return map_file(target.path, target.companions, target.absent)


@contextmanager
def blocked_by(kind: type[ModularTFError] = ModularTFError) -> Iterator[None]:
    """Block the check by an error of the host within the block; name the rule that was broken."""
    try:
        yield
    except kind as error:
        raise Blocked(error.message, error.rule) from error


def opened_service(target: Target, *, bundled: bool = False, **settings: Any) -> PluginService:
    """Open a service that has loaded a target's plugin, with these settings of `Config`.

    Its state is that of the target's scratch directory: a process of checks may end at any call,
    and the mark that this leaves would put the plugin into the user's quarantine.
    """
    from modular_tf.discovery.trust.policy import TrustPolicy  # noqa: PLC0415  (through the host)
    from modular_tf.service.configuration import Config  # noqa: PLC0415  (likewise)
    from modular_tf.service.service import PluginService  # noqa: PLC0415  (likewise)

    config = Config(
        first_contact="never",
        load="eager",
        # The user who has a plugin checked trusts it: it ran when the checks were planned.
        trust=TrustPolicy(allow_writable=("*",)),
        # The next process of a random sequence must not find the plugin in quarantine for the last.
        report_ended_calls=False,
        **settings,
    )
    with temporary_state(target.scratch):
        service = PluginService(config=config, bundled=bundled)
        service.load(target.path)
    return service


@contextmanager
def temporary_state(scratch: str) -> Iterator[None]:
    """Have the state of services within the block below a directory; "" for the user's own."""
    before = {name: os.environ.get(name) for name in _STATE}
    os.environ.update({name: os.path.join(scratch, name) for name in _STATE} if scratch else {})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_SESSIONS: Mapping[tuple[str, bool], tuple[str, str]] = {
    ("library", True): ("filesystem.library_session", "FilesystemLibrary"),
    ("filesystem", True): ("filesystem.library_session", "FilesystemLibrary"),
    ("filesystem", False): ("filesystem.session", "FilesystemSession"),
    ("device", True): ("device.session", "DeviceLibrary"),
    ("device", False): ("device.session", "DeviceSession"),
    ("kernel", True): ("kernel.session", "KernelLibrary"),
    ("kernel", False): ("kernel.session", "KernelSession"),
}
"""Module and class by the target's kind, and by whether its library alone is tried."""


def session_of(target: Target) -> Session:
    """Load what a target names, in this process; `close` takes it down.

    Raises `Blocked` or `ModularTFError` where that fails.
    """
    module, name = _SESSIONS[target.kind, target.reached is Pass.LIBRARY]
    made = getattr(import_module(f"modular_tf.check.{module}"), name)(target)
    return cast("Session", made)


def import_sessions() -> None:
    """Import what making a session would import, in a process whose forks make them.

    A session whose extra is not installed fails where it is made.
    """
    modules = {f"modular_tf.check.{module}" for module, _ in _SESSIONS.values()}
    for module in (*sorted(modules), "modular_tf.service.service"):
        with suppress(ImportError):
            import_module(module)
    import_stores()
