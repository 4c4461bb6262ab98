"""What a service makes of plugin files that come, are replaced and go: generations."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import pytest

from modular_tf.configuration import Config
from modular_tf.errors import ClosedError, ModularTFError, PluginError, UnimplementedError
from modular_tf.hookspecs import hookimpl
from modular_tf.report import State
from modular_tf.service import PluginService
from modular_tf.watching.change import Change, ChangeKind
from modular_tf.watching.snapshot import file_identity


@pytest.fixture
def put(fixture_plugin, folder):
    """Place a fixture plugin of some variant in the folder, as one file that replaces another."""

    def place(name="libx.so", variant="needed-none", scheme="first"):
        temporary = folder / f".{name}.new"
        shutil.copyfile(fixture_plugin(variant, scheme=scheme), temporary)
        temporary.replace(folder / name)
        return str(folder / name)

    return place


@pytest.fixture
def overwrite(fixture_plugin, folder):
    """Write a fixture plugin into a file that is there, in place."""

    def place(name="libx.so", variant="needed-none", scheme="second"):
        with (folder / name).open("r+b") as stream:
            content = fixture_plugin(variant, scheme=scheme).read_bytes()
            stream.write(content)
            stream.truncate()

    return place


@pytest.fixture
def service(folder):
    """A service for the folder alone, which has loaded nothing yet."""
    with PluginService(plugin_dirs=[folder], bundled=False, config=Config()) as made:
        yield made


def told(changes):
    return [(change.kind.value, change.plugin, change.record.state.value) for change in changes]


def write(service, uri, content=b"content"):
    filesystem = service.filesystem_for(uri)
    with filesystem.new_writable_file(uri) as file:
        file.append(content)
    return filesystem


# -- new and removed files ---------------------------------------------------------------------


def test_a_new_file_is_loaded(service, put):
    service.load()
    path = put()

    (change,) = service.refresh()

    assert told([change]) == [("appeared", "x", "loaded")]
    assert change.path == path
    assert service.schemes() == {"first": "x"}
    assert service.refresh() == []


def test_only_the_named_paths_are_looked_at(service, put):
    service.load()
    put("libx.so", scheme="first")
    path = put("liby.so", scheme="second")

    assert told(service.refresh([path])) == [("appeared", "y", "loaded")]
    assert service.schemes() == {"second": "y"}
    assert told(service.refresh()) == [("appeared", "x", "loaded")]


def test_a_file_that_may_not_load_is_listed_with_its_reason(service, put, folder):
    service.load()
    put("libbad.so", "no-init")
    (folder / "libcut.so").write_bytes(b"\x7fELF")

    changes = service.refresh()

    assert told(changes) == [("appeared", "bad", "rejected"), ("appeared", "cut", "rejected")]
    assert [change.record.reason.rule for change in changes] == ["LD-010", "LD-005"]
    assert {r.name: r.state for r in service.plugins()} == {
        "bad": State.REJECTED,
        "cut": State.REJECTED,
    }


def test_a_removed_file_serves_nothing_new(service, put):
    path = put()
    service.load("x")
    uri = "first://host/file"
    filesystem = write(service, uri)
    reader = filesystem.new_random_access_file(uri)
    region = filesystem.new_read_only_memory_region_from_file(uri)
    del filesystem
    Path(path).unlink()

    changes = service.refresh()

    assert told(changes) == [("removed", "x", "loaded")]
    assert service.plugins() == []
    assert service.schemes() == {}
    with pytest.raises(UnimplementedError):
        service.filesystem_for(uri)
    assert reader.read(0, 100) == b"content"
    assert bytes(region.view()) == b"content"


def test_a_removed_plugin_comes_back(service, put):
    path = put()
    service.load()
    Path(path).unlink()
    service.refresh()
    put(scheme="second")

    assert told(service.refresh()) == [("appeared", "x", "loaded")]
    assert service.schemes() == {"second": "x"}


def test_a_plugin_in_the_shadow_of_a_removed_one_serves(service, put):
    path = put("liba.so", scheme="same")
    put("libb.so", scheme="same")
    service.load()
    assert service.schemes() == {"same": "a"}
    Path(path).unlink()

    service.refresh()

    assert service.schemes() == {"same": "b"}
    assert service.report()["b"].state is State.LOADED


# -- replaced files ----------------------------------------------------------------------------


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "not yet mapped"])
@pytest.mark.parametrize("how", ["renamed", "overwritten"])
def test_a_replaced_file_is_a_new_generation(service, put, overwrite, how, mapped):
    put(scheme="first")
    service.watch().close()  # from now on files may be overwritten in place
    if mapped:
        service.load("x")
    (put if how == "renamed" else overwrite)(scheme="second")

    assert told(service.refresh()) == [("replaced", "x", "loaded")]
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
    assert told(service.refresh()) == [("replaced", "x", "loaded")]

    assert not service.filesystem_for(uri).path_exists(uri)
    assert reader.read(0, 3) == b"old"
    writer.append(b"more")
    assert writer.tell() == 4
    writer.close()
    reader.close()
    assert bytes(region.view()) == b"old"


def test_a_filesystem_that_is_held_goes_on(service, put):
    put(scheme="same")
    service.load("x")
    old = write(service, "same://host/file", b"old")

    put(variant="versioned-symbols", scheme="same")
    service.refresh()

    assert old.path_exists("same://host/file")
    assert service.filesystem("same") is not old
    assert not service.filesystem("same").path_exists("same://host/file")
    with old.new_random_access_file("same://host/file") as reader:
        assert reader.read(0, 3) == b"old"


def test_the_old_generation_is_closed_with_the_last_that_is_open(service, put):
    put(scheme="same")
    service.load("x")
    filesystem = write(service, "same://host/file", b"old")
    reader = filesystem.new_random_access_file("same://host/file")
    put(variant="versioned-symbols", scheme="same")
    service.refresh()
    assert service.draining == 1

    del filesystem
    gc.collect()
    service.refresh()
    assert service.draining == 1

    reader.close()
    del reader  # whoever holds a file holds its filesystem
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

    assert told([change]) == [("replaced", "x", "loaded")]
    assert change.kept is not None
    assert change.kept.rule == "LD-085"
    assert rule in change.kept.message or change.kept.message
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
            nobody = "modular_tf.first_contact.zygote_process.find_interpreter"
            patched.setattr(nobody, lambda: None)
            (change,) = service.refresh()
            assert change.kept is not None
            assert service.schemes() == {"same": "x"}

        (change,) = service.refresh()

        assert change.kept is None
        assert service.schemes() == {"second": "x"}


def test_a_good_file_after_a_bad_one_is_the_next_generation(service, put):
    put(scheme="same")
    service.load("x")
    put(variant="no-init")
    service.refresh()
    put(scheme="second")

    (change,) = service.refresh()

    assert change.kept is None
    assert service.schemes() == {"second": "x"}
    assert service.report()["x"].warnings == ()


def test_a_good_file_in_the_place_of_a_bad_one_is_loaded(service, put):
    put(variant="no-init")
    service.load()
    assert service.report()["x"].state is State.REJECTED
    put(scheme="second")

    assert told(service.refresh()) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"second": "x"}


def test_a_bad_file_in_the_place_of_a_bad_one_is_judged_anew(service, put):
    put(variant="no-init")
    service.load()
    put(variant="unresolved-symbol")

    (change,) = service.refresh()

    assert told([change]) == [("replaced", "x", "rejected")]
    assert change.record.reason.rule == "LD-014"


def test_the_same_bytes_are_no_new_generation(service, put, folder):
    put()
    service.load("x")
    filesystem = service.filesystem("first")
    put()
    os.utime(folder / "libx.so", (1, 1))

    assert service.refresh() == []
    assert service.filesystem("first") is filesystem


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


def test_a_replaced_file_that_a_search_has_met_is_one_plugin(service, put):
    put(scheme="first")
    service.load("x")
    put(scheme="second")
    service.discover()

    assert told(service.refresh()) == [("replaced", "x", "loaded")]
    assert [record.name for record in service.plugins()] == ["x"]
    assert service.schemes() == {"second": "x"}


def test_a_file_that_changed_since_it_was_found_whole_has_its_turn_later(service, put):
    path = put(scheme="first")
    service.load("x")
    put(scheme="second")
    whole = Change(path, ChangeKind.REPLACED, file_identity(path))
    put(scheme="third")

    assert service._follow([whole]) == []
    assert service.schemes() == {"first": "x"}
    whole = Change(path, ChangeKind.REPLACED, file_identity(path))
    assert told(service._follow([whole])) == [("replaced", "x", "loaded")]
    assert service.schemes() == {"third": "x"}


def test_a_scheme_that_a_new_generation_gives_up_is_free_for_others(service, put):
    put("liba.so", scheme="same")
    put("libb.so", scheme="same")
    service.load()
    put("liba.so", scheme="other")

    service.refresh()

    assert service.schemes() == {"other": "a", "same": "b"}


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

    assert change.kept is not None
    assert service.schemes() == {"mine": "a", "yours": "b"}


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


# -- telling -----------------------------------------------------------------------------------


def test_hooks_are_told(folder, put):
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


def test_a_change_shows_itself_as_json(service, put):
    service.load()
    path = put()

    (change,) = service.refresh()

    assert change.as_dict() == {
        "change": "appeared",
        "path": path,
        "plugin": "x",
        "state": "loaded",
        "schemes": ["first"],
        "device_types": [],
        "reason": None,
        "kept": None,
    }


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


def test_a_watch_tries_all_plugins_in_children_of_one_process(folder, put):
    with PluginService(
        plugin_dirs=[folder], bundled=False, config=Config(first_contact="always")
    ) as service:
        service.watch().close()
        helpers = []
        for scheme in ("one", "two", "three"):
            put(scheme=scheme)
            (change,) = service.refresh()
            assert change.kept is None
            helpers.append(service._admission._trials._zygotes.warm())

        assert helpers == [helpers[0]] * 3

    assert service._admission._trials is None


def mappings():
    return len(Path("/proc/self/maps").read_text().splitlines())


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
    for _ in range(20):
        once()
    gc.collect()

    assert mappings() <= before[0] + 10  # Python's own arenas come and go
    assert descriptors() == before[1]
    assert service.draining <= 1
