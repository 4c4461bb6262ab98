"""A file is told of once, when its last byte is there, however it comes."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from modular_tf.service.reload.watching import Delays
from tests.watching.conftest import Told

PIECES = 12
PAUSE_S = 0.06


def in_pieces(library):
    step = len(library) // PIECES + 1
    return [library[at : at + step] for at in range(0, len(library), step)]


def written_slowly(path, library):
    with path.open("wb", buffering=0) as stream:
        for piece in in_pieces(library):
            stream.write(piece)
            time.sleep(PAUSE_S)


def appended_by_many_writers(path, library):
    for piece in in_pieces(library):
        with path.open("ab") as stream:
            stream.write(piece)
        time.sleep(PAUSE_S)


def preallocated_then_filled(path, library):
    with path.open("wb", buffering=0) as stream:
        os.posix_fallocate(stream.fileno(), 0, len(library))
        for number, piece in enumerate(in_pieces(library)):
            os.pwrite(stream.fileno(), piece, number * len(in_pieces(library)[0]))
            time.sleep(PAUSE_S)


def filled_from_the_end(path, library):
    with path.open("wb", buffering=0) as stream:
        for at in range(len(library) - 4096, -4096, -4096):
            start = max(at, 0)
            os.pwrite(stream.fileno(), library[start : at + 4096], start)
            time.sleep(0.002)
        time.sleep(PAUSE_S)


def written_by_mapping(path, library):
    with path.open("w+b") as stream:
        os.ftruncate(stream.fileno(), len(library))
        mapped = mmap.mmap(stream.fileno(), len(library))
    for number, piece in enumerate(in_pieces(library)):
        start = number * len(in_pieces(library)[0])
        mapped[start : start + len(piece)] = piece
        time.sleep(PAUSE_S)
    mapped.close()


def copied(path, library):
    source = path.parent.parent / "source.so"
    source.write_bytes(library)
    subprocess.run(["cp", str(source), str(path)], check=True)


def renamed_in(path, library):
    hidden = path.with_name(f".{path.name}.Xy3fGz")  # as rsync calls it
    written_slowly(hidden, library)
    hidden.replace(path)


def moved_in(path, library):
    source = path.parent.parent / "source.so"
    source.write_bytes(library)
    source.rename(path)


def linked_in(path, library):
    source = path.parent.parent / "source.so"
    source.write_bytes(library)
    os.link(source, path)


def linked_in_by_name(path, library):
    source = path.parent.parent / "source.so"
    source.write_bytes(library)
    path.symlink_to("../source.so")


def moved_from_another_filesystem(path, library):
    source = Path(f"/dev/shm/modular_tf-{os.getpid()}-{path.parent.parent.name}.so")
    source.write_bytes(library)
    shutil.move(source, path)


ARRIVALS = [
    written_slowly,
    appended_by_many_writers,
    preallocated_then_filled,
    filled_from_the_end,
    written_by_mapping,
    copied,
    renamed_in,
    moved_in,
    linked_in,
    linked_in_by_name,
    moved_from_another_filesystem,
]


@pytest.mark.parametrize("arrive", ARRIVALS)
def test_a_new_file_is_told_of_once_and_whole(watched, folder, library, arrive):
    watching = watched(folder)

    arrive(folder / "libx.so", library)

    watching.until(Told("libx.so", "appeared", library))
    watching.says_nothing_for(0.4)


@pytest.mark.parametrize("arrive", [a for a in ARRIVALS if a not in (moved_in, linked_in)])
def test_a_file_in_the_place_of_another_is_told_of_once_and_whole(
    watched, folder, library, other_library, arrive
):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder, delays=Delays(settled_s=1.0))

    if arrive in (appended_by_many_writers, linked_in_by_name):
        (folder / "libx.so").unlink()
    arrive(folder / "libx.so", other_library)

    watching.until(Told("libx.so", "replaced", other_library))


def test_a_file_that_pip_installs_is_told_of(watched, folder, library, tmp_path):
    wheel = tmp_path / "dropped-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("libdropped.so", library)
        metadata = "Metadata-Version: 2.1\nName: dropped\nVersion: 1.0\n"
        archive.writestr("dropped-1.0.dist-info/METADATA", metadata)
        archive.writestr("dropped-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("dropped-1.0.dist-info/RECORD", "libdropped.so,,\n")
    watching = watched(folder)

    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", str(folder), str(wheel)], check=True)

    watching.until(Told("libdropped.so", "appeared", library))


def test_what_replaces_an_open_file_is_not_held_up_by_it(watched, folder, library, other_library):
    with (folder / "libx.so").open("wb", buffering=0) as stream:
        stream.write(library)
        watching = watched(folder)
        moved_in(folder / "libx.so", other_library)

        watching.until(Told("libx.so", "replaced", other_library))


def test_a_change_of_permissions_is_told_of(watched, folder, library):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder)

    (folder / "libx.so").chmod(0o600)

    watching.until(Told("libx.so", "replaced", library))


def test_the_folder_of_a_wheel_is_told_of_by_its_libraries(
    watched, folder, library, other_library, tmp_path
):
    def unpack(content):
        made = tmp_path / "made"
        (made / "spam" / "ops").mkdir(parents=True)
        (made / "spam" / "ops" / "libspam.so").write_bytes(content)
        (made / "spam" / "data.bin").write_bytes(b"data")
        return made

    seen = watched(folder)
    place = folder / "spam.wheel"
    unpack(library).rename(place)
    seen.until(Told("libspam.so", "appeared", library))

    place.rename(tmp_path / "old")
    unpack(other_library).rename(place)

    seen.until(Told("libspam.so", "replaced", other_library))
