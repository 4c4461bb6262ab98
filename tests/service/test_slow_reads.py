"""What a service answers while another of its threads reads a large library."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery import file_identity
from modular_tf.errors import ClosedError
from modular_tf.service import plugins
from modular_tf.service.registrations import Registrations
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from modular_tf.filesystem.registry import SchemeRegistration
    from modular_tf.service.service import PluginService

ENOUGH_S = 30.0  # what no answer needs


class HeldReading:
    """The hash of the library that has the name is held until `end`."""

    def __init__(self) -> None:
        self.name = "large.so"
        self.begun = threading.Event()
        self.readers = threading.Semaphore(0)
        self._may_end = threading.Event()

    def sha256_of(self, fd: int) -> str:
        if Path(f"/proc/self/fd/{fd}").resolve().name == self.name:
            self.begun.set()
            self.readers.release()
            assert self._may_end.wait(2 * ENOUGH_S)
        return file_sha256(fd)

    def end(self) -> None:
        self._may_end.set()


file_sha256 = file_identity.sha256_of


@pytest.fixture
def held(monkeypatch) -> Iterator[HeldReading]:
    held = HeldReading()
    yield held
    held.end()
    monkeypatch.undo()


class OneFile:
    """A filesystem of Python."""

    def path_exists(self, uri: str) -> bool:
        return not uri


READERS: dict[str, Callable[[PluginService, str], object]] = {
    "load": lambda service, path: service.load(path),
    "discover": lambda service, _: service.discover(),
    "refresh": lambda service, _: service.refresh(),
    "refresh, what is known": lambda service, _: service.refresh(),
    "why": lambda service, path: service.entry(path),
}


@pytest.fixture
def read_slowly(make_service, plugin_file, tmp_path, monkeypatch, held):
    """Return what makes a service whose reader reads a library in a thread, until that may end."""

    def begin(reader: str, threads: ThreadPoolExecutor) -> tuple[PluginService, Future[object]]:
        service = make_service(tmp_path / "plugins", bundled=True)
        plugin_file("plugins/old.so", scheme="old")
        service.load()
        path = plugin_file("plugins/large.so", scheme="large")
        if reader == "refresh, what is known":  # since it changed a moment ago
            held.name = "old.so"
            monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", 10**18)
        monkeypatch.setattr(file_identity, "sha256_of", held.sha256_of)
        reading = threads.submit(READERS[reader], service, str(path))
        assert held.begun.wait(ENOUGH_S)
        return service, reading

    return begin


@pytest.mark.parametrize("reader", READERS)
def test_nobody_waits_for_the_reading_of_a_library(read_slowly, held, reader):
    def ask() -> list[object]:
        answers: list[object] = [service.schemes()["old"], service.report()["old"].name]
        answers.append(service.filesystem("ram").path_exists("ram://nothing"))
        answers.append(service.entry("old").plugin.state)
        service.load("old")
        service.register_filesystem("mine", OneFile())()
        return answers

    with ThreadPoolExecutor(2) as threads:
        service, reading = read_slowly(reader, threads)
        try:
            asking = threads.submit(ask)
            assert asking.result(ENOUGH_S) == ["old", "old", False, State.LOADED]
        finally:
            held.end()
        reading.result(ENOUGH_S)
    assert service.report()["large"]


@pytest.mark.parametrize("reader", ["load", "refresh, what is known"])
def test_a_service_closes_while_a_library_is_read(read_slowly, held, reader):
    with ThreadPoolExecutor(2) as threads:
        service, reading = read_slowly(reader, threads)
        closing = threads.submit(service.close)
        closing.exception(ENOUGH_S)
        held.end()

        assert closing.result(ENOUGH_S) is None
        assert isinstance(reading.exception(ENOUGH_S), ClosedError | None)
    assert service.schemes() == {}


def test_threads_that_search_at_once_find_each_plugin_once(make_service, plugin_file, tmp_path):
    service = make_service(tmp_path / "plugins")
    names = [f"p{number}" for number in range(8)]
    for name in names:
        plugin_file(f"plugins/{name}.so", scheme=name)
    ways: list[Callable[[], object]] = [service.load, service.discover, service.refresh]
    ways += [partial(service.load, tmp_path / "plugins" / f"{name}.so") for name in names]
    with ThreadPoolExecutor(len(ways)) as threads:
        for future in [threads.submit(way) for way in ways]:
            future.result(ENOUGH_S)
    service.load()

    assert sorted(plugin.name for plugin in service.plugins()) == names
    assert sorted(service.schemes()) == names


def test_threads_that_load_a_file_by_two_names_find_it_once(
    make_service, plugin_file, tmp_path, monkeypatch, held
):
    service = make_service(tmp_path / "plugins")
    path = plugin_file("elsewhere/large.so", scheme="large")
    other = path.with_name("other.so")
    other.symlink_to(path)
    monkeypatch.setattr(file_identity, "sha256_of", held.sha256_of)
    monkeypatch.setattr(plugins, "_TIMEOUT_S", 0.1)  # that one waits for the other's reading
    with ThreadPoolExecutor(2) as threads:
        loading = [threads.submit(service.load, name) for name in (path, other)]
        assert all(held.readers.acquire(timeout=ENOUGH_S) for _ in loading)
        held.end()
        for load in loading:
            load.result(ENOUGH_S)

    assert [plugin.state for plugin in service.plugins()] == [State.LOADED]


def test_a_plugin_is_not_loaded_before_it_serves(make_service, plugin_file, tmp_path, monkeypatch):
    """It was reported as loaded, without a scheme, while it was registered."""
    path = plugin_file("plugins/new.so", scheme="new")
    service = make_service(tmp_path / "plugins")
    found: list[object] = []

    def enter_scheme(self: Registrations, place: SchemeRegistration) -> None:
        with ThreadPoolExecutor(1) as other:
            (plugin,) = other.submit(service.plugins).result(ENOUGH_S)
        found.append(plugin.state)
        entered(self, place)

    entered = Registrations.enter_scheme
    monkeypatch.setattr(Registrations, "enter_scheme", enter_scheme)
    service.load(path)
    monkeypatch.undo()

    assert found == [State.FOUND]
    assert [plugin.schemes for plugin in service.plugins()] == [("new",)]
