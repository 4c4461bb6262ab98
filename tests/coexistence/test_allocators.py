"""Allocators that somebody preloads, and memory that is not zero by chance."""

from __future__ import annotations

import pytest

from tests.coexistence.conftest import WORK
from tests.fixtures.system_libraries import preloadable

_ALL = (
    WORK
    + """
with PluginService(plugin_paths=sys.argv[1:]) as service:
    service.load()
    assert {"fixture", "ram", "file"} <= service.schemes().keys()
    for _ in range(3):
        use_all(service)
print("reached the end")
"""
)
_PRELOADED = {
    "jemalloc": "libjemalloc2",
    "tcmalloc_minimal": "libtcmalloc-minimal4",
    "mimalloc": "libmimalloc2.0",
}


@pytest.mark.parametrize("allocator", _PRELOADED)
@pytest.mark.parametrize("first_contact", ["always", "never"])
def test_a_preloaded_allocator_serves_plugins_too(
    allocator, first_contact, run_python, fixture_plugin
):
    library = preloadable(allocator, package=_PRELOADED[allocator])
    child = run_python(
        _ALL + f'assert "{library}" in open("/proc/self/maps").read()\n',
        fixture_plugin("good"),
        env={"LD_PRELOAD": library, "MODULAR_TF_FIRST_CONTACT": first_contact},
    )

    assert (child.stdout, child.stderr) == ("reached the end\n", "")


@pytest.mark.parametrize(
    "settings",
    [
        {"MALLOC_PERTURB_": "165"},
        {"GLIBC_TUNABLES": "glibc.malloc.perturb=90:glibc.malloc.tcache_count=0"},
        {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"},
    ],
    ids=["perturbed", "tunables", "python's own"],
)
def test_fresh_and_freed_memory_may_hold_anything(settings, run_python, fixture_plugin):
    child = run_python(_ALL, fixture_plugin("good"), env=settings)

    assert (child.stdout, child.stderr) == ("reached the end\n", "")


def test_fresh_memory_is_perturbed_there(run_python):
    """What the test before relies on: what is used before it was written to holds no zeros."""
    code = "import ctypes; libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p\n"
    code += "print(set(ctypes.string_at(libc.malloc(4000), 4000)))\n"

    child = run_python(code, env={"MALLOC_PERTURB_": "165"})

    assert child.stdout == f"{{{165 ^ 255}}}\n"
