"""The library of a filesystem plugin, and what its entry point leaves, ready for checks."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from modular_tf.check.call_journal import CallJournal
from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.registration_memory import RegistrationMemory
from modular_tf.check.load_trial import first_contact_of, try_loading
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.discovery.candidate import Candidate, LoadFacts, Source
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import probe
from modular_tf.first_contact.finding import Limits
from modular_tf.loading.binding import map_file
from modular_tf.loading.filesystem_tables import FilesystemTables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.filesystem.registration_memory import Entry
    from modular_tf.check.load_trial import LoadTrial
    from modular_tf.check.target import Target
    from modular_tf.discovery.probe import Probe
    from modular_tf.first_contact.finding import Finding
    from modular_tf.loading.filesystem_tables import FilesystemOffer, RefusedTables
    from modular_tf.native.library import Library
    from modular_tf.rules import Violation


_TRIAL_S = 10.0


class FilesystemLibraryStage:
    """A library that is mapped when the first check needs it; see `Stage`.

    What a check cannot survive is tried in a child before: a check that is about something else
    is blocked by it. An option of the target: `load_seconds`, which is how long loading may take.

    Attributes:
        target: What is checked.
        journal: Records each call.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.journal = CallJournal()
        self._library: Library | None = None

    @property
    def calls(self) -> list[str]:
        """The calls of the current check."""
        return self.journal.calls

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return None: checks of a library need no slots."""
        del needs
        return None

    @contextmanager
    def ground(self, check: Check) -> Iterator[LibraryGround]:
        """Return what the check's function is given."""
        yield LibraryGround(self, Random(f"{self.target.seed} {check.id}"))  # noqa: S311

    def close(self) -> None:
        """Do nothing: a library is never unmapped."""

    @computed_once
    def probe(self) -> Probe:
        """What the bytes of the file say."""
        return probe(_candidate(self.target.path), host_exports())

    @computed_once
    def trial(self) -> LoadTrial:
        """How far loading came in a child; to be asked before it is mapped here."""
        return try_loading(self._to_load, self._load_seconds(_TRIAL_S))

    @computed_once
    def first_contact(self) -> Finding:
        """What loading it as a host does came to, in a child that is watched."""
        limits = Limits(seconds=self._load_seconds(Limits().seconds))
        return first_contact_of(self.probe, LoadFacts.of(self.probe), limits)

    def _load_seconds(self, default: float) -> float:
        return self.target.options.load_seconds or default

    @computed_once
    def _to_load(self) -> Target:
        """The target with all that mapping it takes, where that is not known yet."""
        facts = LoadFacts.of(self.probe)
        companions = self.target.companions or facts.companions
        return replace(
            self.target, companions=companions, absent=self.target.absent or facts.absent
        )

    @property
    def is_mapped(self) -> bool:
        """Whether the library is mapped here."""
        return self._library is not None

    @property
    def is_registered(self) -> bool:
        """Whether `TF_InitPlugin` has returned here."""
        return "registration" in vars(self)

    def map(self) -> Library:
        """Map the library, whatever comes of it.

        Raises:
            PluginError: It cannot be mapped (LD-050).
        """
        if self._library is None:
            target, call = self._to_load, f"dlopen({os.path.basename(self.target.path)})"
            self.journal.enter(call)
            self._library = map_file(target.path, target.companions, target.absent)
            self.journal.leave(call)
        return self._library

    def register(self) -> RegistrationMemory:
        """Call `TF_InitPlugin`, whatever comes of it.

        Raises:
            PluginError: It threw, or is no function.
        """
        library = self.map()
        self.journal.enter("TF_InitPlugin(&info)")
        registration = RegistrationMemory(library)
        self.journal.leave("TF_InitPlugin(&info)", f"{registration.num_schemes} schemes")
        return registration

    @computed_once
    def registration(self) -> RegistrationMemory:
        """What the first call of `TF_InitPlugin` left."""
        return self.register()

    @computed_once
    def offer(self) -> FilesystemOffer:
        """What the host makes of what the first call left; it is freed."""
        registration = self.registration
        self.journal.enter("plugin_memory_free")
        return registration.take()


class LibraryGround:
    """What a check of a filesystem library is given.

    Attributes:
        target: What is checked.
        random: Seeded by the run's seed and the check's id.
    """

    def __init__(self, stage: FilesystemLibraryStage, random: Random) -> None:
        self.target = stage.target
        self.random = random
        self._stage = stage

    @property
    def probe(self) -> Probe:
        """What the bytes of the file say; nothing of it runs."""
        return self._stage.probe

    @property
    def trial(self) -> LoadTrial:
        """How far loading came in a child."""
        return self._stage.trial

    def first_contact(self) -> Finding:
        """Return what loading it as a host does came to, in a child that is watched.

        Raises:
            Blocked: The file says that it will not load.
        """
        self.require_loadable()
        return self._stage.first_contact

    @property
    def journal(self) -> CallJournal:
        """What a check tells of the calls that it makes itself."""
        return self._stage.journal

    def map(self) -> Library:
        """Map the library, which may end the process.

        Raises:
            PluginError: It cannot be mapped (LD-050).
        """
        return self._stage.map()

    def require_loadable(self) -> None:
        """Go on where nothing in the file speaks against mapping it.

        Raises:
            Blocked: Something does.
        """
        if not os.path.lexists(self.target.path):
            raise Blocked("there is no such file: see LD-001")
        broken = [problem.rule_id for problem in self.probe.problems if problem.is_error]
        if broken:
            raise Blocked(f"the library will not load here: see {', '.join(broken)}")

    def library(self) -> Library:
        """Return the mapped library.

        Raises:
            Blocked: It cannot be mapped, or ends the process that maps it.
        """
        self.require_loadable()
        if not self._stage.is_mapped and not self.trial.mapped:
            raise Blocked("the library cannot be mapped: see LD-050")
        return self.map()

    def call_init_plugin(self) -> RegistrationMemory:
        """Call `TF_InitPlugin` for the first time, which may end the process.

        Raises:
            Blocked: The library cannot be mapped.
            PluginError: It threw, or is no function.
        """
        self.library()
        return self._stage.registration

    def registration(self) -> RegistrationMemory:
        """Return what the first call of `TF_InitPlugin` left; its blocks may be freed already.

        Raises:
            Blocked: It did not return.
        """
        self.library()
        if not self._stage.is_registered and not self.trial.returned:
            raise Blocked("TF_InitPlugin does not return: see FS-130, LD-051 and LD-052")
        return self._stage.registration

    def second_registration(self) -> RegistrationMemory:
        """Call `TF_InitPlugin` again, which may end the process.

        Raises:
            Blocked: What the first call left ends it.
        """
        self.offer()
        return self._stage.register()

    def fresh_registration(self) -> RegistrationMemory:
        """Return what another call of `TF_InitPlugin` leaves, for the check to do with as it likes.

        Raises:
            Blocked: It did not return, at the first or at the second call.
        """
        self.registration()
        if self.trial.taken and not self.trial.repeated:
            raise Blocked("TF_InitPlugin does not return when it is called again: see FS-106")
        return self._stage.register()

    def entries(self) -> tuple[Entry, ...]:
        """Return copies of the entries of the first call.

        Raises:
            Blocked: There is none.
        """
        entries = self.registration().entries
        if not entries:
            raise Blocked("TF_InitPlugin leaves no scheme: see FS-003, FS-004 and FS-005")
        return entries

    def offer(self) -> FilesystemOffer:
        """Return what the host makes of what `TF_InitPlugin` leaves.

        Raises:
            Blocked: That ends the process.
        """
        self.registration()
        if not self.trial.taken:
            raise Blocked("the host cannot take what TF_InitPlugin leaves: see FS-129")
        return self._stage.offer

    def tables(self) -> list[FilesystemTables]:
        """Return the tables of the schemes that the host accepts.

        Raises:
            Blocked: It accepts none.
        """
        accepted = [found for found in self.offer().entries if isinstance(found, FilesystemTables)]
        if not accepted:
            raise Blocked("the host accepts no scheme of the plugin")
        return accepted

    def violations(self) -> list[tuple[str, Violation]]:
        """Return what the host finds wrong, with the scheme that it concerns, or "".

        Raises:
            Blocked: It cannot be asked.
        """
        offer = self.offer()
        whole = [("", violation) for violation in offer.violations]
        return whole + [
            (_name_of(entry), violation)
            for entry in offer.entries
            for violation in _violations_of(entry)
        ]


def _name_of(entry: FilesystemTables | RefusedTables) -> str:
    return "scheme that cannot be read" if entry.scheme is None else f"scheme {entry.scheme!r}"


def _violations_of(entry: FilesystemTables | RefusedTables) -> tuple[Violation, ...]:
    return entry.warnings if isinstance(entry, FilesystemTables) else entry.violations


def _candidate(path: str) -> Candidate:
    try:
        found = os.lstat(path)
        identity = (found.st_dev, found.st_ino)
    except OSError:
        identity = (0, 0)
    name = os.path.basename(path)
    return Candidate(path, os.path.realpath(path), Source.ARGUMENT, path, None, identity, name)
