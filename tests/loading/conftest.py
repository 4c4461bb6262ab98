"""Plugins with odd registrations, and services that load one plugin beside good ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.service.report import PluginRecord

SOURCE = Path(__file__).with_name("odd_plugin.c")


def odd_plugin(*oddities: str, scheme: str | None = None) -> Path:
    """Build `odd_plugin.c` with macros of its own."""
    macros = [*oddities, *([f'SCHEME="{scheme}"'] if scheme is not None else [])]
    compiled = compile_object(SOURCE, macros)
    return link_library("libodd.so", [compiled])


class Traces:
    """What constructors left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def names(self) -> list[str]:
        """The names of the libraries whose constructors ran."""
        return sorted(entry.name for entry in self._folder.iterdir())


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traces:
    """Collect the traces of libraries that say by a constructor that they were mapped."""
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.setenv("TRACES", str(folder))
    return Traces(folder)


@pytest.fixture
def load_beside_good_ones(fixture_plugin) -> Callable[[Path], PluginRecord]:
    """Load a library with a good plugin before and after it, and the bundled ones.

    Whatever becomes of the library, all others must serve.
    """

    def load(library: Path) -> PluginRecord:
        before = fixture_plugin("good", scheme="before")
        after = fixture_plugin("needed-none", scheme="after")
        with PluginService(plugin_paths=[before, library, after]) as service:
            report = service.load()
            schemes = set(service.schemes())
            service.filesystem("before").create_dir("before://h/x")
            service.filesystem("after").create_dir("after://h/x")
            assert service.filesystem("file").path_exists("/")
        others = [found for found in report.plugins if found.path != str(library)]
        assert {"before", "after", "", "file", "ram"} <= schemes
        assert [found.state for found in others] == [State.LOADED] * len(others)
        (record,) = (found for found in report.plugins if found.path == str(library))
        return record

    return load


_LOAD_AND_TELL = """
import json, sys
from modular_tf.service.service import PluginService

with PluginService(plugin_paths=sys.argv[1:]) as service:
    odd, *others = service.load().plugins
    assert {"", "file", "ram"} <= set(service.schemes())
    said = [{**reason.as_dict(), "fatal": reason in odd.reasons}
            for reason in (*odd.reasons, *odd.warnings)]
print(json.dumps({"schemes": odd.schemes, "state": odd.state.value, "said": said}))
"""


@pytest.fixture
def load_in_child(run_python) -> Callable[[Path], dict[str, Any]]:
    """Load a library that may end the process in a process of its own; return what it told."""

    def load(library: Path) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(run_python(_LOAD_AND_TELL, library).stdout)
        return told

    return load
