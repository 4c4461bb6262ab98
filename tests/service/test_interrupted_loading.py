"""A plugin that is being loaded when a signal comes, something fails, or another thread forks.

A signal handler that raises ends the wait of the main thread, and the loading comes to its end.
What fails in the middle leaves the plugin as it was: the next use begins anew.
"""

from __future__ import annotations

import signal
import threading
from functools import partial
from itertools import product

import pytest

from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer
from modular_tf.hookspecs import hookimpl
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import MemoryStore
from tests.fixtures.interrupts import MOMENTS, call_at
from tests.fixtures.matrices import sampled, sampled_product

pytestmark = pytest.mark.usefixtures("home")

TRIED = Config(first_contact="new", load="lazy")
STEPS = [
    "modular_tf.opening:map_file",
    "modular_tf.opening:init_filesystems",
    "modular_tf.opening:open_filesystem",
    "modular_tf.filesystem.registry:SchemeRegistration.fulfil",
    "modular_tf.filesystem.registry:SchemeRegistration.enter",
    "modular_tf.service.plugin:Plugin.registered",
]
DEVICE_STEPS = [
    "modular_tf.opening:map_file",
    "modular_tf.device.platform:read_device_tables",
    "modular_tf.device.platform:load_device_platform",
    "modular_tf.device.registry:DeviceRegistry.fulfil",
]
STEPS_OF_ALL = [
    "modular_tf.service.plugins:discover",
    "modular_tf.service.storage.private_directory:Turn.find_out",
    "modular_tf.service.plugins:PluginScan.recall",
    "modular_tf.service.plugins:PluginScan.probe",
    "modular_tf.service.plugins:KnownPlugins.add_new",
    "modular_tf.service.hooks:Hooks.filesystems",
    "modular_tf.service.python_objects:PythonContributions._register",
    "modular_tf.first_contact.trials:try_plugins",
    "modular_tf.service.pipeline:Admission.recall",
    "modular_tf.service.pipeline:Admission.conclude",
    "modular_tf.service.plugin:Plugin.accepted",
    "modular_tf.service.plugin:Plugin.registered",
    "modular_tf.service.plugin:PluginEntry.change",
    "modular_tf.service.pipeline:PluginPipeline._register",
    "modular_tf.service.pipeline:DeferredLibrary",
    "modular_tf.service.deferred_library:DeferredLibrary.defer",
    "modular_tf.filesystem.registry:SchemeRegistration.enter",
    "modular_tf.device.registry:DeviceRegistry.enter",
    "modular_tf.service.storage.scan_cache:ScanCache.save",
]


def interrupt():
    raise KeyboardInterrupt


@pytest.fixture
def at_step(monkeypatch):
    """Call a function once, right before or after a step."""
    return partial(call_at, monkeypatch)


@pytest.fixture
def signal_at_step(at_step):
    """Have a handler handle a signal in the main thread when a step is reached in any thread."""
    before = signal.getsignal(signal.SIGALRM)

    def arrange(step, moment, handle):
        signal.signal(signal.SIGALRM, lambda *_: handle())
        main = threading.main_thread().ident
        at_step(step, moment, lambda: signal.pthread_kill(main, signal.SIGALRM))

    yield arrange
    signal.signal(signal.SIGALRM, before)


class Hooks:
    """What an application brings; each of its objects serves once."""

    @hookimpl
    def modular_tf_filesystems(self):
        return {"mem": MemoryStore()}

    @hookimpl
    def modular_tf_device_factories(self):
        return []


OFFERS = {
    "a": Offer(("fixture",)),
    "b": Offer(platform=PlatformOffer("CHIP", "CUT_CHIP", 220)),
    "c": Offer(("other",)),
}


@pytest.fixture
def one_of_each(plugin_file, device_file, monkeypatch):
    """Return a service of two filesystems, devices and a hook, which has loaded none."""
    monkeypatch.setattr(
        "modular_tf.first_contact.trials.try_plugins",
        lambda tasks, _limits, **_: [Finding(offer=OFFERS[task.plugin]) for task in tasks],
    )
    paths = [
        plugin_file("liba.so"),
        device_file("libb.so", device_type="CHIP", platform="CUT_CHIP"),
        plugin_file("libc.so", scheme="other"),
    ]
    with PluginService(config=TRIED, plugin_paths=paths, bundled=False, hooks=[Hooks()]) as made:
        yield made


ALL_OF_THEM = {"fixture": "a", "mem": "MemoryStore", "other": "c"}


def refresh(service):
    service.refresh()
    service.load()


def require_all(service):
    assert service.schemes() == ALL_OF_THEM
    assert [(r.name, r.state) for r in service.plugins()] == [
        (name, State.LOADED) for name in ("a", "b", "c", "MemoryStore")
    ]
    for scheme in ("fixture", "other"):
        service.filesystem(scheme).path_exists(f"{scheme}://host/folder")
    assert [device.name for device in service.devices("CHIP")] == ["CHIP:0", "CHIP:1"]
    assert all(record.reasons == record.warnings == () for record in service.plugins())
    assert service.report().hook_failures == ()


USES = [
    *product([lambda service: service.filesystem("fixture")], STEPS),
    *product([lambda service: service.devices("CHIP")], DEVICE_STEPS),
]


# Each step at the moment that the samples of the other tests leave out.
@pytest.mark.parametrize(("used", "moment"), sampled_product(USES, MOMENTS[::-1]))
def test_the_next_use_opens_what_an_interrupted_one_has_not(one_of_each, at_step, used, moment):
    use, step = used
    one_of_each.load()
    at_step(step, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        use(one_of_each)

    assert one_of_each.schemes() == ALL_OF_THEM
    one_of_each.load()
    require_all(one_of_each)


@pytest.mark.parametrize(
    ("step", "where", "moment", "then"),
    sampled_product(
        STEPS_OF_ALL, ["in the step", "by a signal"], MOMENTS, [PluginService.load, refresh]
    ),
)
def test_the_next_call_brings_all_plugins_to_their_end(
    one_of_each, at_step, signal_at_step, step, where, moment, then
):
    service, arrange = one_of_each, {"in the step": at_step, "by a signal": signal_at_step}[where]
    arrange(step, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        service.load()

    then(service)

    require_all(service)


HANDLED = list(product(STEPS_OF_ALL, MOMENTS))


@pytest.mark.parametrize("at", sampled(HANDLED, HANDLED[::5]))
def test_a_signal_handler_may_use_the_service_that_is_being_loaded(one_of_each, signal_at_step, at):
    service, used = one_of_each, []

    def use():
        service.load()
        service.filesystem("fixture").path_exists("fixture://host/folder")
        used.append(True)

    signal_at_step(*at, use)
    service.load()

    assert used == [True]
    require_all(service)


def test_an_interrupt_returns_from_an_init_that_hangs(run_forked, fixture_plugin):
    """The process ends too, though the init goes on in a thread."""
    child = run_forked(
        """
        import signal, sys
        from modular_tf import opening
        from modular_tf.service import deferred_library, service as services
        from modular_tf.service.configuration import Config
        from modular_tf.service.service import PluginService

        deferred_library._PATIENCE_AT_EXIT_S = services._PATIENCE_AT_EXIT_S = 0.2

        def init(*given, **named):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return real(*given, **named)

        real, opening.init_filesystems = opening.init_filesystems, init
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        config = Config(first_contact="never", load="eager")
        service = PluginService(config=config, plugin_paths=[sys.argv[1]])
        try:
            service.load()
        except KeyboardInterrupt:
            print("interrupted")
        """,
        fixture_plugin("init-plugin-hangs"),
    )

    assert child.stdout == "interrupted\n"
