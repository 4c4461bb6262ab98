"""Checks of making kernel objects, of what they compute, and what they leave behind."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.check import HOST, ROBUST, WORKS, Suite
from modular_tf.check.expectation import Deviation, Unsupported, expect, where_they_differ
from modular_tf.check.kernel.kernels import LostCallError, input_bytes
from modular_tf.check.kernel.samples import Form, NoSampleError, agree, reference_of, sample_of
from modular_tf.check.memory_watch import raise_harm_at_loading
from modular_tf.check.under_load import at_once
from modular_tf.errors import ModularTFError
from modular_tf.rules.kernel import COMPUTATION_RETURNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.kernel.samples import Output, Sample
    from modular_tf.check.kernel.session import KernelSession, Working
    from modular_tf.kernel.prepared_kernel import PreparedKernel

_SOURCE = "TensorFlow 2.21, observed"
objects = Suite("kernel", "kernel objects", ROBUST, HOST, seconds=120, source=_SOURCE)
computation = Suite("kernel", "kernel computation", ways=HOST, seconds=120)
results = Suite("kernel", "kernel results", ROBUST, HOST, seconds=120, source=_SOURCE)
memory = Suite("kernel", "kernel memory", ROBUST, HOST, seconds=120)

_CALLS = 8
_THREADS = 4


def _expect_agreement(
    sample: Sample, found: Sequence[Output], expected: Sequence[Output], when: str
) -> None:
    """Demand that two results of a sample agree; `Deviation` where they do not."""
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        same = one.shape == other.shape and agree(one.kind, one.data, other.data)
        expect(
            same,
            f"{sample.call('compute')}: output {index} is another {when}",
            expected=f"{list(other.shape)} {other.data[:32].hex()}",
            found=f"{list(one.shape)} {one.data[:32].hex()}",
        )


@contextmanager
def _must_work(message: str, expected: str = "the same result") -> Iterator[None]:
    try:
        yield
    except ModularTFError as error:
        raise Deviation(message, expected=expected, found=error.message) from None


@objects.check("KN-061")
def missing_attributes_are_failures(plugin: KernelSession) -> None:
    """A kernel reports a missing attribute as a failure.

    Otherwise: It ends the process, or throws, for a node that lacks an attribute.
    Remedy: Look at the status of each TF_OpKernelConstruction_GetAttr function; pass it to
    TF_OpKernelConstruction_Failure where it is not OK.
    """
    for working in plugin.survey.working:
        for sample in _lacking_one(working.sample):
            try:
                plugin.kernels.prepare(sample)
            except LostCallError:
                continue
            except ModularTFError as error:
                expect(
                    error.rule != COMPUTATION_RETURNS.id,
                    f"{sample.call('create')} throws where an attribute is missing",
                    expected="a failure with a status",
                    found=error.message,
                )


def _lacking_one(sample: Sample) -> Iterator[Sample]:
    for name in sample.node.attrs.keys() - sample.definition.inferred_attrs:
        attrs = {key: value for key, value in sample.node.attrs.items() if key != name}
        yield sample._replace(node=replace(sample.node, attrs=attrs))


@objects.check("KN-062")
def two_objects_can_be_made_at_once(plugin: KernelSession) -> None:
    """Two objects of a kernel can be made at once, and one be deleted while the other works.

    Otherwise: TensorFlow makes two where two threads ask for the same kernel, and deletes one.
    Remedy: Let objects share nothing that is not guarded, and delete only what is an object's own.
    """
    kernels = plugin.kernels
    for sample, outputs in plugin.survey.working:
        prepare = partial(kernels.prepare, sample)
        try:
            with _must_work(f"{sample.call('create')} fails in two threads at once"):
                kept, deleted = at_once([prepare, prepare])
        except LostCallError:
            continue
        del deleted
        if not sample.definition.is_stateful:
            with _must_work(f"{sample.call('compute')} fails when another object was deleted"):
                again = kernels.run(kept, sample)
            when = "with another object that was made and deleted"
            _expect_agreement(sample, again, outputs, when)


@computation.judge(
    "KN-088 KN-063 KN-076 KN-077 KN-079 KN-080 KN-083 KN-084 KN-085 KN-095 KN-096 KN-100 KN-101"
)
def _judge_by_survey(rule_id: str, plugin: KernelSession) -> None:
    """Call each kernel with made-up inputs; that it reports a failure is no fault.

    Raises `Deviation` where one breaks the rule.
    """
    for failure in plugin.survey.failures:
        expect(
            not failure.breaks(rule_id),
            f"{failure.call} breaks the rule",
            expected="a result, or a failure that the kernel reports",
            found=failure.error.message,
        )


def _objects(plugin: KernelSession) -> Iterator[tuple[Working, PreparedKernel]]:
    """Yield each working sample with a new kernel object."""
    for working in plugin.survey.working:
        try:
            yield working, plugin.kernels.prepare(working.sample)
        except (LostCallError, ModularTFError):  # the survey tells of it
            continue


def _repeatable(plugin: KernelSession) -> Iterator[tuple[Working, PreparedKernel]]:
    """Yield those whose results do not depend on earlier calls."""
    return (pair for pair in _objects(plugin) if not pair[0].sample.definition.is_stateful)


@results.check("KN-090")
def tensors_are_deleted(plugin: KernelSession) -> None:
    """A kernel deletes every tensor that it was given.

    Otherwise: Memory grows with every call.
    Remedy: Call TF_DeleteTensor for each tensor of TF_GetInput, TF_AllocateOutput and
    TF_AllocateTemp, on every way through `compute`.
    Source: kernels.h

    What a kernel keeps after its first calls is no leak.
    """
    kernels = plugin.kernels
    for (sample, _), kernel in _objects(plugin):
        for _ in range(2):
            kernels.run(kernel, sample)
        before = kernels.handles()
        for _ in range(_CALLS):
            kernels.run(kernel, sample)
        more = kernels.handles() - before
        expect(
            more < _CALLS,
            f"{sample.call('compute')} does not delete its tensors",
            expected=f"as many tensors after {_CALLS} calls as before",
            found=f"{more} more",
        )


@results.check("KN-091")
def threads_get_equal_results(plugin: KernelSession) -> None:
    """A kernel gives equal results when four threads use one object of it.

    Otherwise: Models that run steps side by side compute something else each time.
    Remedy: Keep what changes during a call on its stack, or guard it by a lock.
    """
    kernels = plugin.kernels
    for (sample, outputs), kernel in _repeatable(plugin):

        def calls(sample: Sample = sample, kernel: PreparedKernel = kernel) -> list[list[Output]]:
            return [kernels.run(kernel, sample) for _ in range(_CALLS)]

        with _must_work(f"{sample.call('compute')} fails in {_THREADS} threads at once"):
            of_threads = at_once([calls] * _THREADS)
        for found in (one for of_thread in of_threads for one in of_thread):
            _expect_agreement(sample, found, outputs, "in one of several threads")


@results.check("KN-092")
def other_shapes_are_computed_anew(plugin: KernelSession) -> None:
    """A kernel object gives the same result for another shape as a new one does.

    Otherwise: Results depend on what was computed before.
    Remedy: Keep nothing of the shape of one call for the next.
    """
    kernels = plugin.kernels
    for (sample, _), kernel in _repeatable(plugin):
        try:
            form = Form(sample.form.rank, sample.form.side + 2)
            other = sample_of(sample.registration, sample.definition, form, plugin.random)
            expected = kernels.run(kernels.prepare(other), other)
        except (NoSampleError, LostCallError, ModularTFError):
            continue  # it does not compute that shape
        kernels.run(kernel, sample)
        with _must_work(f"{other.call('compute')} fails after a call with another shape"):
            found = kernels.run(kernel, other)
        _expect_agreement(other, found, expected, "after a call with another shape")


@results.check("KN-093")
def inputs_are_not_written_to(plugin: KernelSession) -> None:
    """No input is given away for an output; the host looks at the first call of an object."""
    _judge_by_survey("KN-093", plugin)
    kernels = plugin.kernels
    for (sample, _), kernel in _objects(plugin):
        kernels.run(kernel, sample)
        placed = kernels.placed(kernel, sample)
        kernels.compute(kernel, sample, placed)
        for index, (given, tensor) in enumerate(zip(placed, sample.tensors, strict=True)):
            held = input_bytes(given)
            found, expected = where_they_differ(held, tensor.data)
            message = f"{sample.call('compute')} writes to input {index}"
            expect(held == tensor.data, message, expected=expected, found=found)


@results.check("KN-099", level=WORKS)
def results_are_those_of_numpy(plugin: KernelSession) -> None:
    """The results of well-known operations are those of numpy, within the type's accuracy.

    Otherwise: Models compute something else than on other devices.
    Remedy: Compare the kernel with TensorFlow's own for the inputs that the message names.
    Source: numpy
    """
    tried = 0
    for sample, outputs in plugin.survey.working:
        expected = reference_of(sample)
        if expected is not None:
            tried += 1
            _expect_agreement(sample, outputs, expected, "than numpy's")
    if not tried:
        raise Unsupported("none of the kernels that compute has a reference")


@memory.check("KN-103")
def memory_is_left_alone(plugin: KernelSession) -> None:
    """A kernel writes only to memory that is its own, and frees each block once.

    Otherwise: The process ends at some later moment, in code that has nothing to do with it.
    Remedy: Run the calls of the message under AddressSanitizer.
    Source: C
    """
    _ = plugin.survey
    raise_harm_at_loading("KN-103")
