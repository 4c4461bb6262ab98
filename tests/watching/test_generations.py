"""What a service makes of plugin files that others replace: generations."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from modular_tf.errors import ModularTFError, PluginError
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.watching.conftest import summary, write


def replace_by_another(_, overwrite):
    overwrite(variant="versioned-symbols", scheme="same")


def remove(path, _):
    Path(path).unlink()


@pytest.mark.parametrize(
    ("kind", "deed", "serving"),
    [("replaced", replace_by_another, {"same": "x"}), ("removed", remove, {})],
)
def test_the_old_generation_serves_what_is_open_until_the_service_is_closed(
    kind, deed, serving, service, put, overwrite
):
    path = put(scheme="same")
    service.watch().close()  # from now on files may be overwritten in place
    service.load("x")
    uri = "same://host/file"
    filesystem = write(service, uri, b"old")
    reader = filesystem.new_random_access_file(uri)
    writer = filesystem.new_writable_file("same://host/other")
    region = filesystem.new_read_only_memory_region_from_file(uri)
    del filesystem

    deed(path, overwrite)
    assert summary(service.refresh()) == [(kind, "x", "loaded")]

    assert service.schemes() == serving
    assert reader.read(0, 3) == b"old"
    writer.append(b"more")
    assert writer.tell() == 4
    writer.close()
    assert bytes(region.view()) == b"old"
    service.close()
    with pytest.raises(ModularTFError):
        reader.read(0, 3)


def test_the_old_generation_goes_on_until_nobody_holds_anything_of_it(service, put):
    put(scheme="same")
    service.load("x")
    old = write(service, "same://host/file", b"old")
    reader = old.new_random_access_file("same://host/file")

    put(variant="versioned-symbols", scheme="same")
    service.refresh()

    assert old.path_exists("same://host/file")
    assert service.filesystem("same") is not old
    del old
    gc.collect()
    service.refresh()
    assert service.draining == 1
    assert reader.read(0, 3) == b"old"

    del reader  # it holds its filesystem
    gc.collect()
    service.refresh()
    assert service.draining == 0


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


def test_a_replaced_file_that_a_search_has_met_is_one_plugin(service, put):
    put(scheme="first")
    service.load("x")
    put(scheme="second")
    service.discover()

    assert summary(service.refresh()) == [("replaced", "x", "loaded")]
    assert [record.name for record in service.plugins()] == ["x"]
    assert service.schemes() == {"second": "x"}
