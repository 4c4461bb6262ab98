"""Checks of what kernels compute, and what they leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import HOST, ROBUST, WORKS, Suite
from modular_tf.check.expectation import Deviation, Unsupported, expect, where_they_differ
from modular_tf.check.kernel.computation import expect_kept
from modular_tf.check.kernel.numpy_references import reference_of
from modular_tf.check.kernel.sample_values import agree
from modular_tf.check.kernel.samples import Form, NoSampleError, sample_of
from modular_tf.check.kernel.subject import LostCallError, input_bytes
from modular_tf.check.under_load import at_once
from modular_tf.errors import ModularTFError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.kernel.samples import Sample
    from modular_tf.check.kernel.stage import KernelGround
    from modular_tf.check.kernel.subject import Output
    from modular_tf.check.kernel.survey import Working
    from modular_tf.kernel.prepared_kernel import PreparedKernel

suite = Suite(
    "kernel",
    "kernel results",
    level=ROBUST,
    ways=HOST,
    seconds=120,
    source="TensorFlow 2.21, observed",
)

_CALLS = 8
_THREADS = 4


def expect_agreement(
    sample: Sample, found: Sequence[Output], expected: Sequence[Output], when: str
) -> None:
    """Demand that two results of a sample agree.

    Raises:
        Deviation: They do not.
    """
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        same = one.shape == other.shape and agree(one.kind, one.data, other.data)
        expect(
            same,
            f"{sample.call('compute')}: output {index} is another {when}",
            expected=f"{list(other.shape)} {other.data[:32].hex()}",
            found=f"{list(one.shape)} {one.data[:32].hex()}",
        )


def _objects(ground: KernelGround) -> Iterator[tuple[Working, PreparedKernel]]:
    """Yield each working sample with a new kernel object."""
    for working in ground.survey.working:
        try:
            yield working, ground.subject.prepare(working.sample)
        except (LostCallError, ModularTFError):  # the survey tells of it
            continue


def _repeatable(ground: KernelGround) -> Iterator[tuple[Working, PreparedKernel]]:
    """Yield those whose results do not depend on earlier calls."""
    return (pair for pair in _objects(ground) if not pair[0].sample.definition.is_stateful)


@suite.check("KN-090")
def tensors_are_deleted(ground: KernelGround) -> None:
    """A kernel deletes every tensor that it was given.

    Otherwise: Memory grows with every call.
    Remedy: Call TF_DeleteTensor for each tensor of TF_GetInput, TF_AllocateOutput and
    TF_AllocateTemp, on every way through `compute`.
    Source: kernels.h

    What a kernel keeps after its first calls is no leak.
    """
    subject = ground.subject
    for (sample, _), kernel in _objects(ground):
        for _ in range(2):
            subject.run(kernel, sample)
        before = subject.handles()
        for _ in range(_CALLS):
            subject.run(kernel, sample)
        more = subject.handles() - before
        expect(
            more < _CALLS,
            f"{sample.call('compute')} does not delete its tensors",
            expected=f"as many tensors after {_CALLS} calls as before",
            found=f"{more} more",
        )


@suite.check("KN-091")
def threads_get_equal_results(ground: KernelGround) -> None:
    """A kernel gives equal results when four threads use one object of it.

    Otherwise: Models that run steps side by side compute something else each time.
    Remedy: Keep what changes during a call on its stack, or guard it by a lock.
    """
    subject = ground.subject
    for (sample, outputs), kernel in _repeatable(ground):

        def calls(sample: Sample = sample, kernel: PreparedKernel = kernel) -> list[list[Output]]:
            return [subject.run(kernel, sample) for _ in range(_CALLS)]

        try:
            of_threads = at_once([calls] * _THREADS)
        except ModularTFError as error:
            message = f"{sample.call('compute')} fails in {_THREADS} threads at once"
            raise Deviation(message, expected="the same result", found=error.message) from None
        for found in (one for of_thread in of_threads for one in of_thread):
            expect_agreement(sample, found, outputs, "in one of several threads")


@suite.check("KN-092")
def other_shapes_are_computed_anew(ground: KernelGround) -> None:
    """A kernel object gives the same result for another shape as a new one does.

    Otherwise: Results depend on what was computed before.
    Remedy: Keep nothing of the shape of one call for the next.
    """
    subject = ground.subject
    for (sample, _), kernel in _repeatable(ground):
        try:
            other = _of_other_shape(ground, sample)
            expected = subject.run(subject.prepare(other), other)
        except (NoSampleError, LostCallError, ModularTFError):
            continue  # it does not compute that shape
        subject.run(kernel, sample)
        try:
            found = subject.run(kernel, other)
        except ModularTFError as error:
            message = f"{other.call('compute')} fails after a call with another shape"
            raise Deviation(message, expected="a result", found=error.message) from None
        expect_agreement(other, found, expected, "after a call with another shape")


def _of_other_shape(ground: KernelGround, sample: Sample) -> Sample:
    form = Form(sample.form.rank, sample.form.side + 2)
    return sample_of(sample.registration, sample.definition, form, ground.random)


@suite.check("KN-093")
def inputs_are_not_written_to(ground: KernelGround) -> None:
    """No input is given away for an output; the host looks at the first call of an object."""
    expect_kept("KN-093", ground)
    subject = ground.subject
    for (sample, _), kernel in _objects(ground):
        subject.run(kernel, sample)
        placed = subject.placed(kernel, sample)
        subject.compute(kernel, sample, placed)
        for index, (given, tensor) in enumerate(zip(placed, sample.tensors, strict=True)):
            held = input_bytes(given)
            found, expected = where_they_differ(held, tensor.data)
            message = f"{sample.call('compute')} writes to input {index}"
            expect(held == tensor.data, message, expected=expected, found=found)


@suite.check("KN-099", level=WORKS)
def results_are_those_of_numpy(ground: KernelGround) -> None:
    """The results of well-known operations are those of numpy, within the type's accuracy.

    Otherwise: Models compute something else than on other devices.
    Remedy: Compare the kernel with TensorFlow's own for the inputs that the message names.
    Source: numpy
    """
    tried = 0
    for sample, outputs in ground.survey.working:
        expected = reference_of(sample)
        if expected is not None:
            tried += 1
            expect_agreement(sample, outputs, expected, "than numpy's")
    if not tried:
        raise Unsupported("none of the kernels that compute has a reference")
