"""What nobody else can have written is believed; what cannot be written is done without."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.service.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    from collections.abc import Callable

SOMEBODY_ELSE = 54321


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def written(directory: PrivateDirectory) -> Path:
    assert directory.create("file", b"content")
    return Path(directory.path or "")


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody else own a file, or be somebody else."""
    if os.geteuid() == 0:
        os.chown(path, SOMEBODY_ELSE, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY_ELSE)


def test_what_is_written_is_read(directory: PrivateDirectory):
    assert directory.read("file", 100) is None
    assert directory.create("file", b"one")
    assert directory.read("file", 100) == b"one"


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o277, 0o777])
def test_each_level_that_is_made_is_the_users_alone(tmp_path: Path, umask: int):
    levels = [tmp_path / "home", *(tmp_path / "home" / name for name in (".local", ".local/state"))]
    before = os.umask(umask)
    try:
        assert PrivateDirectory(str(levels[-1] / "modular_tf")).create("file", b"content")
    finally:
        os.umask(before)

    assert mode_of(levels[-1] / "modular_tf" / "file") == 0o600
    assert {mode_of(level) for level in [*levels, levels[-1] / "modular_tf"]} == {0o700}


def test_nobody_else_may_look_into_it(directory: PrivateDirectory):
    before = os.umask(0)
    try:
        directory.create("created", b"")
        assert directory.real_path_of("made", make=True)
        with directory.open_for_lock("lock"):
            pass
    finally:
        os.umask(before)
    path = Path(directory.path or "")

    assert mode_of(path) == 0o700
    assert {name.name: mode_of(name) for name in path.iterdir()} == {
        "created": 0o600,
        "made": 0o600,
        "lock": 0o600,
    }


def test_there_may_be_no_place():
    nowhere = PrivateDirectory(None)

    assert nowhere.real_path_of("file", make=True) is None
    assert not nowhere.create("file", b"")
    assert not nowhere.remove("file")
    assert nowhere.read("file", 10) is None
    assert nowhere.changed_at() == {}
    with nowhere.open_for_lock("lock") as file:
        assert file is None


def test_a_relative_place_is_none(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directory = PrivateDirectory("modular_tf-of-nobody")

    assert not directory.create("file", b"")
    assert directory.read("file", 10) is None
    assert list(tmp_path.iterdir()) == []
    assert not Path("/modular_tf-of-nobody").exists()


def test_what_was_removed_meanwhile_is_made_again(directory: PrivateDirectory, written: Path):
    shutil.rmtree(written.parent)

    assert directory.read("file", 100) is None
    assert directory.create("file", b"new")
    assert directory.read("file", 100) == b"new"


def test_what_is_put_in_the_place_of_a_directory_is_judged_as_well(
    directory: PrivateDirectory, written: Path, tmp_path: Path
):
    written.rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", tmp_path / "other")
    (tmp_path / "other").chmod(0o777)
    written.symlink_to(tmp_path / "other")

    assert directory.read("file", 100) is None
    assert not directory.remove("file")
    assert (tmp_path / "other" / "file").exists()


@pytest.mark.parametrize("mode", [0o777, 0o757])
@pytest.mark.parametrize("makes", [True, False])
def test_nothing_below_a_directory_that_others_may_write_is_believed(
    tmp_path: Path, refused: Callable[[], list[str]], mode: int, makes: bool
):
    """They could put another directory in its place."""
    directory = PrivateDirectory(str(tmp_path / "above" / "cache" / "modular_tf"))
    (tmp_path / "above").mkdir()
    if not makes:
        assert directory.create("file", b"content")
    (tmp_path / "above").chmod(mode)
    directory = PrivateDirectory(directory.path)

    assert directory.read("file", 100) is None
    assert directory.real_path_of("newer", make=True) is None
    assert not directory.create("new", b"new")
    assert "anybody may write to it" in refused()[0]
    assert (tmp_path / "above" / "cache").exists() is not makes


def test_a_directory_may_lie_in_one_where_all_keep_their_files(tmp_path: Path):
    """As in /tmp, where nobody can replace what is somebody else's."""
    tmp_path.chmod(0o1777)
    directory = PrivateDirectory(str(tmp_path / "modular_tf"))

    assert directory.create("file", b"content")
    assert directory.read("file", 100) == b"content"


def test_a_link_of_the_users_own_is_followed(tmp_path: Path):
    (tmp_path / "large").mkdir()
    (tmp_path / ".cache").symlink_to(tmp_path / "large")
    directory = PrivateDirectory(str(tmp_path / ".cache" / "modular_tf"))

    assert directory.create("file", b"content")
    assert (tmp_path / "large" / "modular_tf" / "file").exists()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_believed(
    directory: PrivateDirectory, written: Path, refused: Callable[[], list[str]], mode: int
):
    (written / "file").chmod(mode)

    assert directory.read("file", 100) is None
    assert directory.read("file", 100) is None
    assert len(refused()) == 1
    assert "LD-071" in refused()[0]
    assert f"{mode:o}" in refused()[0]


@pytest.mark.parametrize("mode", [0o720, 0o1777])
def test_nothing_in_a_directory_that_others_may_write_is_believed(
    directory: PrivateDirectory, written: Path, refused: Callable[[], list[str]], mode: int
):
    written.chmod(mode)

    assert directory.read("file", 100) is None
    assert directory.real_path_of("newer", make=True) is None
    assert not directory.create("new", b"new")
    assert all("LD-071" in message for message in refused())
    written.chmod(0o700)
    assert directory.read("file", 100) == b"content"


def test_a_file_of_somebody_else_is_not_believed(
    directory: PrivateDirectory, written: Path, refused: Callable[[], list[str]], monkeypatch
):
    give_away(written / "file", monkeypatch)

    assert directory.read("file", 100) is None
    assert "owns it" in refused()[0]


def test_nothing_in_a_directory_of_somebody_else_is_believed(
    directory: PrivateDirectory, written: Path, refused: Callable[[], list[str]], monkeypatch
):
    give_away(written, monkeypatch)

    assert directory.read("file", 100) is None
    assert directory.real_path_of("newer", make=True) is None
    assert "owns it" in refused()[0]


def test_root_makes_nothing_in_the_home_of_a_user(tmp_path: Path, monkeypatch):
    """The user could not write to it afterwards."""
    if os.geteuid() == 0:
        os.chown(tmp_path, SOMEBODY_ELSE, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    directory = PrivateDirectory(str(tmp_path / "cache" / "modular_tf"))

    assert not directory.create("file", b"")
    assert list(tmp_path.iterdir()) == []


def test_root_follows_no_link_in_the_home_of_a_user(tmp_path: Path, monkeypatch):
    """A user could have root remove files, or believe others, wherever they lie."""
    target = tmp_path / "state" / "modular_tf" / "marks"
    target.mkdir(parents=True, mode=0o700)
    (target / "file").write_bytes(b"content")
    home = tmp_path / "home"
    (home / ".local").mkdir(parents=True)
    (home / ".local" / "state").symlink_to(tmp_path / "state")
    if os.geteuid() == 0:
        for path in (home, home / ".local", home / ".local" / "state"):
            os.chown(path, SOMEBODY_ELSE, -1, follow_symlinks=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    directory = PrivateDirectory(str(home / ".local" / "state" / "modular_tf" / "marks"))

    assert directory.changed_at() == {}
    assert directory.read("file", 100) is None
    assert not directory.remove("file")
    assert directory.real_path_of("newer", make=True) is None
    assert (target / "file").read_bytes() == b"content"


def test_root_leaves_no_file_in_a_directory_of_a_user(tmp_path: Path, monkeypatch):
    directory = PrivateDirectory(str(tmp_path / "cache" / "modular_tf"))
    assert directory.create("file", b"of the user")
    if os.geteuid() == 0:
        for path in (tmp_path, tmp_path / "cache", tmp_path / "cache" / "modular_tf"):
            os.chown(path, SOMEBODY_ELSE, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert not PrivateDirectory(directory.path).create("other", b"of root")
    with PrivateDirectory(directory.path).open_for_lock("lock") as file:
        assert file is None
    names = [path.name for path in (tmp_path / "cache" / "modular_tf").iterdir()]
    assert names == ["file"]


def test_what_root_put_there_is_believed(monkeypatch):
    """An image may bring a cache that root filled."""
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY_ELSE)
    of_root = Path("/etc/passwd")

    assert PrivateDirectory(str(of_root.parent)).read(of_root.name, 1 << 20) == of_root.read_bytes()


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_what_is_no_file_is_not_believed(directory: PrivateDirectory, written: Path, kind: str):
    path = written / "odd"
    if kind == "link":
        path.symlink_to(written / "file")
    elif kind == "fifo":
        os.mkfifo(path, 0o600)  # to open it for reading would block for ever
    else:
        path.mkdir(mode=0o700)

    assert directory.read("odd", 100) is None
    assert directory.real_path_of("odd", make=True) is None


def test_a_file_that_is_too_large_is_not_believed(directory: PrivateDirectory, written: Path):
    assert directory.read("file", 7) == b"content"
    assert directory.read("file", 6) is None


def test_the_place_may_be_a_file(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "nul\0"):
        directory = PrivateDirectory(str(path))

        assert not directory.create("x", b"")
        assert directory.read("x", 10) is None
        assert directory.changed_at() == {}


def test_a_directory_may_be_read_only(directory: PrivateDirectory, written: Path, request):
    request.getfixturevalue("nothing_can_be_written")

    assert directory.read("file", 100) == b"content"
    assert directory.real_path_of("newer", make=True) is None
    assert not directory.create("new", b"new")
    with directory.open_for_lock("lock") as file:
        assert file is None
    assert directory.read("file", 100) == b"content"


def test_a_full_disk_leaves_what_was_there(run_python, tmp_path: Path):
    """A limit on the size of files fails a write in its middle, as a full disk does."""
    subject = """
        import os, resource, sys
        from modular_tf.service.storage.private_directory import PrivateDirectory
        directory = PrivateDirectory(sys.argv[1])
        assert directory.create("file", b"old")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        assert not directory.create("new", bytes(5000))
        assert directory.read("file", 10000) == b"old"
        assert os.listdir(sys.argv[1]) == ["file"]
    """
    run_python(subject, tmp_path / "own")


def test_a_file_is_created_once(directory: PrivateDirectory):
    assert directory.create("new", b"1")
    assert not directory.create("new", b"2")
    assert directory.read("new", 10) == b"1"


def test_a_file_is_removed_once(directory: PrivateDirectory, written: Path):
    assert directory.remove("file")
    assert not directory.remove("file")


def test_a_path_without_links_is_given_for_what_is_trusted(directory, written: Path, tmp_path):
    (tmp_path / "link").symlink_to(written)
    linked = PrivateDirectory(str(tmp_path / "link"))

    assert linked.real_path_of("file", make=False) == str(written.resolve() / "file")
    assert linked.real_path_of("missing", make=False) is None
    assert linked.real_path_of("made", make=True) == str(written.resolve() / "made")
    assert mode_of(written / "made") == 0o600
    (written / "file").chmod(0o602)
    assert linked.real_path_of("file", make=True) is None
