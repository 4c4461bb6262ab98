"""Files that come, change and go in watched places are reported once, when they are whole."""

from __future__ import annotations

import mmap
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from modular_tf.service.reload.watching import Delays
from tests.watching.conftest import Report

PIECES = 6
PAUSE_S = 0.06
LONG = Delays(settled_s=2.0, unfinished_s=3.0)  # for changes that take several steps


def in_pieces(library):
    step = len(library) // PIECES + 1
    return [(at, library[at : at + step]) for at in range(0, len(library), step)]


def written_slowly(path, library):
    with path.open("wb", buffering=0) as stream:
        for _, piece in in_pieces(library):
            stream.write(piece)
            time.sleep(PAUSE_S)


def preallocated_then_filled(path, library):
    with path.open("wb", buffering=0) as stream:
        os.posix_fallocate(stream.fileno(), 0, len(library))
        for at, piece in in_pieces(library):
            os.pwrite(stream.fileno(), piece, at)
            time.sleep(PAUSE_S)


def filled_from_the_end(path, library):
    with path.open("wb", buffering=0) as stream:
        for at, piece in reversed(in_pieces(library)):
            os.pwrite(stream.fileno(), piece, at)
            time.sleep(PAUSE_S)


def written_by_mapping(path, library):
    with path.open("w+b") as stream:
        os.ftruncate(stream.fileno(), len(library))
        mapped = mmap.mmap(stream.fileno(), len(library))
    for at, piece in in_pieces(library):
        mapped[at : at + len(piece)] = piece
        time.sleep(PAUSE_S)
    mapped.close()


def source_of(path, library):
    """Write a library outside the watched folder."""
    source = path.parent.with_name(f"source-{path.name}")
    source.write_bytes(library)
    return source


def moved_in(path, library):
    source_of(path, library).rename(path)


def linked_in_by_name(path, library):
    path.unlink(missing_ok=True)
    path.symlink_to(f"../{source_of(path, library).name}")


ARRIVALS = {
    f"lib{arrive.__name__}.so": arrive
    for arrive in (
        written_slowly,
        preallocated_then_filled,
        filled_from_the_end,
        written_by_mapping,
        moved_in,
        linked_in_by_name,
    )
}


def arrive_at_once(folder, library):
    with ThreadPoolExecutor(len(ARRIVALS)) as threads:
        arriving = [
            threads.submit(arrive, folder / name, library) for name, arrive in ARRIVALS.items()
        ]
    for arrival in arriving:
        arrival.result()


def test_a_file_is_reported_once_and_whole_however_it_comes(
    watched, folder, library, other_library
):
    watching = watched(folder, delays=Delays(settled_s=1.5, unfinished_s=60.0))
    arrive_at_once(folder, library)

    watching.reports(*(Report(name, "appeared", library) for name in ARRIVALS))

    arrive_at_once(folder, other_library)

    watching.reports(*(Report(name, "replaced", other_library) for name in ARRIVALS))
    watching.reports_nothing_for(0.5)


def make_wheel(place, library):
    (place / "spam" / "ops").mkdir(parents=True)
    (place / "spam" / "ops" / f"lib{place.name}.so").write_bytes(library)
    (place / "spam" / "data.bin").write_bytes(b"data")
    return place


def test_what_happens_to_files_is_reported(watched, folder, tmp_path, library, other_library):
    for name in ("removed", "moved", "renamed", "remade", "readable", "untouched", "open"):
        (folder / f"lib{name}.so").write_bytes(library)
    (tmp_path / "real.so").write_bytes(library)
    (folder / "liblink.so").symlink_to("../real.so")
    make_wheel(folder / "old.wheel", library)
    replacement = make_wheel(tmp_path / "old.wheel", other_library)
    watching = watched(folder, delays=LONG)

    (folder / "libremoved.so").unlink()
    (folder / "libmoved.so").rename(tmp_path / "libmoved.so")
    (folder / "librenamed.so").rename(folder / "libnamed.so")
    (folder / "libremade.so").unlink()
    (folder / "libremade.so").write_bytes(other_library)
    (folder / "libreadable.so").chmod(0o600)
    (tmp_path / "real.so").write_bytes(other_library)
    (folder / "README").write_bytes(library)
    (folder / "libx.so.txt").write_bytes(library)
    (folder / "libx.so.2").write_bytes(library)
    (folder / "libcut.so").write_bytes(library[: len(library) // 2])
    (folder / "libempty.so").touch()
    (folder / "libnowhere.so").symlink_to("nowhere")
    make_wheel(folder / "new.wheel", library)
    (folder / "old.wheel").rename(tmp_path / "away")
    replacement.rename(folder / "old.wheel")
    with (folder / "libopen.so").open("ab"):
        moved_in(folder / "libopen.so", other_library)
        watching.reports(
            Report("libremoved.so", "removed"),
            Report("libmoved.so", "removed"),
            Report("librenamed.so", "removed"),
            Report("libnamed.so", "appeared", library),
            Report("libremade.so", "replaced", other_library),
            Report("libreadable.so", "replaced", library),
            Report("liblink.so", "replaced", other_library),
            Report("libx.so.2", "appeared", library),
            Report("libcut.so", "appeared", library[: len(library) // 2]),
            Report("libempty.so", "appeared", b""),
            Report("libnowhere.so", "appeared"),
            Report("libnew.wheel.so", "appeared", library),
            Report("libold.wheel.so", "replaced", other_library),
            Report("libopen.so", "replaced", other_library),
        )


def put(folder, name, library):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"lib{name}.so").write_bytes(library)


def test_places_may_come_late_go_be_replaced_and_come_back(
    watched, tmp_path, library, other_library
):
    later, remade = tmp_path / "made" / "later", tmp_path / "remade"
    replaced = tmp_path / "replaced"
    below, link, circle = tmp_path / "above" / "below", tmp_path / "link", tmp_path / "circle"
    file = tmp_path / "plugin.bin"
    for name, folder in (("remade", remade), ("replaced", replaced), ("below", below)):
        put(folder, name, library)
    put(tmp_path / "new", "replaced", other_library)
    put(tmp_path / "v1", "link", library)
    put(tmp_path / "v2", "link", other_library)
    link.symlink_to("v1")
    circle.symlink_to("other_circle")
    (tmp_path / "other_circle").symlink_to("circle")
    watching = watched(later, remade, replaced, below, link, circle, file, delays=LONG)

    put(later, "later", library)
    shutil.rmtree(remade)
    replaced.rename(tmp_path / "old")
    (tmp_path / "new").rename(replaced)
    below.parent.rename(tmp_path / "elsewhere")
    (tmp_path / "next").symlink_to("v2")
    (tmp_path / "next").replace(link)
    (tmp_path / "other_circle").unlink()
    put(tmp_path / "other_circle", "circle", library)
    file.write_bytes(library)
    watching.reports(
        Report("liblater.so", "appeared", library),
        Report("libremade.so", "removed"),
        Report("libreplaced.so", "replaced", other_library),
        Report("libbelow.so", "removed"),
        Report("liblink.so", "replaced", other_library),
        Report("libcircle.so", "appeared", library),
        Report("plugin.bin", "appeared", library),
    )

    put(remade, "remade", other_library)
    put(replaced, "more", library)
    put(tmp_path / "v2", "more_of_link", library)
    (tmp_path / "new").write_bytes(other_library)
    (tmp_path / "new").replace(file)
    watching.reports(
        Report("libremade.so", "appeared", other_library),
        Report("libmore.so", "appeared", library),
        Report("libmore_of_link.so", "appeared", library),
        Report("plugin.bin", "replaced", other_library),
    )

    file.unlink()
    watching.reports(Report("plugin.bin", "removed"))
