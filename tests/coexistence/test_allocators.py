"""Allocators that somebody preloads, and memory that is not zero by chance."""

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


_SETTINGS = {
    "python's own": {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"},
    "perturbed": {"MALLOC_PERTURB_": "165"},
    "tunables": {"GLIBC_TUNABLES": "glibc.malloc.perturb=90:glibc.malloc.tcache_count=0"},
}


@pytest.mark.parametrize("name", sampled(_SETTINGS, ["python's own"]))
def test_fresh_and_freed_memory_may_hold_anything(name, run_python, fixture_plugin):
    child = run_python(ALL, fixture_plugin("good"), env=_SETTINGS[name])

    assert (child.stdout, child.stderr) == ("reached the end\n", "")
