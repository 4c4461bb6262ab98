"""What nobody else can have written is believed; what cannot be written is done without."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
from pathlib import Path

import pytest

from modular_tf.service.storage.private_directory import PrivateDirectory

SOMEBODY_ELSE = 54321


@pytest.fixture
def written(directory):
    """A directory with a file."""
    assert directory.create("file", b"content")
    return Path(directory.path)


@pytest.fixture
def refused(caplog):
    """Return what was reported of files that are not believed."""
    caplog.set_level(logging.WARNING, "modular_tf.storage")
    reported = lambda: [record.getMessage() for record in caplog.records]  # noqa: E731
    return lambda: [message for message in reported() if "storage.not_believed" in message]


@pytest.fixture
def give_away(monkeypatch):
    """Let somebody else own files, or be somebody else."""

    def give(*paths):
        if os.geteuid() == 0:
            for path in paths:
                os.chown(path, SOMEBODY_ELSE, -1, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY_ELSE)

    return give


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def is_refused(directory):
    """Return whether nothing is read from a directory, nor made in it."""
    return (
        directory.read("file", 100) is None
        and directory.real_path_of("newer", make=True) is None
        and not directory.create("new", b"new")
    )


@pytest.mark.parametrize("umask", [0, 0o077, 0o277])
def test_each_level_and_file_that_is_made_is_the_users_alone(tmp_path, umask):
    levels = [tmp_path / "home", *(tmp_path / "home" / name for name in (".local", ".local/state"))]
    levels.append(levels[-1] / "modular_tf")
    before = os.umask(umask)
    try:
        directory = PrivateDirectory(str(levels[-1]))
        assert directory.create("created", b"content")
        assert directory.real_path_of("made", make=True)
        if not umask & 0o700:
            with directory.open_for_lock("lock"):
                pass
    finally:
        os.umask(before)

    assert {mode_of(level) for level in levels} == {0o700}
    names = {"created", "made"} if umask & 0o700 else {"created", "made", "lock"}
    assert {path.name: mode_of(path) for path in levels[-1].iterdir()} == dict.fromkeys(
        names, 0o600
    )


@pytest.mark.parametrize("place", [None, "of-nobody", "{}/file", "{}/file/below", "{}/nul\0"])
def test_there_may_be_no_place(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    nowhere = PrivateDirectory(place and place.format(tmp_path))

    assert is_refused(nowhere)
    assert not nowhere.remove("file")
    assert nowhere.changed_at() == {}
    with nowhere.open_for_lock("lock") as file:
        assert file is None
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208
    assert not Path("/of-nobody").exists()


def test_what_was_removed_meanwhile_is_made_again(directory, written):
    shutil.rmtree(written.parent)

    assert directory.read("file", 100) is None
    assert directory.create("file", b"new")
    assert directory.read("file", 100) == b"new"


def test_what_is_put_in_the_place_of_a_directory_is_judged_as_well(directory, written, tmp_path):
    written.rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", tmp_path / "other")
    (tmp_path / "other").chmod(0o777)
    written.symlink_to(tmp_path / "other")

    assert directory.read("file", 100) is None
    assert not directory.remove("file")
    assert (tmp_path / "other" / "file").exists()


@pytest.mark.parametrize("makes", [True, False])
def test_nothing_below_a_directory_that_others_may_write_is_believed(tmp_path, refused, makes):
    """They could put another directory in its place."""
    above = tmp_path / "above"
    path = str(above / "cache" / "modular_tf")
    above.mkdir()
    if not makes:
        assert PrivateDirectory(path).create("file", b"content")
    above.chmod(0o757)

    assert is_refused(PrivateDirectory(path))
    assert "anybody may write to it" in refused()[0]
    assert (above / "cache").exists() is not makes


@pytest.mark.parametrize(
    ("name", "mode"), [("file", 0o620), ("file", 0o602), ("", 0o720), ("", 0o1777)]
)
def test_what_others_may_write_is_not_believed_as_long_as_they_may(
    directory, written, refused, name, mode
):
    before = mode_of(written / name)
    (written / name).chmod(mode)

    assert directory.read("file", 100) is None
    assert directory.real_path_of(name or "newer", make=True) is None
    (message,) = refused()
    assert "LD-071" in message
    assert f"{mode:o}" in message
    (written / name).chmod(before)
    assert directory.read("file", 100) == b"content"


@pytest.mark.parametrize("name", ["file", ""])
def test_what_is_somebody_elses_is_not_believed(directory, written, refused, give_away, name):
    give_away(written / name)

    assert directory.read("file", 100) is None
    assert directory.real_path_of(name or "newer", make=True) is None
    assert "owns it" in refused()[0]


def test_root_leaves_no_file_in_a_directory_of_a_user(tmp_path, give_away, monkeypatch):
    path = tmp_path / "cache" / "modular_tf"
    assert PrivateDirectory(str(path)).create("file", b"of the user")
    give_away(tmp_path, path.parent, path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert not PrivateDirectory(str(path)).create("other", b"of root")
    with PrivateDirectory(str(path)).open_for_lock("lock") as file:
        assert file is None
    assert [made.name for made in path.iterdir()] == ["file"]


def test_what_root_put_there_is_believed(monkeypatch):
    """An image may bring a cache that root filled."""
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY_ELSE)
    of_root = Path("/etc/passwd")

    assert PrivateDirectory(str(of_root.parent)).read(of_root.name, 1 << 20) == of_root.read_bytes()


def test_what_is_no_file_is_not_believed(directory, written):
    (written / "link").symlink_to("file")
    os.mkfifo(written / "fifo", 0o600)  # to open it for reading would block for ever
    (written / "directory").mkdir(mode=0o700)

    for name in ("link", "fifo", "directory"):
        assert directory.read(name, 100) is None
        assert directory.real_path_of(name, make=True) is None


def test_a_file_that_is_too_large_is_not_believed(directory, written):
    assert directory.read("file", 7) == b"content"
    assert directory.read("file", 6) is None


def test_a_directory_may_be_read_only(directory, written, monkeypatch):
    """Also for root, whom no mode keeps from writing."""
    real = os.open

    def open_to_read(path, flags, *rest, **more):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", open_to_read)
    assert directory.read("file", 100) == b"content"
    assert directory.real_path_of("newer", make=True) is None
    assert not directory.create("new", b"new")
    with directory.open_for_lock("lock") as file:
        assert file is None
    assert directory.read("file", 100) == b"content"


def test_a_full_disk_leaves_what_was_there(directory, written, limited_files):
    with limited_files(1000):
        assert not directory.create("new", bytes(5000))
    assert directory.read("file", 100) == b"content"
    assert os.listdir(written) == ["file"]  # noqa: PTH208


def test_a_file_is_created_once_and_removed_once(directory):
    assert directory.read("new", 10) is None
    assert directory.create("new", b"1")
    assert not directory.create("new", b"2")
    assert directory.read("new", 10) == b"1"
    assert directory.remove("new")
    assert not directory.remove("new")


def test_a_path_without_links_is_given_for_what_is_trusted(written, tmp_path):
    (tmp_path / "link").symlink_to(written)
    linked = PrivateDirectory(str(tmp_path / "link"))

    assert linked.real_path_of("file", make=False) == str(written.resolve() / "file")
    assert linked.real_path_of("missing", make=False) is None
    assert linked.real_path_of("made", make=True) == str(written.resolve() / "made")
    assert mode_of(written / "made") == 0o600
    (written / "file").chmod(0o602)
    assert linked.real_path_of("file", make=True) is None
