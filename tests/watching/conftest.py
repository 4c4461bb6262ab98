"""Pollers of folders, and what they reported."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from modular_tf.discovery.file_identity import FileIdentity, SeenFile
from modular_tf.service.configuration import Config
from modular_tf.service.reload.watching import Delays, Poller, take_snapshot
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.reload.watching import Change
    from modular_tf.service.report import PluginChange

PATIENCE_S = 60.0  # what nobody needs


class Report(NamedTuple):
    """One change, and what the file held when it was reported."""

    name: str
    kind: str
    content: bytes | None = None

    def __repr__(self) -> str:
        size = "" if self.content is None else f", {len(self.content)} bytes, {hash(self.content)}"
        return f"{self.name} {self.kind}{size}"


class Watched:
    """A running watcher and what it has reported so far."""

    def __init__(self, places: tuple[Path, ...], delays: Delays) -> None:
        self._reports: list[Report] = []
        self._news = threading.Condition()
        paths = [str(place) for place in places]
        self.poller = Poller(lambda: paths, take_snapshot(paths), self._note, 0.05, delays)
        self.poller.start()

    def _note(self, changes: list[Change]) -> None:
        for change in changes:
            path = Path(change.path)
            try:
                content = path.read_bytes()
            except OSError:
                content = None
            with self._news:
                self._reports.append(Report(path.name, change.kind.value, content))
                self._news.notify_all()

    def reports(self, *expected: Report) -> None:
        """Wait until exactly these were reported, in any order, and forget them."""
        with self._news:
            self._news.wait_for(lambda: len(self._reports) >= len(expected), PATIENCE_S)
            found, self._reports = self._reports, []
        assert sorted(map(repr, found)) == sorted(map(repr, expected))

    def reports_nothing_for(self, seconds: float) -> None:
        """Wait and see that nothing is reported meanwhile."""
        time.sleep(seconds)
        assert self._reports == []


@pytest.fixture
def watched() -> Iterator[Callable[..., Watched]]:
    """Start pollers, which end with the test."""
    made: list[Watched] = []

    def make(*places: Path, delays: Delays) -> Watched:
        made.append(Watched(places, delays))
        return made[-1]

    yield make
    for watching in made:
        watching.poller.close()


@pytest.fixture(scope="session")
def library(fixture_plugin) -> bytes:
    """The bytes of a whole library."""
    content: bytes = fixture_plugin("needed-none").read_bytes()
    return content


@pytest.fixture(scope="session")
def other_library(fixture_plugin) -> bytes:
    """The bytes of another whole library."""
    content: bytes = fixture_plugin("needed-none", scheme="another").read_bytes()
    return content


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder to watch."""
    made: Path = tmp_path / "plugins"
    made.mkdir()
    return made


@pytest.fixture
def put(fixture_plugin, folder) -> Callable[..., str]:
    """Place a fixture plugin of some variant in the folder, as one file that replaces another."""

    def place(name="libx.so", variant="needed-none", scheme="first"):
        temporary = folder / f".{name}.new"
        shutil.copyfile(fixture_plugin(variant, scheme=scheme), temporary)
        temporary.replace(folder / name)
        return str(folder / name)

    return place


@pytest.fixture
def overwrite(fixture_plugin, folder) -> Callable[..., None]:
    """Write a fixture plugin into a file that is there, in place."""

    def place(name="libx.so", variant="needed-none", scheme="second"):
        with (folder / name).open("r+b") as stream:
            content = fixture_plugin(variant, scheme=scheme).read_bytes()
            stream.write(content)
            stream.truncate()

    return place


@pytest.fixture
def one_tick(monkeypatch) -> Callable[[str], None]:
    """Have a file one size and time, whatever is written to it, and that time count as recent."""
    of, tick_ns, files = FileIdentity.of.__func__, time.time_ns() - 1_000_000_000, set()
    is_settled = SeenFile.is_settled

    def same(cls, status):
        identity = of(cls, status)
        is_same = identity[:2] in files
        return (
            identity._replace(size=1, mtime_ns=tick_ns, ctime_ns=tick_ns) if is_same else identity
        )

    def settled(seen, now_ns):
        is_same = seen.identity is not None and seen.identity[:2] in files
        return not is_same and is_settled(seen, now_ns)

    monkeypatch.setattr(FileIdentity, "of", classmethod(same))
    monkeypatch.setattr(SeenFile, "is_settled", settled)
    return lambda path: files.add(of(FileIdentity, Path(path).stat())[:2])


@pytest.fixture
def service(folder) -> Iterator[PluginService]:
    """A service for the folder alone, which has loaded nothing yet."""
    with PluginService(plugin_dirs=[folder], bundled=False, config=Config()) as made:
        yield made


def summary(changes: list[PluginChange]) -> list[tuple[str, str, str]]:
    """Return what happened to which plugin, and its state now."""
    return [(change.kind.value, change.plugin, change.record.state.value) for change in changes]


def write(service: PluginService, uri: str, content: bytes = b"content") -> Filesystem:
    """Write a file, and return the filesystem that took it."""
    filesystem = service.filesystem_for(uri)
    with filesystem.new_writable_file(uri) as file:
        file.append(content)
    return filesystem
