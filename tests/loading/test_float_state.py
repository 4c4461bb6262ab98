"""Floating-point control state of the application after calls into a plugin that changes it."""

import platform

import pytest

from tests.first_contact.conftest import build_misdeed
from tests.fixtures.matrices import sampled_product

# The x87 unit is looked at by the C library: its control word has rounding and exceptions, too.
ARITHMETIC = """
    import ctypes, sys
    from modular_tf import Config, PluginService
    config = Config(first_contact="never", load="eager")
    with PluginService(config=config, plugin_paths=[sys.argv[1]]) as service:
        service.load()
        (bad,) = (plugin for plugin in service.plugins() if plugin.path == sys.argv[1])
        if bad.schemes:
            service.filesystem(bad.schemes[0])
        elif bad.device_types:
            device = service.devices(bad.device_types[0])[0]
            device.memory_usage()
        assert bad.schemes or bad.device_types
        library = ctypes.CDLL("libm.so.6")
        infinite, one, tiny = float("inf"), float("1"), float("1e-20")
        assert infinite - infinite != 0
        assert 5e-324 * one != 0
        assert one + tiny == one and -one - tiny == -one
        assert (library.fegetround(), library.fegetexcept()) == (0, 0)
"""
PLACES = [
    ("device", "INIT"),
    ("device", "CONSTRUCTOR"),
    ("device", "MEMORY_USAGE"),
    ("filesystem", "INIT"),
    ("filesystem", "SCHEME_INIT"),
]
DEEDS = ["ROUND_UP"]
if platform.machine() == "x86_64":
    DEEDS += ["FLUSH_TO_ZERO", "TRAP_INVALID", "TRAP_INVALID_X87"]


@pytest.mark.parametrize(("where", "deed"), sampled_product(PLACES, DEEDS))
def test_arithmetic_is_as_before_when_a_call_has_returned(run_forked, where, deed):
    kind, place = where
    run_forked(ARITHMETIC, build_misdeed(deed, place, kind))
