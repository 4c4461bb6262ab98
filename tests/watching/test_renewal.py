"""What a service makes of plugin files that come and go, and whom it tells."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from modular_tf.discovery.file_identity import SeenFile
from modular_tf.discovery.sources import distributions
from modular_tf.errors import ClosedError
from modular_tf.hookspecs import hookimpl
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.discovery.site_folder import install
from tests.fixtures.wheels import record_row
from tests.watching.conftest import PATIENCE_S, summary


def test_only_the_named_paths_are_looked_at(service, put):
    service.load()
    put("libx.so", scheme="first")
    path = put("liby.so", scheme="second")

    assert summary(service.refresh([path])) == [("appeared", "y", "loaded")]
    assert service.schemes() == {"second": "y"}
    assert summary(service.refresh()) == [("appeared", "x", "loaded")]


@pytest.fixture
def read(monkeypatch):
    """The names of the libraries of distributions that are read."""
    monkeypatch.setattr(SeenFile, "is_settled", lambda *_: True)  # whatever the clock shows
    names, exports = [], distributions.exports_init_symbol

    def counted(path):
        names.append(Path(path).name)
        return exports(path)

    monkeypatch.setattr(distributions, "exports_init_symbol", counted)
    return names


def test_installed_libraries_that_are_known_are_not_read_again(
    service, tmp_path, fixture_plugin, monkeypatch, read
):
    plugin = fixture_plugin(scheme="first").read_bytes()
    other = fixture_plugin("no-init").read_bytes()
    site = tmp_path / "site"
    install(site, "some", files={"some/libinstalled.so": plugin, "some/libz.so": other})
    monkeypatch.syspath_prepend(str(site))
    service.load()
    known, read[:] = list(read), []

    assert service.refresh() == []
    assert read == []
    assert "libinstalled.so" in known
    (site / "some" / "libz.so").write_bytes(fixture_plugin(scheme="second").read_bytes())
    service.refresh()
    assert read == ["libz.so"]


def test_a_change_of_a_loose_file_reads_no_library_of_an_unpacked_wheel(
    service, put, folder, fixture_plugin, read
):
    files = {
        "some/libwheel.so": fixture_plugin(scheme="first").read_bytes(),
        "some/libz.so": fixture_plugin("no-init").read_bytes(),
    }
    record = "\n".join(record_row(path, data) for path, data in files.items()).encode()
    install(folder / "some.wheel", "some", files=files, record=record)
    service.load()
    known, read[:] = list(read), []

    assert summary(service.refresh([put(scheme="second")])) == [("appeared", "x", "loaded")]
    # In the first process that searches this environment also those that are installed in it.
    assert {"libwheel.so", "libz.so"} <= set(known)
    assert read == []


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


def test_two_renewals_at_once_follow_each_change_once(service, put):
    service.load()
    meet = threading.Barrier(2)

    def renew(_):
        meet.wait()
        return service.refresh()

    with ThreadPoolExecutor(2) as threads:
        for number in range(3):
            put("liba.so", scheme=f"a{number}")
            put("libb.so", scheme=f"b{number}")
            one, other = threads.map(renew, range(2))

            assert sorted(change.plugin for change in one + other) == ["a", "b"]
            assert service.schemes() == {f"a{number}": "a", f"b{number}": "b"}
            assert [record.warnings for record in service.plugins()] == [(), ()]


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


def test_an_unpacked_wheel_with_an_installed_library_is_its_twin(
    service, tmp_path, fixture_plugin, monkeypatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "modular_tf" / "plugins"
    content = fixture_plugin(scheme="first").read_bytes()
    record = f"{record_row('some/libx.so', content)}\n".encode()
    files = {"some/libx.so": content}
    install(tmp_path / "site", "some", files=files, record=record)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    service.load()
    install(folder / "some.wheel", "some", files=files, record=record)

    assert service.refresh([str(folder / "some.wheel" / "some" / "libx.so")]) == []
    assert len(service.plugins()) == 1
    assert service.schemes() == {"first": "some"}
