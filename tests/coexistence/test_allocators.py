"""Allocators that somebody preloads."""

from __future__ import annotations

import pytest

from tests.coexistence.conftest import ALL
from tests.fixtures.matrices import sampled
from tests.fixtures.system_libraries import preloadable

_PRELOADED = {
    "jemalloc": "libjemalloc2",
    "tcmalloc_minimal": "libtcmalloc-minimal4",
    "mimalloc": "libmimalloc2.0",
}


@pytest.mark.parametrize("allocator", sampled(_PRELOADED, ["jemalloc"]))
def test_a_preloaded_allocator_serves_plugins_too(allocator, run_python, fixture_plugin):
    library = preloadable(allocator, package=_PRELOADED[allocator])
    child = run_python(
        ALL + f'assert "{library}" in open("/proc/self/maps").read()\n',
        fixture_plugin("good"),
        env={"LD_PRELOAD": library, "MODULAR_TF_FIRST_CONTACT": "always"},
    )

    assert (child.stdout, child.stderr) == ("reached the end\n", "")
