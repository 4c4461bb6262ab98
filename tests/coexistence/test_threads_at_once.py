"""Many threads that load the same libraries at once, each in a service of its own."""

from __future__ import annotations

import pytest

from tests.coexistence.conftest import WORK

_TOGETHER = (
    WORK
    + """
import threading
from concurrent.futures import ThreadPoolExecutor
def together(task, count):
    barrier = threading.Barrier(count)
    def begin(number):
        barrier.wait(60)
        return task(number)
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))
"""
)


@pytest.mark.parametrize("first_contact", ["always", "never"])
def test_one_library_in_many_services(first_contact, run_python, fixture_plugin, plugin_report):
    run_python(
        _TOGETHER
        + """
def load(number):
    with PluginService(plugin_paths=sys.argv[1:], bundled=False) as service:
        service.load()
        use_files(service, "fixture", "fixture://h/%d" % number)
        return service.plugins()[0].state.value
assert together(load, 12) == ["loaded"] * 12
""",
        fixture_plugin("good"),
        env={**plugin_report.environment, "MODULAR_TF_FIRST_CONTACT": first_contact},
    )
    counted = plugin_report.last()

    assert counted["bad_frees"] == 0
    assert counted["allocated"] == counted["freed"]


def test_one_service_is_loaded_by_many_threads(run_python, fixture_plugin):
    run_python(
        _TOGETHER
        + """
with PluginService(plugin_paths=sys.argv[1:]) as service:
    reports = together(lambda _: service.load(), 12)
    assert all(plugin.state.value == "loaded" for report in reports for plugin in report.plugins)
    use_all(service)
""",
        fixture_plugin("good"),
    )


def test_services_with_everything_at_once(run_python, fixture_plugin, fixture_device_plugin):
    run_python(
        _TOGETHER
        + """
def load(number):
    with PluginService(plugin_paths=sys.argv[1:]) as service:
        service.load()
        use_files(service, "fixture", "fixture://h/%d" % number)
        use_device(service)
        assert [device.name for device in service.devices("FIXTURE")]
together(load, 8)
""",
        fixture_plugin("good"),
        fixture_device_plugin("good"),
    )


@pytest.mark.wild
def test_a_published_plugin_is_loaded_by_many_threads(run_python, wild_plugins):
    run_python(
        _TOGETHER
        + """
def load(number):
    with PluginService(plugin_paths=sys.argv[1:], bundled=False) as service:
        service.load()
        return sorted(service.schemes())
served = together(load, 4)
assert served[0] and all(schemes == served[0] for schemes in served), served
""",
        wild_plugins.io_library,
    )
