"""What a service makes of plugin files that come and go, and whom it tells."""

from __future__ import annotations

import logging
import threading

import pytest

from modular_tf.errors import ClosedError
from modular_tf.hookspecs import hookimpl
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.watching.conftest import PATIENCE_S, summary


def test_only_the_named_paths_are_looked_at(service, put):
    service.load()
    put("libx.so", scheme="first")
    path = put("liby.so", scheme="second")

    assert summary(service.refresh([path])) == [("appeared", "y", "loaded")]
    assert service.schemes() == {"second": "y"}
    assert summary(service.refresh()) == [("appeared", "x", "loaded")]


def test_hooks_get_the_changes(folder, put):
    class Listener:
        def __init__(self):
            self.changes = []

        @hookimpl
        def modular_tf_change(self, change):
            self.changes.append(change)

    class Broken:
        @hookimpl
        def modular_tf_change(self, change):
            raise RuntimeError("not now")

    listener = Listener()
    with PluginService(plugin_dirs=[folder], bundled=False, hooks=[Broken(), listener]) as service:
        service.load()
        put()
        changes = service.refresh()

        assert listener.changes == changes
        assert "not now" in service.report().hook_failures[0].message


def test_a_closed_service_follows_nothing(service):
    service.close()

    with pytest.raises(ClosedError):
        service.refresh()
    with pytest.raises(ClosedError):
        service.watch()


def test_a_function_that_raises_does_not_end_the_watch_which_it_may_close(service, put, caplog):
    seen, done = [], threading.Event()

    def on_change(change):
        seen.append(change.plugin)
        if len(seen) == 2:
            watch.close()
            done.set()
        raise RuntimeError("not now")

    with caplog.at_level(logging.WARNING, "modular_tf"):
        watch = service.watch(on_change)
        put("libx.so", scheme="one")
        put("liby.so", scheme="two")
        assert done.wait(PATIENCE_S)

    assert watch.closed
    assert sorted(seen) == ["x", "y"]
    assert any("not now" in str(record.msg) for record in caplog.records)
    assert service.schemes() == {"one": "x", "two": "y"}


def test_a_watch_loads_what_is_there_and_ends_with_its_service(service, put):
    put(scheme="one")

    watch = service.watch()

    assert service.schemes() == {"one": "x"}
    assert service.report()["x"].state is State.LOADED
    assert not watch.closed
    service.close()
    assert watch.closed


def test_a_plugin_that_hangs_does_not_hold_up_the_next(run_forked, fixture_plugin, folder):
    child = run_forked(
        """
        import shutil, sys, threading, time
        from modular_tf.service.configuration import Config
        from modular_tf.service.service import PluginService

        folder, hanging, good = sys.argv[1:]
        done = threading.Event()

        def on_change(change):
            print(change.plugin, change.record.state)
            done.set()

        config = Config(
            first_contact="always", first_contact_timeout_s=600, fsspec_fallback=False
        )
        with PluginService(plugin_dirs=[folder], bundled=False, config=config) as service:
            with service.watch(on_change):
                shutil.copyfile(hanging, f"{folder}/libhanging.so")
                while not service.plugins():
                    time.sleep(0.01)
                shutil.copyfile(good, f"{folder}/libgood.so")
                assert done.wait(60)
                print(service.report()["hanging"].state)
            print(service.schemes())
        """,
        folder,
        fixture_plugin("init-plugin-hangs"),
        fixture_plugin("needed-none", scheme="one"),
    )

    assert child.stdout == "good loaded\nfound\n{'one': 'good'}\n"
