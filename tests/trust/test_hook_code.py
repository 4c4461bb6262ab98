"""The code of hooks: what is hashed is what would be imported."""

import errno
import os

import pytest

from modular_tf.cli import lock
from modular_tf.discovery.trust.lock import code_of_hook
from modular_tf.rules.shortage import ShortageError


@pytest.fixture
def sites(tmp_path, monkeypatch):
    """Put two folders on the path, the first one first."""
    found = [tmp_path / "first", tmp_path / "second"]
    for site in reversed(found):
        site.mkdir()
        monkeypatch.syspath_prepend(str(site))
    return found


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("altered", [0, 1])
def test_of_a_namespace_package_the_modules_of_each_folder_count(altered, sites):
    modules = [write(site / "hooked_space" / "module.py", "") for site in sites]
    before = code_of_hook("hooked_space.module:x")

    modules[altered].write_text("altered = 1\n")

    assert code_of_hook("hooked_space.module:x") != before


def test_the_code_of_a_module_is_its_file(sites):
    module = write(sites[0] / "hooked_alone.py", "x = 1\n")

    assert code_of_hook("hooked_alone:x").size == module.stat().st_size


def test_modules_behind_a_link_to_a_folder_count_and_a_named_pipe_is_none(sites, tmp_path):
    """Nobody writes to a pipe, so that opening it would wait for ever."""
    module = write(tmp_path / "elsewhere" / "__init__.py", "more = 1\n")
    top = write(sites[0] / "hooked_linked" / "__init__.py", "top = 1\n")
    (sites[0] / "hooked_linked" / "more").symlink_to(module.parent)
    (sites[0] / "hooked_linked" / "itself").symlink_to(".")
    before = code_of_hook("hooked_linked.more:x")
    assert before.size == top.stat().st_size + module.stat().st_size  # each is there once

    os.mkfifo(sites[0] / "hooked_linked" / "pipe.py")
    assert code_of_hook("hooked_linked.more:x") == before
    module.write_text("altered = 1\n")
    assert code_of_hook("hooked_linked.more:x") != before


def test_a_folder_that_cannot_be_listed_leaves_the_code_unknown(sites, monkeypatch):
    write(sites[0] / "hooked_closed" / "__init__.py", "")
    closed = write(sites[0] / "hooked_closed" / "more" / "__init__.py", "").parent
    scandir = os.scandir

    def refuse(path):
        if os.fspath(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)

    with pytest.raises(PermissionError):
        code_of_hook("hooked_closed:x")


def test_a_lock_file_lacks_no_hook_for_want_of_descriptors(monkeypatch):
    def fail(value):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), value)

    monkeypatch.setattr(lock, "installed_hooks", lambda _: [("mine", "hooked:x")])
    monkeypatch.setattr(lock, "code_of_hook", fail)
    with pytest.raises(ShortageError):
        list(lock._hooks())
