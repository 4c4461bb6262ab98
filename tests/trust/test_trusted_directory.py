"""The way to our own files is judged as the way to a plugin is."""

import os
from types import SimpleNamespace

import pytest

from modular_tf.service.storage import private_directory
from modular_tf.service.storage.private_directory import PrivateDirectory, why_untrusted
from tests.trust.conftest import STRANGER


@pytest.fixture
def directory(home):
    """A directory of ours below a link, with a file."""
    private_directory._writers.cache_clear()
    (home / "real").mkdir(mode=0o755)
    (home / "link").symlink_to(home / "real")
    directory = PrivateDirectory(str(home / "link" / "modular_tf"))
    assert directory.create("file", b"content")
    return PrivateDirectory(directory.path)


def test_nobody_is_in_the_way(directory):
    assert why_untrusted(directory.path) is None
    assert why_untrusted(f"{directory.path}/not/there/yet") is None
    assert directory.read("file", 100) == b"content"
    message = why_untrusted(f"{directory.path}/file/not/a/directory")
    assert message.endswith("cannot be looked at: Not a directory")


def test_who_maintains_this_package_may_own_the_home(directory, home, give_to, monkeypatch):
    """In a container the home often belongs to the user of the image, who installed all of it."""
    give_to(home, user=STRANGER)
    ours = os.geteuid() or STRANGER + 1
    writers = private_directory.TrustedWriters(frozenset((0, os.geteuid(), ours, STRANGER)))
    monkeypatch.setattr(private_directory, "trusted_writers", lambda policy: writers)
    private_directory._writers.cache_clear()
    monkeypatch.setattr(os, "geteuid", lambda: ours)

    assert directory.read("file", 100) == b"content"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert why_untrusted(directory.path) is not None


def test_root_of_a_namespace_trusts_whom_the_root_directory_belongs_to(monkeypatch):
    """Root outside of it is shown as somebody else there."""
    status = os.stat

    def shown(path, *arguments, **options):
        if path == "/":
            return SimpleNamespace(st_uid=STRANGER)
        return status(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", shown)
    private_directory._writers.cache_clear()
    writers = private_directory._writers(0)
    private_directory._writers.cache_clear()

    assert writers.users == {0, STRANGER}
