"""A service that is closed while another thread opens a plugin: what comes of it is closed too."""

from __future__ import annotations

import threading

import pytest

from modular_tf.device import platform as platforms
from modular_tf.errors import ClosedError
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.service.configuration import Config

PATIENCE_S = 60.0  # what nobody needs


pytestmark = pytest.mark.usefixtures("home")

CONFIG = Config(first_contact="new", load="lazy")


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


def test_a_filesystem_that_is_opened_too_late_is_closed(plugin_file, make_service, monkeypatch):
    service = make_service(plugin_file("liblate.so", scheme="late"), config=CONFIG)
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


def test_a_platform_that_is_set_up_too_late_is_taken_down(device_file, make_service, monkeypatch):
    service = make_service(device_file("liblate.so"), config=CONFIG)
    service.load()
    held = set(platforms._shared)
    close_during(service, service.devices, monkeypatch, platforms, "read_device_tables")

    assert set(platforms._shared) == held
