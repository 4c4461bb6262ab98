"""Files that a caller names: they are looked at alone, as long as no source has a say in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf.errors import NotFoundError
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.discovery.site_folder import install

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def others(plugin_file, tmp_path, monkeypatch) -> Path:
    """A folder with one plugin, which every search finds."""
    plugin_file("others/libsame.so", "good", scheme="other")
    monkeypatch.setenv("MODULAR_TF_PLUGIN_PATH", str(tmp_path / "others"))
    return tmp_path / "others"


def _states(service):
    return {record.name: (record.state.value, record.source) for record in service.plugins()}


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("path", ["{0}/mine.so", "{0}", "./mine.so", "mine.so", "{0}/../mine.so"])
@pytest.mark.parametrize("ask", [PluginService.load, PluginService.entry])
def test_nothing_but_a_named_file_is_looked_at(
    ask, path, plugin_file, make_service, tmp_path, monkeypatch
):
    named = plugin_file("folder/mine.so", scheme="mine")
    monkeypatch.chdir(named.parent)
    (tmp_path / "mine.so").symlink_to(named)
    service = make_service()
    ask(service, path.format(named.parent))
    service.load("mine")

    assert _states(service) == {"mine": ("loaded", "argument")}
    assert service.report().searched == ()


@pytest.mark.usefixtures("others")
def test_a_later_search_finds_the_others_and_leaves_the_named_file_its_name(
    plugin_file, make_service
):
    named = plugin_file("mine/libsame.so", scheme="mine")
    service = make_service()
    service.load(named)
    filesystem = service.filesystem("mine")
    service.load()

    expected = {"same": ("loaded", "argument"), "same#2": ("loaded", "environment")}
    assert _states(service) == expected
    assert list(_states(service)) == list(expected)
    assert service.schemes() == {"mine": "same", "other": "same#2"}
    assert service.filesystem("mine") is filesystem


@pytest.mark.usefixtures("others")
def test_a_name_without_a_file_is_searched_for(plugin_file, make_service, monkeypatch):
    folder = plugin_file("here/libz.so").parent
    (folder / "same").mkdir()  # a folder that has the name of a plugin is not meant
    monkeypatch.chdir(folder)
    service = make_service()
    with pytest.raises(NotFoundError, match=r"found: \['same'\]"):
        service.load("libsame.so")
    service.load("same")
    assert _states(service) == {"same": ("loaded", "environment")}


@pytest.mark.parametrize("path", ["site-packages/pkg/libx.so", "link/libx.so", "folder"])
def test_a_file_of_a_distribution_is_still_compared_with_its_record(
    path, plugin_file, make_service, site, tmp_path
):
    library = plugin_file("venv/site-packages/pkg/libx.so")
    install(
        site, "pkg", record=b"pkg/libx.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n"
    )
    for folder in ("link", "folder"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "libx.so").symlink_to(library)
    service = make_service()
    service.load(tmp_path / ("venv" if path.startswith("site") else "") / path)
    (record,) = service.plugins()

    assert (record.name, record.source) == ("pkg", "distribution")
    assert (record.state, record.reason.rule) == (State.REJECTED, "LD-078")


def test_a_refresh_and_a_watch_follow_a_named_file_and_load_no_others(
    plugin_file, make_service, tmp_path
):
    plugin_file("folder/libother.so", "good", scheme="other")
    named = plugin_file("folder/libx.so", scheme="first")
    service = make_service(tmp_path / "folder")
    service.load(named)
    service.watch().close()
    new = plugin_file("elsewhere/libx.so", "versioned-symbols", scheme="second")
    new.rename(named)
    changes = service.refresh()

    assert [(change.kind.value, change.plugin) for change in changes] == [("replaced", "x")]
    assert service.schemes() == {"second": "x"}
    assert service.report()["other"].state is State.FOUND


def test_a_chain_of_links_that_no_system_follows_stops_nothing_else(
    plugin_file, make_service, tmp_path
):
    plugin_file("many/zz_good.so", scheme="good")
    before = "nowhere"
    for number in range(1_100):
        link = tmp_path / "many" / f"l{number:04}"  # no plugin by its name
        link.symlink_to(before)
        before = link.name
    for name in ("a.so", "b.so"):
        (tmp_path / "many" / name).symlink_to(before)

    service = make_service()
    service.load(tmp_path / "many")

    assert service.filesystem("good").scheme == "good"
    assert {name: state for name, (state, _) in _states(service).items()} == {
        "a": "rejected",
        "b": "rejected",
        "zz_good": "loaded",
    }
