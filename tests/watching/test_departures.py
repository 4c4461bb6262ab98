"""Files that go, files that never become whole, and those that are none of our business."""

from __future__ import annotations

from modular_tf.service.reload.watching import Delays
from tests.watching.conftest import Told


def test_a_removed_file_is_told_of(watched, folder, library):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder)

    (folder / "libx.so").unlink()

    watching.until(Told("libx.so", "removed", None))


def test_a_file_that_is_moved_away_is_told_of(watched, folder, library, tmp_path):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder)

    (folder / "libx.so").rename(tmp_path / "libx.so")

    watching.until(Told("libx.so", "removed", None))


def test_a_new_name_is_a_removal_and_an_arrival(watched, folder, library):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder)

    (folder / "libx.so").rename(folder / "liby.so")

    watching.until(Told("libx.so", "removed", None), Told("liby.so", "appeared", library))


def test_a_file_that_is_made_anew_is_replaced(watched, folder, library, other_library):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder, delays=Delays(settled_s=2.0))

    (folder / "libx.so").unlink()
    (folder / "libx.so").write_bytes(other_library)

    watching.until(Told("libx.so", "replaced", other_library))


def test_what_is_there_at_the_start_is_known(watched, folder, library):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder)

    watching.says_nothing_for(0.6)


def test_files_that_are_no_plugins_by_name_are_passed_over(watched, folder, library):
    watching = watched(folder)

    (folder / "README").write_bytes(library)
    (folder / "x.so.txt").write_bytes(library)
    (folder / "liby.so.2").write_bytes(library)

    watching.until(Told("liby.so.2", "appeared", library))


def test_a_file_that_stays_cut_off_is_told_of_in_the_end(watched, folder, library):
    watching = watched(folder, delays=Delays(unfinished_s=1.0))

    (folder / "libx.so").write_bytes(library[: len(library) // 2])

    watching.until(Told("libx.so", "appeared", library[: len(library) // 2]))


def test_a_file_that_stays_empty_is_told_of_in_the_end(watched, folder):
    watching = watched(folder, delays=Delays(unfinished_s=1.0))

    (folder / "libx.so").touch()

    watching.until(Told("libx.so", "appeared", b""))


def test_what_is_no_library_is_not_waited_for(watched, folder):
    watching = watched(folder)

    (folder / "libx.so").write_text("INPUT(libx.so.1)")

    watching.until(Told("libx.so", "appeared", b"INPUT(libx.so.1)"))


def test_a_link_that_leads_nowhere_is_told_of(watched, folder):
    watching = watched(folder)

    (folder / "libx.so").symlink_to("nowhere")

    watching.until(Told("libx.so", "appeared", None))
