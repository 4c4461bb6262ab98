"""Closing that is interrupted, or comes while others open something: all is closed in the end."""

from __future__ import annotations

import threading

import pytest

from modular_tf.device import platform as platforms
from modular_tf.errors import AbortedError, ClosedError, ResourceExhaustedError
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import Interrupt, interrupt, points

CONTENT = b"written and not closed\n" * 1000


def test_an_interrupted_close_is_finished_by_the_next(tmp_path):
    for point in points():
        service = PluginService()
        service.load("posix_filesystem", "ram_filesystem")
        fs = service.filesystem("")
        files = [tmp_path / name for name in ("a", "b", "c")]
        writers = [fs.open(str(file), "wb") for file in files]
        for writer in writers:
            writer.write(CONTENT)
        more = interrupt(service.close, point=point)
        lost = 0  # a write that was interrupted ends its file, which is reported and discarded
        try:
            service.close()
        except AbortedError:
            lost = 1
        assert service.closed
        found = [file.read_bytes() for file in files if file.exists()]
        assert found.count(CONTENT) >= 3 - lost
        assert all(writer.closed for writer in writers)
        with pytest.raises(ClosedError):
            fs.path_exists("/")
        if not more:
            assert point > 5
            break


def interrupted(*_, **__):
    raise Interrupt


def test_what_one_filesystem_failed_with_survives_an_interrupt_in_the_next(monkeypatch):
    service = PluginService()
    service.load("posix_filesystem")
    first, second = service.entry("posix_filesystem").filesystems.values()
    lost = first.open("/dev/full" if first.scheme == "" else "file:///dev/full", "wb")
    lost.write(CONTENT)
    with monkeypatch.context() as patch:
        patch.setattr(second, "close", interrupted)
        with pytest.raises(Interrupt):
            service.close()
    with pytest.raises(ResourceExhaustedError, match="/dev/full"):
        service.close()
    service.close()


# ---- While another thread opens a plugin ----

PATIENCE_S = 60.0  # what nobody needs
LAZY = Config(first_contact="new", load="lazy")


def close_during(service, use, monkeypatch, owner, name):
    """Close a service while another thread uses it and waits in a function of the package."""
    reached, closed, outcome = threading.Event(), threading.Event(), []
    function = getattr(owner, name)

    def wait_first(*arguments, **options):
        reached.set()
        assert closed.wait(PATIENCE_S)
        return function(*arguments, **options)

    def use_it():
        try:
            outcome.append(use())
        except ClosedError as error:
            outcome.append(error)

    monkeypatch.setattr(owner, name, wait_first)
    thread = threading.Thread(target=use_it)
    thread.start()
    assert reached.wait(PATIENCE_S)
    service.close()
    closed.set()
    thread.join(PATIENCE_S)
    return outcome[0]


@pytest.mark.usefixtures("home")
def test_a_filesystem_that_is_opened_too_late_is_closed(plugin_file, make_service, monkeypatch):
    service = make_service(plugin_file("liblate.so", scheme="late"), config=LAZY)
    service.load()
    made = []
    init = PluginFilesystem.__init__

    def note(self, *arguments, **options):
        init(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(PluginFilesystem, "__init__", note)
    outcome = close_during(
        service, lambda: service.filesystem("late"), monkeypatch, PluginFilesystem, "__init__"
    )

    assert isinstance(outcome, ClosedError)
    (filesystem,) = made
    with pytest.raises(ClosedError):
        filesystem.path_exists("late://x")


@pytest.mark.usefixtures("home")
def test_a_platform_that_is_set_up_too_late_is_taken_down(device_file, make_service, monkeypatch):
    service = make_service(device_file("liblate.so"), config=LAZY)
    service.load()
    held = set(platforms._shared)
    close_during(service, service.devices, monkeypatch, platforms, "read_device_tables")

    assert set(platforms._shared) == held
