"""What a service makes of plugin files that others replace: generations."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from time import time_ns

import pytest

from modular_tf.discovery import file_identity
from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.service.configuration import Config
from modular_tf.service.reload.watching import Change
from modular_tf.service.report import ChangeKind, State
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import call_at
from tests.watching.conftest import PATIENCE_S, summary, write


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "not yet mapped"])
@pytest.mark.parametrize("how", ["renamed", "overwritten"])
def test_a_replaced_file_is_a_new_generation(service, put, overwrite, how, mapped):
    put(scheme="first")
    service.watch().close()  # from now on files may be overwritten in place
    if mapped:
        service.load("x")
    (put if how == "renamed" else overwrite)(scheme="second")

    assert summary(service.refresh()) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"second": "x"}
    write(service, "second://host/file")


def test_the_old_generation_serves_what_is_open(service, put, overwrite):
    put(scheme="same")
    service.watch().close()
    service.load("x")
    uri = "same://host/file"
    filesystem = write(service, uri, b"old")
    reader = filesystem.new_random_access_file(uri)
    writer = filesystem.new_writable_file("same://host/other")
    region = filesystem.new_read_only_memory_region_from_file(uri)
    del filesystem

    overwrite(variant="versioned-symbols", scheme="same")
    assert summary(service.refresh()) == [("replaced", "x", "loaded")]

    assert not service.filesystem_for(uri).path_exists(uri)
    assert reader.read(0, 3) == b"old"
    writer.append(b"more")
    assert writer.tell() == 4
    writer.close()
    reader.close()
    assert bytes(region.view()) == b"old"


def test_the_old_generation_goes_on_until_nobody_holds_anything_of_it(service, put):
    put(scheme="same")
    service.load("x")
    old = write(service, "same://host/file", b"old")
    reader = old.new_random_access_file("same://host/file")

    put(variant="versioned-symbols", scheme="same")
    service.refresh()

    assert old.path_exists("same://host/file")
    assert service.filesystem("same") is not old
    assert not service.filesystem("same").path_exists("same://host/file")
    assert service.draining == 1
    del old
    gc.collect()
    service.refresh()
    assert service.draining == 1
    assert reader.read(0, 3) == b"old"

    reader.close()
    del reader  # it holds its filesystem
    gc.collect()
    service.refresh()
    assert service.draining == 0


def test_closing_the_service_closes_what_serves_to_the_end(service, put):
    put(scheme="same")
    service.load("x")
    filesystem = write(service, "same://host/file", b"old")
    reader = filesystem.new_random_access_file("same://host/file")
    put(variant="versioned-symbols", scheme="same")
    service.refresh()

    service.close()

    with pytest.raises(ModularTFError):
        reader.read(0, 3)
    with pytest.raises(ModularTFError):
        filesystem.path_exists("same://host/file")


@pytest.mark.parametrize(
    ("variant", "rule"),
    [
        ("no-init", "LD-010"),
        ("unresolved-symbol", "LD-014"),
        ("init-plugin-crashes", "LD-060"),
        ("scheme-null", "FS-006"),
    ],
)
def test_a_generation_that_fails_leaves_the_old_one_serving(
    service, put, variant, rule, monkeypatch
):
    monkeypatch.setenv("MODULAR_TF_FIRST_CONTACT", "new")
    put(scheme="same")
    service.load("x")
    old = write(service, "same://host/file", b"old")
    put(variant=variant, scheme="same")

    (change,) = service.refresh()

    assert summary([change]) == [("replaced", "x", "loaded")]
    assert change.refusal is not None
    assert change.refusal.rule == "LD-085"
    assert rule in change.refusal.message or change.refusal.message
    assert service.filesystem("same") is old
    record = service.report()["x"]
    assert [warning.rule for warning in record.warnings] == ["LD-085"]
    assert service.refresh() == []


def test_a_file_that_could_not_be_tried_is_tried_again(folder, put, monkeypatch):
    put(scheme="same")
    with PluginService(
        plugin_dirs=[folder], bundled=False, config=Config(first_contact="always")
    ) as service:
        service.load("x")
        put(scheme="second")
        with monkeypatch.context() as patched:
            nobody = "modular_tf.processes.zygote_process.find_interpreter"
            patched.setattr(nobody, lambda: None)
            (change,) = service.refresh()
            assert change.refusal is not None
            assert service.schemes() == {"same": "x"}

        (change,) = service.refresh()

        assert change.refusal is None
        assert service.schemes() == {"second": "x"}


def test_what_was_refused_is_judged_anew_when_it_is_replaced(service, put):
    put(variant="no-init")
    service.load()
    assert service.report()["x"].state is State.REJECTED
    put(variant="unresolved-symbol")
    (change,) = service.refresh()
    assert summary([change]) == [("replaced", "x", "rejected")]
    assert change.record.reason.rule == "LD-014"

    put(scheme="first")
    assert summary(service.refresh()) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"first": "x"}
    put(variant="no-init")
    service.refresh()
    put(scheme="second")
    (change,) = service.refresh()
    assert change.refusal is None
    assert service.schemes() == {"second": "x"}
    assert service.report()["x"].warnings == ()


def test_the_same_bytes_are_no_new_generation(service, put, folder):
    put()
    service.load("x")
    filesystem = service.filesystem("first")
    put()
    os.utime(folder / "libx.so", (1, 1))

    assert service.refresh() == []
    assert service.filesystem("first") is filesystem


def test_a_plugin_whose_former_file_is_put_back_is_as_before(service, put):
    put()
    service.load("x")
    put(variant="no-init")
    (change,) = service.refresh()
    assert change.refusal is not None
    put()

    assert service.refresh() == []
    assert service.report()["x"].warnings == ()


def test_the_same_bytes_serve_after_others_lay_there_at_the_first_use(service, put):
    put()
    service.load()
    put(variant="good", scheme="other")
    with pytest.raises(PluginError, match="LD-082"):
        service.filesystem("first")
    put()

    (change,) = service.refresh()

    assert change.record.state is State.LOADED
    write(service, "first://h/f")


@pytest.mark.parametrize("before", ["mapped", "not yet mapped", "recalled"])
def test_other_bytes_with_the_identity_of_the_former_ones_are_a_new_generation(
    service, folder, put, overwrite, one_tick, before
):
    one_tick(put(scheme="first"))
    if before == "recalled":
        with PluginService(plugin_dirs=[folder], bundled=False, config=Config()) as earlier:
            earlier.discover()
    service.load(*["x"] * (before == "mapped"))
    assert (service.entry("x").plugin.probe is None) == (before == "recalled")
    overwrite(scheme="second")

    assert summary(service.refresh()) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"second": "x"}
    write(service, "second://host/file")
    overwrite(variant="init-plugin-crashes")
    (change,) = service.refresh()
    assert "quarantined: crashed" in change.refusal.message
    assert service.refresh() == []
    overwrite(scheme="third")
    assert summary(service.refresh()) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"third": "x"}
    assert service.refresh() == []


def test_a_watch_follows_other_bytes_with_the_identity_of_those_that_were_loaded(
    service, put, overwrite, one_tick
):
    one_tick(put(scheme="first"))
    service.load()
    overwrite(scheme="second")
    changes, done = [], threading.Event()

    with service.watch(lambda change: (changes.append(change), done.set())):
        assert done.wait(PATIENCE_S)

    assert summary(changes) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"second": "x"}


def test_a_watch_drops_a_plugin_whose_file_went_after_a_refresh_had_not_followed_it(
    service, put, overwrite, one_tick, monkeypatch
):
    path = Path(put(scheme="first"))
    one_tick(path)
    service.load()
    overwrite(scheme="second")
    call_at(monkeypatch, "modular_tf.service.plugins:KnownPlugins.scanned", "before", interrupt)
    with pytest.raises(KeyboardInterrupt):
        service.refresh()
    path.unlink()
    changes, done = [], threading.Event()

    with service.watch(lambda change: (changes.append(change), done.set())):
        assert done.wait(PATIENCE_S)

    assert summary(changes) == [("removed", "x", "loaded")]
    assert service.schemes() == {}


def interrupt():
    raise KeyboardInterrupt


def test_a_file_is_read_until_no_other_can_have_its_identity(service, put, monkeypatch):
    path, read = Path(put()), []
    service.load()
    age_ns = time_ns() - path.stat().st_ctime_ns
    monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", age_ns)
    sha256_of = file_identity.sha256_of
    monkeypatch.setattr(file_identity, "sha256_of", lambda fd: read.append(fd) or sha256_of(fd))

    assert service.refresh([path]) == []
    assert len(read) == 1
    assert service.refresh([path]) == []
    assert len(read) == 1


def test_what_comes_with_this_package_is_not_read_again(monkeypatch):
    read = []
    with PluginService(config=Config()) as service:
        service.discover()
        bundled = [record.path for record in service.plugins() if record.source == "bundled"]
        assert bundled
        monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", time_ns())
        monkeypatch.setattr(file_identity, "sha256_of", read.append)

        assert service.refresh(bundled) == []
    assert read == []


def test_a_replaced_file_that_a_search_has_met_is_one_plugin(service, put):
    put(scheme="first")
    service.load("x")
    put(scheme="second")
    service.discover()

    assert summary(service.refresh()) == [("replaced", "x", "loaded")]
    assert [record.name for record in service.plugins()] == ["x"]
    assert service.schemes() == {"second": "x"}


def test_a_file_that_changed_since_it_was_found_whole_has_its_turn_later(service, put):
    path = put(scheme="first")
    service.load("x")
    put(scheme="second")
    whole = Change(path, ChangeKind.REPLACED, FileIdentity.at(path))
    put(scheme="third")

    assert service._hot_reload.follow([whole]) == []
    assert service.schemes() == {"first": "x"}
    whole = Change(path, ChangeKind.REPLACED, FileIdentity.at(path))
    assert summary(service._hot_reload.follow([whole])) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"third": "x"}


def test_a_scheme_that_a_new_generation_gives_up_is_free_for_others(service, put):
    put("liba.so", scheme="same")
    put("libb.so", scheme="same")
    service.load()
    put("liba.so", scheme="other")

    service.refresh()

    assert service.schemes() == {"other": "a", "same": "b"}


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_another_name_of_the_old_file_becomes_a_plugin_of_its_own(service, put, folder, how):
    path = put(scheme="first")
    service.load("x")
    os.link(path, folder / "libz.so")
    assert service.refresh() == []
    if how == "removed":
        Path(path).unlink()
    else:
        put(scheme="second")

    changes = service.refresh([path])

    expected = ("removed", "x") if how == "removed" else ("replaced", "x")
    assert [change[:2] for change in summary(changes)] == [expected, ("appeared", "z")]
    assert service.schemes()["first"] == "z"


def test_schemes_that_the_new_generation_lacks_end(service, put):
    put(variant="two-schemes", scheme="one")
    service.load("x")
    before = set(service.schemes())
    put(scheme="one")

    service.refresh()

    assert len(before) == 2
    assert service.schemes() == {"one": "x"}


def test_a_scheme_of_somebody_else_is_not_taken(service, put):
    put("liba.so", scheme="mine")
    put("libb.so", scheme="yours")
    service.load()
    put("libb.so", scheme="mine")

    (change,) = service.refresh()

    assert change.refusal is not None
    assert service.schemes() == {"mine": "a", "yours": "b"}


def test_of_two_new_generations_with_one_scheme_the_first_has_it(service, put):
    put("liba.so", scheme="one")
    put("libb.so", scheme="two")
    service.load("a", "b")
    put("liba.so", scheme="same")
    put("libb.so", scheme="same")

    first, second = service.refresh()

    assert (first.plugin, first.refusal) == ("a", None)
    assert second.plugin == "b"
    assert "'same' of b is taken by a" in second.refusal.message
    assert service.schemes() == {"same": "a", "two": "b"}
    write(service, "two://host/file")


def test_a_new_generation_has_what_is_left_of_its_schemes(service, put):
    put("liba.so", scheme="one")
    put("libb.so", scheme="two")
    service.load()
    put("liba.so", scheme="same")
    put("libb.so", variant="two-schemes", scheme="same")

    _, second = service.refresh()

    assert second.refusal is None
    (other,) = set(service.schemes()) - {"same"}
    assert service.schemes() == {"same": "a", other: "b"}
    assert [reason.rule for reason in service.report()["b"].reasons] == ["FS-018"]
    write(service, f"{other}://host/file")


def test_a_scheme_that_python_took_stays_with_python(service, put):
    class Nothing:
        def path_exists(self, _uri):
            return True

    put(scheme="same")
    service.load("x")
    undo = service.register_filesystem("same", Nothing(), replace=True)
    put(variant="versioned-symbols", scheme="same")

    service.refresh()

    taken = service.filesystem("same")
    assert taken.path_exists("same://host/nothing")
    undo()
    assert not service.filesystem("same").path_exists("same://host/nothing")


def test_fsspec_follows_the_generations(service, put):
    pytest.importorskip("fsspec")
    from modular_tf.fsspec import filesystem_class

    put(scheme="same")
    service.load("x")
    files = filesystem_class("same")(service=service)
    files.pipe_file("same://host/file", b"old")
    with files.open("same://host/file") as stream:
        put(variant="versioned-symbols", scheme="same")
        service.refresh()

        assert not files.exists("same://host/file")
        assert stream.read() == b"old"


def mappings():
    return len(Path("/proc/self/maps").read_bytes().splitlines())


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_same_contents_again_and_again_cost_nothing(service, put):
    def once():
        for scheme in ("first", "second"):
            put(scheme=scheme)
            service.refresh()
            write(service, f"{scheme}://host/file")

    service.load()
    once()
    once()
    gc.collect()
    before = mappings(), descriptors()
    for _ in range(10):
        once()
    gc.collect()

    assert mappings() <= before[0] + 10  # Python's own arenas come and go
    assert descriptors() == before[1]
    assert service.draining <= 1
