"""Places that come late, go, come back, are renamed, or are reached through links."""

from __future__ import annotations

import shutil

from modular_tf.service.reload.watching import Delays
from tests.watching.conftest import Told


def test_a_folder_that_is_made_later(watched, tmp_path, library):
    folder = tmp_path / "made" / "later"
    watching = watched(folder)

    folder.mkdir(parents=True)
    (folder / "libx.so").write_bytes(library)

    watching.until(Told("libx.so", "appeared", library))


def test_a_folder_that_is_deleted_and_made_again(watched, folder, library, other_library):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder)

    shutil.rmtree(folder)
    watching.until(Told("libx.so", "removed", None))
    folder.mkdir()
    (folder / "libx.so").write_bytes(other_library)
    watching.until(Told("libx.so", "appeared", other_library))
    (folder / "liby.so").write_bytes(library)

    watching.until(Told("liby.so", "appeared", library))


def test_a_folder_that_another_one_replaces(watched, folder, library, other_library, tmp_path):
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder, delays=Delays(settled_s=2.0))
    new = tmp_path / "new"
    new.mkdir()
    (new / "libx.so").write_bytes(other_library)

    folder.rename(tmp_path / "old")
    new.rename(folder)

    watching.until(Told("libx.so", "replaced", other_library))
    (folder / "liby.so").write_bytes(library)
    watching.until(Told("liby.so", "appeared", library))


def test_a_folder_above_that_is_renamed(watched, tmp_path, library):
    folder = tmp_path / "above" / "between" / "plugins"
    folder.mkdir(parents=True)
    (folder / "libx.so").write_bytes(library)
    watching = watched(folder)

    (tmp_path / "above").rename(tmp_path / "elsewhere")

    watching.until(Told("libx.so", "removed", None))


def test_a_link_that_is_turned_to_another_folder(watched, tmp_path, library, other_library):
    for name, content in (("v1", library), ("v2", other_library)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "libx.so").write_bytes(content)
    current = tmp_path / "current"
    current.symlink_to("v1")
    watching = watched(current)

    (tmp_path / "next").symlink_to("v2")
    (tmp_path / "next").replace(current)

    watching.until(Told("libx.so", "replaced", other_library))
    (tmp_path / "v2" / "liby.so").write_bytes(library)
    watching.until(Told("liby.so", "appeared", library))


def test_the_file_behind_a_link_is_overwritten(watched, folder, tmp_path, library, other_library):
    (tmp_path / "real.so").write_bytes(library)
    (folder / "libx.so").symlink_to("../real.so")
    watching = watched(folder)

    (tmp_path / "real.so").write_bytes(other_library)

    watching.until(Told("libx.so", "replaced", other_library))


def test_a_single_file_under_any_name(watched, tmp_path, library, other_library):
    place = tmp_path / "plugin.bin"
    watching = watched(place)

    place.write_bytes(library)
    watching.until(Told("plugin.bin", "appeared", library))
    (tmp_path / "new").write_bytes(other_library)
    (tmp_path / "new").replace(place)
    watching.until(Told("plugin.bin", "replaced", other_library))
    place.unlink()

    watching.until(Told("plugin.bin", "removed", None))


def test_links_in_a_circle(watched, tmp_path, library):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    watching = watched(tmp_path / "a")

    (tmp_path / "b").unlink()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "libx.so").write_bytes(library)

    watching.until(Told("libx.so", "appeared", library))
