"""What a service answers while another of its threads reads a large library."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from modular_tf.discovery import file_identity
from modular_tf.service.report import State
from tests.filesystem.memory_store import MemoryStore

ENOUGH_S = 30.0  # what no answer needs
READERS = {
    "load": lambda service, path: service.load(path),
    "discover": lambda service, _: service.discover(),
    "refresh": lambda service, _: service.refresh(),
    "refresh, what is known": lambda service, _: service.refresh(),
    "why": lambda service, path: service.entry(path),
}


class HeldReading:
    """The hash of the library that has the name is held until it may end."""

    def __init__(self, name):
        self._name, self._sha256_of = name, file_identity.sha256_of
        self.begun, self.may_end = threading.Event(), threading.Event()

    def sha256_of(self, fd):
        if Path(f"/proc/self/fd/{fd}").resolve().name == self._name:
            self.begun.set()
            assert self.may_end.wait(2 * ENOUGH_S)
        return self._sha256_of(fd)


def use_all_but_the_library(service):
    assert service.schemes()["old"] == service.report()["old"].name == "old"
    assert not service.filesystem("ram").path_exists("ram://nothing")
    assert service.entry("old").plugin.state is State.LOADED
    service.load("old")
    service.register_filesystem("mine", MemoryStore())()


@pytest.mark.parametrize("reader", READERS)
def test_nobody_waits_for_the_reading_of_a_library(
    reader, make_service, plugin_file, tmp_path, monkeypatch
):
    service = make_service(tmp_path / "plugins", bundled=True)
    plugin_file("plugins/old.so", scheme="old")
    service.load()
    path = plugin_file("plugins/large.so", scheme="large")
    held = HeldReading("large.so")
    if reader == "refresh, what is known":  # since it changed a moment ago
        held = HeldReading("old.so")
        monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", 10**18)
    monkeypatch.setattr(file_identity, "sha256_of", held.sha256_of)
    with ThreadPoolExecutor(2) as threads:
        reading = threads.submit(READERS[reader], service, str(path))
        try:
            assert held.begun.wait(ENOUGH_S)
            threads.submit(use_all_but_the_library, service).result(ENOUGH_S)
        finally:
            held.may_end.set()
        reading.result(ENOUGH_S)
    assert service.report()["large"]
