"""Services in known surroundings: copies of the fixture plugin under names of a test's choice."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def plugin_file(fixture_plugin, tmp_path) -> Callable[..., Path]:
    """Place a fixture plugin at a path below the test's folder."""

    def place(path: str, variant: str = "needed-none", *, scheme: str = "fixture") -> Path:
        target: Path = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(fixture_plugin(variant, scheme=scheme), target)
        return target

    return place


@pytest.fixture
def device_file(fixture_device_plugin, tmp_path) -> Callable[..., Path]:
    """Place a fixture device plugin at a path below the test's folder."""

    def place(path: str, *, device_type: str = "FIXTURE", platform: str = "FIXTURE_CHIP") -> Path:
        target: Path = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        built = fixture_device_plugin("good", device_type=device_type, platform=platform)
        shutil.copyfile(built, target)
        return target

    return place


@pytest.fixture
def make_service() -> Iterator[Callable[..., PluginService]]:
    """Make services that are closed when the test ends; without the bundled plugins."""
    made: list[PluginService] = []

    def make(*paths: Path, **options: Any) -> PluginService:
        usual = {"bundled": False, "fsspec_fallback": False}
        made.append(PluginService(plugin_paths=paths, **{**usual, **options}))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """A site-packages directory of its own at the front of sys.path."""
    folder: Path = tmp_path / "venv" / "site-packages"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def home(monkeypatch, tmp_path_factory):
    """Give a test a memory of its own, and what the other tests have turned off."""
    folder = tmp_path_factory.mktemp("home")
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(folder))
    for variable in ("MODULAR_TF_FIRST_CONTACT", "MODULAR_TF_LOAD"):
        monkeypatch.delenv(variable)
    return folder
