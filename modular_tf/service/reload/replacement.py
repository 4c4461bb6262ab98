"""Swapping in the registries: a new library takes the place of the one that serves."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import AlreadyExistsError, ModularTFError
from modular_tf.rules import Violation
from modular_tf.service.registrations import Registrations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.ranking import Registration
    from modular_tf.filesystem.registry import SchemeRegistration
    from modular_tf.kernel.registry import PluginKernels


class StagedRegistrations(Registrations):
    """What a new library brings, which serves nobody before it takes the place of another one."""

    def __init__(self, old: Registrations) -> None:
        super().__init__(old.plugin, old.config, old.registries, old.reserved)
        self._old: Registrations | None = old

    def why_taken(self, scheme: str) -> Violation | None:
        """Return why it cannot have a scheme; what the old library has is free for it."""
        if self._old is None:
            return super().why_taken(scheme)
        pinned = self.why_pinned(scheme)
        if pinned is not None or scheme in self._old.scheme_places:
            return pinned
        return self.why_owned(scheme)

    def enter_scheme(self, place: SchemeRegistration) -> None:
        """Wait for the swap."""
        if self._old is None:
            super().enter_scheme(place)

    def enter_platform(self, place: Registration) -> None:
        """Check that the platform can take the place of the old one (SE-050) at the swap."""
        if self._old is None:
            super().enter_platform(place)
        else:
            self.registries.devices.check_room(place, instead_of=self._old.device_place)

    def enter_kernels(self, place: PluginKernels) -> tuple[Violation, ...]:
        """Return what is wrong with them beside what stays; they wait for the swap."""
        if self._old is None:
            return super().enter_kernels(place)
        registry = self.registries.operations.registry
        return registry.judge(place, instead_of=self._old.kernel_place)

    # -- the swap ---------------------------------------------------------------------------------

    def give_up_taken(self) -> list[Violation]:
        """Give up, and close, what others have got since this was loaded; return who has it."""
        if self._old is None:
            return []
        return [*self._give_up_schemes(), *self._give_up_platform()]

    def _give_up_schemes(self) -> Iterator[Violation]:
        for scheme, filesystem in self.filesystems.items():
            if (why := self.why_taken(scheme)) is not None:
                self.give_up(filesystem)
                yield why.at("register")

    def _give_up_platform(self) -> Iterator[Violation]:
        if (platform := self.platform) is not None:
            try:
                self.add_platform(platform)
            except ModularTFError as error:
                yield Violation.of_error(error, "register")

    def take_over(self) -> None:
        """Serve what the old library serves, in one step, and what it did not; it serves no longer.

        What somebody else has was given up before; what they got since is theirs. Can be repeated.
        """
        old = self._old
        if old is None:
            return
        for scheme, place in list(self.scheme_places.items()):
            with suppress(AlreadyExistsError):
                place.enter(instead_of=old.scheme_places.get(scheme))
        if self.device_place is not None:
            with suppress(AlreadyExistsError):
                self.registries.devices.enter(self.device_place, instead_of=old.device_place)
        if self.kernel_place is not None:
            operations = self.registries.operations.registry
            operations.enter(self.kernel_place, instead_of=old.kernel_place)
        old.withdraw()
        self._old = None
