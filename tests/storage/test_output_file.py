"""Files that the user named are written as a whole, and nothing but files is written to."""

from __future__ import annotations

import os
import re
import socket
import stat

import pytest

from modular_tf.service.output_file import STANDARD_OUTPUT, refuse_special, write_output


def link_to_file(path):
    (path.parent / "target").write_bytes(b"old")
    path.symlink_to(path.parent / "target")


def bind_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


SPECIAL = {
    "a symbolic link to a file": link_to_file,
    "a symbolic link to a device": lambda path: path.symlink_to("/dev/full"),
    "a symbolic link to nothing": lambda path: path.symlink_to(path.parent / "nothing"),
    "a directory": os.mkdir,
    "a FIFO": os.mkfifo,
    "a socket": bind_socket,
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_regular_file_stays_as_it_is(kind, tmp_path):
    path = tmp_path / "report"
    SPECIAL[kind](path)
    before = path.lstat()
    names = sorted(entry.name for entry in tmp_path.iterdir())

    for refuse in refuse_special, lambda place: write_output(place, b"new"):
        with pytest.raises(OSError, match=f"is {kind.partition(' to ')[0]}; name") as caught:
            refuse(str(path))
        assert caught.value.filename == str(path)

    assert os.path.samestat(before, path.lstat())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == names
    assert b"new" not in b"".join(e.read_bytes() for e in tmp_path.iterdir() if e.is_file())


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout"])
def test_devices_of_the_system_are_refused(path):
    with pytest.raises(OSError, match=re.escape("- for standard output")):
        write_output(path, b"new")


def test_a_name_alone_is_a_file_in_the_current_directory_and_a_dash_is_none(
    tmp_path, monkeypatch, capfdbinary
):
    monkeypatch.chdir(tmp_path)
    write_output(STANDARD_OUTPUT, b"\xff")
    write_output("report", b"new")

    assert capfdbinary.readouterr().out == b"\xff"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"report": b"new"}


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    write_output(str(path), b"old")

    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_output(str(path), b"new")

    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"lock": b"old"}


@pytest.mark.parametrize(
    ("umask", "of_file", "of_folder"), [(0o077, 0o600, 0o700), (0, 0o644, 0o755)]
)
def test_what_is_made_is_for_whom_the_umask_lets_and_writable_by_nobody_else(
    umask, of_file, of_folder, tmp_path
):
    path = tmp_path / ".config" / "modular_tf" / "file"
    before = os.umask(umask)
    try:
        write_output(str(path), b"new")
    finally:
        os.umask(before)

    modes = [stat.S_IMODE(made.stat().st_mode) for made in (path, *path.parents[:2])]
    assert modes == [of_file, of_folder, of_folder]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o755, 0o600])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, tmp_path):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode | stat.S_ISVTX)
    write_output(str(path), b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
