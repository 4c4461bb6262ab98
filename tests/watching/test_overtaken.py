"""Files that change while a refresh tries them, and refreshes that are interrupted."""

from __future__ import annotations

import gc
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.errors import ClosedError
from modular_tf.service.reload.watching import Change
from modular_tf.service.report import ChangeKind, State
from tests.fixtures.interrupts import MOMENTS, call_at
from tests.fixtures.matrices import sampled_product
from tests.watching.conftest import summary, write


@pytest.fixture
def while_trying(service):
    """Do something once, in another thread, while plugins are tried for a refresh."""

    def arrange(function):
        pipeline = service._pipeline
        try_out, left = pipeline.try_out, [function]

        def tried(judged):
            try_out(judged)
            if left:
                other = threading.Thread(target=left.pop())
                other.start()
                other.join()

        pipeline.try_out = tried

    return arrange


def serves_what_lies_there(service, path, scheme):
    """Check that a scheme is served by the library that lies at a path."""
    write(service, f"{scheme}://host/file")
    name = Path(path).stem.removeprefix("lib")
    plugin = service.entry(name).plugin
    assert plugin.sha256 == sha256(Path(path).read_bytes()).hexdigest()
    assert service.schemes() == {scheme: name}
    (record,) = service.plugins()
    assert (record.state, record.schemes, record.reasons) == (State.LOADED, (scheme,), ())
    gc.collect()
    assert service.refresh() == []
    assert service.draining == 0


# What lies there before, and the scheme of what replaces the new file while that is tried.
OVERTAKEN = {
    "nothing, the same scheme": ([], "new"),
    "nothing, another scheme": ([], "newer"),
    "nothing, removed": ([], None),
    "a plugin": (["needed-none"], "new"),
    "a plugin, removed": (["needed-none"], None),
    "a refused one": (["no-init"], "newer"),
}


@pytest.mark.parametrize(
    ("case", "refreshed"), sampled_product(list(OVERTAKEN), ["and refreshed", "alone"])
)
def test_a_file_that_is_overtaken_while_it_is_tried_is_tried_again_or_gone(
    service, put, while_trying, case, refreshed
):
    before, scheme = OVERTAKEN[case]
    for variant in before:
        put(variant=variant)
    service.load()
    path = put(scheme="new")

    def overtake():
        replace(put, scheme) if scheme else Path(path).unlink()
        if refreshed == "and refreshed":
            service.refresh()

    while_trying(overtake)
    service.refresh()

    if scheme is None:
        assert (service.plugins(), service.schemes()) == ([], {})
        path, scheme = put("libagain.so"), "first"
        assert summary(service.refresh()) == [("appeared", "again", "loaded")]
    serves_what_lies_there(service, path, scheme)


def test_a_new_file_that_is_replaced_while_it_is_read_is_one_plugin(service, put, monkeypatch):
    def replace_and_refresh():
        replace(put, "second")
        other = threading.Thread(target=service.refresh)
        other.start()
        other.join()

    service.load()
    path = put()
    scanned = "modular_tf.service.plugins:KnownPlugins.scanned"
    call_at(monkeypatch, scanned, "before", replace_and_refresh)

    service.refresh()

    serves_what_lies_there(service, path, "second")
    Path(path).unlink()
    assert summary(service.refresh()) == [("removed", "x", "loaded")]


def test_a_file_that_changed_since_a_watch_found_it_whole_has_its_turn_later(service, put):
    path = put(scheme="first")
    service.load("x")
    put(scheme="second")
    whole = Change(path, ChangeKind.REPLACED, FileIdentity.at(path))
    put(scheme="third")

    assert service._hot_reload.follow([whole]) == []
    assert service.schemes() == {"first": "x"}


def replace(put, scheme):
    put(variant="versioned-symbols", scheme=scheme)


# ---- Interrupts ----------------------------------------------------------------------------------

STEPS = [
    "modular_tf.service.reload.hot_reload:discover",
    "modular_tf.service.plugins:KnownPlugins.scanned",
    "modular_tf.service.plugins:KnownPlugins.add_new",
    "modular_tf.service.plugins:KnownPlugins.replace",
    "modular_tf.service.plugins:KnownPlugins.forget",
    "modular_tf.service.pipeline:Admission.recall",
    "modular_tf.service.pipeline:PluginPipeline.try_out",
    "modular_tf.service.plugin:Plugin.registered",
    "modular_tf.service.plugin:PluginEntry.change",
    "modular_tf.service.pipeline:PluginPipeline._register",
    "modular_tf.service.deferred_library:DeferredLibrary.open_now",
    "modular_tf.service.registrations:Registrations.give_up_conflicts",
    "modular_tf.service.registrations:Registrations.take_over",
    "modular_tf.service.reload.hot_reload:RetiredLibrary",
    "modular_tf.service.deferred_library:DeferredLibrary.forget",
    "modular_tf.filesystem.registry:SchemeRegistration.enter",
    "modular_tf.filesystem.registry:SchemeRegistration.undo",
    "modular_tf.service.reload.hot_reload:RetiredLibrary.close",
]


@pytest.mark.parametrize(("step", "moment"), sampled_product(STEPS, MOMENTS))
def test_the_next_refresh_finishes_one_that_was_interrupted(
    service, put, monkeypatch, step, moment
):
    """A plugin is replaced, one removed, one added, and one comes out of a shadow."""
    put("libreplaced.so", scheme="one")
    removed = put("liba_removed.so", scheme="two")
    put("libshadowed.so", scheme="two")
    service.load("replaced", "a_removed", "shadowed")
    old = write(service, "one://host/file")
    put("libreplaced.so", variant="versioned-symbols", scheme="one")
    new = put("libadded.so", scheme="three")
    Path(removed).unlink()
    call_at(monkeypatch, step, moment, interrupt)

    with pytest.raises(KeyboardInterrupt):
        service.refresh()
    service.refresh()

    assert service.schemes() == {"one": "replaced", "two": "shadowed", "three": "added"}
    records = {record.name: record for record in service.plugins()}
    assert {name: record.state for name, record in records.items()} == dict.fromkeys(
        ("replaced", "shadowed", "added"), State.LOADED
    )
    assert all(record.reasons == () for record in records.values())
    assert service.entry("added").plugin.sha256 == sha256(Path(new).read_bytes()).hexdigest()
    assert service.filesystem("one") is not old
    assert not service.filesystem("one").path_exists("one://host/file")
    assert old.path_exists("one://host/file")
    for scheme in ("one", "two", "three"):
        write(service, f"{scheme}://host/file")
    del old
    gc.collect()
    assert service.refresh() == []
    assert service.draining == 0


def interrupt():
    raise KeyboardInterrupt


def test_closing_closes_the_old_library_of_an_interrupted_replacement(service, put, monkeypatch):
    put(scheme="one")
    service.load("x")
    old = write(service, "one://host/file")
    held_back = old.open("one://host/other", "wb")
    held_back.write(b"held back")
    put(variant="versioned-symbols", scheme="one")
    call_at(monkeypatch, "modular_tf.service.plugins:KnownPlugins.replace", "after", interrupt)
    with pytest.raises(KeyboardInterrupt):
        service.refresh()

    service.close()

    assert held_back.closed
    with pytest.raises(ClosedError):
        old.path_exists("one://host/file")


def test_a_plugin_that_is_removed_during_an_interrupted_first_use_serves_nobody(
    service, put, monkeypatch
):
    path = Path(put(scheme="one"))
    service.load()
    deferred = "modular_tf.service.deferred_library:DeferredLibrary"

    def remove():
        path.unlink()
        assert summary(service.refresh()) == [("removed", "x", "loaded")]

    call_at(monkeypatch, f"{deferred}._register", "before", remove)
    call_at(monkeypatch, f"{deferred}._differences", "before", interrupt)
    with pytest.raises(KeyboardInterrupt):
        service.filesystem("one")

    assert service.schemes() == {}
