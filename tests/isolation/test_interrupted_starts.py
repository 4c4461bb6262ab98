"""Starts of worker processes that are interrupted leave nothing open."""

from __future__ import annotations

import gc
from itertools import islice

import pytest

from tests.fixtures.interrupts import interrupt, points
from tests.fixtures.matrices import sampled
from tests.isolation.conftest import descriptors, isolated, wait_until

_STRIDE = 13  # of the points, of which each takes a process


def _open_now():
    gc.collect()
    return descriptors()


def _named(service):
    return service.instance("ram", name="one", environment={})


def _shared(service):
    return service.shared_instance("ram", {"TENANT": "one"})


@pytest.mark.filterwarnings(  # in finalizers
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("start", [_named, _shared])
@pytest.mark.parametrize("first", sampled(range(_STRIDE), [0]))
def test_an_interrupt_at_any_point_of_a_start_leaves_neither_sockets_nor_a_name_nor_room(
    start, first
):
    with isolated(isolation="none") as other:
        start(other).close()  # starts the zygote
        before = _open_now()
    with isolated(isolation="none", most_instances=1) as service:
        for point in islice(points(), first, None, _STRIDE):
            made = []
            if not interrupt(lambda: made.append(start(service)), point=point):  # noqa: B023
                break
            for one in made:
                one.close()
            start(service).close()
        assert point > 10 * _STRIDE
    wait_until(lambda: _open_now() <= before)
