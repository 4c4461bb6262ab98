"""The kernels of a plugin, or its library alone, for all checks of one process."""

from __future__ import annotations

from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.check.device.by_slots import read_tables
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.kernel.kernels import Kernels, LostCallError
from modular_tf.check.kernel.samples import FORMS, NoSampleError, sample_of
from modular_tf.check.session import (
    LibrarySession,
    Session,
    blocked_by,
    opened_service,
    temporary_state,
)
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.errors import ModularTFError
from modular_tf.kernel.registry import KernelRegistry, plugin_kernels
from modular_tf.loading.device_loader import ENTRY_POINT
from modular_tf.loading.kernel_loader import KERNEL_INIT, init_kernels

if TYPE_CHECKING:
    from modular_tf.check.kernel.samples import Output, Sample
    from modular_tf.check.target import Target
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.loading.kernel_loader import KernelOffer
    from modular_tf.rules import Violation

_NAME = "plugin"
_HOST_DEVICE = "host_device"
"""The bundled plugin whose device is that on which kernels for the host's processor are tried."""


class KernelLibrary(LibrarySession):
    """A library, initialised once for all checks of one process."""

    @computed_once
    def offer(self) -> KernelOffer:
        """What the library registers; `Blocked` where it cannot be mapped."""
        with blocked_by():
            library = self.map()
        if library.symbol(ENTRY_POINT) is not None:  # its devices come before its kernels
            read_tables(library, self.journal)
        call = f"{KERNEL_INIT}()"
        self.journal.enter(call)
        offer = init_kernels(library, plugin=_NAME)
        self.journal.leave(call, f"{len(offer.kernels)} kernels")
        return offer

    @computed_once
    def violations(self) -> tuple[Violation, ...]:
        """What a host finds wrong with that."""
        kernels = plugin_kernels(self.offer, _NAME)
        entered = () if kernels is None else KernelRegistry().enter(kernels)
        return (*self.offer.violations, *entered)


class KernelSession(Session):
    """All kernels of one plugin.

    Attributes:
        kernels: Makes kernel objects and has them compute.
    """

    def __init__(self, target: Target) -> None:
        """Load the plugin and, for kernels of the host's processor, the device of this package.

        Raises:
            Blocked: It registers no kernels.
            ModularTFError: It cannot be loaded.
        """
        super().__init__(target)
        with temporary_state(target.scratch):
            self._service = opened_service(target, bundled=True)
            if not self._service.devices():
                self._service.load(_HOST_DEVICE)  # by name: only as a bundled one it is the host's
        plugin = self._service.entry(target.path).plugin.name
        ops = target.options.ops
        kernels = [
            each
            for each in self._service.kernels(plugin=plugin)
            if any(fnmatchcase(each.op, pattern) for pattern in ops)
        ]
        if not kernels:
            raise Blocked(f"the plugin registers no kernels of {', '.join(ops)}")
        self.kernels = Kernels(self._service, kernels, target.lost_calls, self.journal)

    @computed_once
    def _survey(self) -> Survey:
        return Survey(self.kernels, Random(self.target.seed))  # noqa: S311  (repeatable)

    @property
    def survey(self) -> Survey:
        """What became of one call of each kernel and more, which the first check makes.

        Raises `Unsupported` where no kernel could be called.
        """
        survey = self._survey
        if not survey.working and not survey.failures:
            why = next(iter(survey.uncalled.values()), "there are none")
            raise Unsupported(f"no kernel could be called: {why}")
        return survey

    def close(self) -> None:
        """End all kernel objects, and close the service."""
        self.kernels.close()
        self._service.close()


class Failure(NamedTuple):
    """A call that failed."""

    call: str
    error: ModularTFError

    def breaks(self, rule_id: str) -> bool:
        """Return whether a rule is the reason, or is in the answer of the host."""
        return self.error.rule == rule_id or f"(rule {rule_id})" in self.error.message


class Working(NamedTuple):
    """A sample that a kernel computes, with what came out."""

    sample: Sample
    outputs: list[Output]


class Survey:
    """What became of the samples of all kernels.

    That a kernel reports a failure for inputs which were made up is no fault: a sample may mean
    nothing to its operation.

    Attributes:
        working: One for each kernel that computes one.
        failures: All that failed.
        uncalled: Why some kernels were not called, by what they are.
    """

    def __init__(self, kernels: Kernels, numbers: Random) -> None:
        self.working: list[Working] = []
        self.failures: list[Failure] = []
        self.uncalled: dict[str, str] = {}
        for registration in kernels.kernels:
            name = f"{registration.op} ({registration.where})"
            definition = kernels.definition_of(registration)
            if definition is None:
                self.uncalled[name] = "nobody defines the operation"
            elif kernels.device_of(registration) is None:
                self.uncalled[name] = f"there is no device of type {registration.device_type}"
            else:
                self._try_forms(name, registration, definition, kernels, numbers)

    def _try_forms(
        self,
        name: str,
        registration: KernelRegistration,
        definition: OpDefinition,
        kernels: Kernels,
        numbers: Random,
    ) -> None:
        for form in FORMS:
            try:
                sample = sample_of(registration, definition, form, numbers)
                outputs = kernels.run(kernels.prepare(sample), sample)
                self.working.append(Working(sample, outputs))
            except (NoSampleError, LostCallError) as error:
                self.uncalled[name] = str(error)
                return
            except ModularTFError as error:
                call = f"{name} with shapes {list(form.shape)}"
                self.failures.append(Failure(call, error))
            else:
                return
