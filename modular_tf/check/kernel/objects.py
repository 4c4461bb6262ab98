"""Checks of making kernel objects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.check import HOST, ROBUST, Suite
from modular_tf.check.expectation import Deviation
from modular_tf.check.kernel.results import expect_agreement
from modular_tf.check.kernel.subject import LostCallError
from modular_tf.check.under_load import at_once
from modular_tf.errors import ModularTFError
from modular_tf.rules.kernel import COMPUTATION_RETURNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.kernel.samples import Sample
    from modular_tf.check.kernel.stage import KernelGround
    from modular_tf.check.kernel.subject import KernelSubject
    from modular_tf.kernel.prepared_kernel import PreparedKernel

suite = Suite(
    "kernel",
    "kernel objects",
    level=ROBUST,
    ways=HOST,
    seconds=120,
    source="TensorFlow 2.21, observed",
)


@suite.check("KN-061")
def missing_attributes_are_failures(ground: KernelGround) -> None:
    """A kernel reports a missing attribute as a failure.

    Otherwise: It ends the process, or throws, for a node that lacks an attribute.
    Remedy: Look at the status of each TF_OpKernelConstruction_GetAttr function; pass it to
    TF_OpKernelConstruction_Failure where it is not OK.
    """
    for working in ground.survey.working:
        for sample in _lacking_one(working.sample):
            try:
                ground.subject.prepare(sample)
            except LostCallError:
                continue
            except ModularTFError as error:
                if error.rule == COMPUTATION_RETURNS.id:
                    message = f"{sample.call('create')} throws where an attribute is missing"
                    raise Deviation(
                        message, expected="a failure with a status", found=error.message
                    ) from None


def _lacking_one(sample: Sample) -> Iterator[Sample]:
    for name in sample.node.attrs.keys() - sample.definition.inferred_attrs:
        attrs = {key: value for key, value in sample.node.attrs.items() if key != name}
        yield sample._replace(node=replace(sample.node, attrs=attrs))


@suite.check("KN-062")
def two_objects_can_be_made_at_once(ground: KernelGround) -> None:
    """Two objects of a kernel can be made at once, and one be deleted while the other works.

    Otherwise: TensorFlow makes two where two threads ask for the same kernel, and deletes one.
    Remedy: Let objects share nothing that is not guarded, and delete only what is an object's own.
    """
    subject = ground.subject
    for sample, outputs in ground.survey.working:
        kept = _one_of_two(subject, sample)
        if kept is None or sample.definition.is_stateful:
            continue
        try:
            again = subject.run(kept, sample)
        except ModularTFError as error:
            message = f"{sample.call('compute')} fails when another object of it was deleted"
            raise Deviation(message, expected="the same result", found=error.message) from None
        expect_agreement(sample, again, outputs, "with another object that was made and deleted")


def _one_of_two(subject: KernelSubject, sample: Sample) -> PreparedKernel | None:
    try:
        first, _ = at_once([lambda: subject.prepare(sample)] * 2)
    except LostCallError:
        return None
    except ModularTFError as error:
        message = f"{sample.call('create')} fails in two threads at once"
        raise Deviation(message, expected="two kernel objects", found=error.message) from None
    return first
