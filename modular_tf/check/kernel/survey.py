"""One call of every kernel in several forms: which work, and how the others fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.check.expectation import Unsupported
from modular_tf.check.kernel.samples import FORMS, NoSampleError, sample_of
from modular_tf.check.kernel.subject import LostCallError
from modular_tf.errors import ModularTFError

if TYPE_CHECKING:
    import random

    from modular_tf.check.kernel.samples import Form, Sample
    from modular_tf.check.kernel.subject import KernelSubject, Output
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration


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
        untried: Why some kernels were not called, by what they are.

    Args:
        subject: Calls the kernels.
        numbers: Makes up elements.
    """

    def __init__(self, subject: KernelSubject, numbers: random.Random) -> None:
        self.working: list[Working] = []
        self.failures: list[Failure] = []
        self.untried: dict[str, str] = {}
        self._subject = subject
        self._numbers = numbers
        for registration in subject.kernels:
            self._try_kernel(registration)

    def require_calls(self) -> None:
        """Go on where a kernel was called.

        Raises:
            Unsupported: None was.
        """
        if not self.working and not self.failures:
            why = next(iter(self.untried.values()), "there are none")
            raise Unsupported(f"no kernel could be called: {why}")

    def _try_kernel(self, registration: KernelRegistration) -> None:
        name = f"{registration.op} ({registration.where})"
        definition = self._subject.definition_of(registration)
        if definition is None:
            self.untried[name] = "nobody defines the operation"
        elif self._subject.device_of(registration) is None:
            self.untried[name] = f"there is no device of type {registration.device_type}"
        else:
            self._try_forms(name, registration, definition)

    def _try_forms(
        self, name: str, registration: KernelRegistration, definition: OpDefinition
    ) -> None:
        for form in FORMS:
            try:
                sample = sample_of(registration, definition, form, self._numbers)
                self.working.append(Working(sample, self._called(sample)))
            except (NoSampleError, LostCallError) as error:
                self.untried[name] = str(error)
                return
            except ModularTFError as error:
                self.failures.append(Failure(_call(registration, form), error))
            else:
                return

    def _called(self, sample: Sample) -> list[Output]:
        return self._subject.run(self._subject.prepare(sample), sample)


def _call(registration: KernelRegistration, form: Form) -> str:
    return f"{registration.op} ({registration.where}) with shapes {list(form.shape)}"
