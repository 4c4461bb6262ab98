"""The library of a kernel plugin, whose TF_InitKernel is called when a check needs it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.check.call_journal import CallJournal
from modular_tf.check.device.raw_platform import read_tables
from modular_tf.check.expectation import Blocked
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.errors import ModularTFError
from modular_tf.kernel.registry import KernelRegistry, plugin_kernels
from modular_tf.loading.binding import map_file
from modular_tf.loading.device_loader import ENTRY_POINT
from modular_tf.loading.kernel_loader import KERNEL_INIT, init_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.target import Target
    from modular_tf.loading.kernel_loader import KernelOffer
    from modular_tf.native.library import Library
    from modular_tf.rules import Violation

_NAME = "plugin"


class KernelLibraryStage:
    """A library, initialised once for all checks of one process; see `Stage`.

    Attributes:
        target: What is checked.
        journal: The calls.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.journal = CallJournal()

    @property
    def calls(self) -> list[str]:
        """The calls of the current check."""
        return self.journal.calls

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return None: there are no slots."""
        del needs
        return None

    @contextmanager
    def ground(self, check: Check) -> Iterator[KernelLibraryStage]:
        """Return what the check's function is given: this."""
        del check
        yield self

    def close(self) -> None:
        """Do nothing: what was registered stays for the life of the process."""

    @computed_once
    def offer(self) -> KernelOffer:
        """What the library registers.

        Raises:
            Blocked: It cannot be mapped.
        """
        self.journal.enter(f"dlopen({os.path.basename(self.target.path)})")
        try:
            library = map_file(self.target.path, self.target.companions, self.target.absent)
        except ModularTFError as error:
            raise Blocked(error.message) from None
        self._init_devices(library)
        call = f"{KERNEL_INIT}()"
        self.journal.enter(call)
        offer = init_kernels(library, plugin=_NAME)
        self.journal.leave(call, f"{len(offer.kernels)} kernels")
        return offer

    def _init_devices(self, library: Library) -> None:
        """Initialise the devices of the same library, which come before its kernels."""
        if library.symbol(ENTRY_POINT) is not None:
            read_tables(library, self.journal)

    @computed_once
    def violations(self) -> tuple[Violation, ...]:
        """What a host finds wrong with that."""
        kernels = plugin_kernels(self.offer, _NAME)
        entered = () if kernels is None else KernelRegistry().enter(kernels)
        return (*self.offer.violations, *entered)
