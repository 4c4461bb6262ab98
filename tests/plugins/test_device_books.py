"""Every device variant is left with balanced books: what was created was destroyed, once."""

from __future__ import annotations

from tests.plugins.matrix import letters, variants

_EXERCISE = """
import contextlib, sys
from modular_tf.errors import ModularTFError
from modular_tf.service.service import PluginService

with PluginService(plugin_paths=sys.argv[1:], bundled=False) as service:
    for library in sys.argv[1:]:
        service.load(library)
    for device in service.devices():
        with contextlib.suppress(ModularTFError):
            print(device.name, device.hardware_name, device.numa_node)
"""
# It throws instead of counting its end; closing is an error then.
_LEFT_OUT = {"destroy-throws"}
# Nobody can destroy what has no function for it.
_LEFT_ALIVE = {
    "destroy-platform-null": {"platforms"},
    "destroy-platform-fns-null": {"platform_fns"},
}


def _alive(book):
    return {entry for entry, count in book.items() if isinstance(count, list) and count[0]}


def test_every_variant_is_left_with_balanced_books(
    fixture_device_plugin, plugin_report, run_forked
):
    names = [v.name for v in variants("device").values() if v.fault is None]
    names = [name for name in names if name not in _LEFT_OUT]
    libraries = [
        fixture_device_plugin(name, device_type=f"T_{letters(i)}", platform=f"P_{letters(i)}")
        for i, name in enumerate(names)
    ]

    run_forked(_EXERCISE, *libraries, env=plugin_report.environment)
    books = plugin_report.processes()

    assert len(books) == len(names)
    assert {book["variant"]: _alive(book) for book in books if _alive(book)} == _LEFT_ALIVE
    assert [book["variant"] for book in books if book["bad_frees"]] == []
