"""Whether a file still has its bytes is told without reading them, where that is certain."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery import file_identity
from modular_tf.discovery.file_identity import (
    SETTLED_AFTER_NS,
    FileIdentity,
    SeenFile,
    see,
    see_again,
    sha256_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND_NS = 1_000_000_000
LATER_NS = 10 * SECOND_NS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.so"
    path.write_bytes(b"first")
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the descriptors of files whose bytes are read."""
    read: list[int] = []

    def noted(fd: int) -> str:
        read.append(fd)
        return sha256_of(fd)

    monkeypatch.setattr(file_identity, "sha256_of", noted)
    return read


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the clock show a time from now on."""
    return lambda now: monkeypatch.setattr(file_identity, "time_ns", lambda: now)


def identity_of(path: Path) -> FileIdentity:
    return FileIdentity.of(path.stat())


def seen_at(path: Path, seen_ns: int) -> SeenFile:
    seen = see(str(path))
    assert seen is not None
    return seen._replace(seen_ns=seen_ns)


def test_what_is_seen(file: Path):
    seen = see(str(file))

    assert seen is not None
    assert seen.path == str(file)
    assert seen.identity == identity_of(file)
    assert seen.sha256 == hashlib.sha256(b"first").hexdigest()


def test_a_digest_covers_large_files(file: Path):
    content = os.urandom(3 * 1024 * 1024 + 7)
    file.write_bytes(content)
    with file.open("rb") as stream:
        stream.seek(5)

        assert sha256_of(stream.fileno()) == hashlib.sha256(content).hexdigest()
        assert stream.tell() == 5


def test_a_file_that_changed_long_before_is_not_read_again(file: Path, reads: list[int], set_clock):
    changed = identity_of(file).ctime_ns
    seen = seen_at(file, changed + SETTLED_AFTER_NS + 1)
    set_clock(changed + LATER_NS)
    reads.clear()

    assert see_again(seen) is seen
    assert reads == []


def test_a_file_that_changed_right_before_is_read_again(file: Path, reads: list[int], set_clock):
    changed = identity_of(file).ctime_ns
    seen = seen_at(file, changed + SETTLED_AFTER_NS)
    set_clock(changed + LATER_NS)
    reads.clear()
    again = see_again(seen)

    assert len(reads) == 1
    assert again is not None
    assert again == seen._replace(seen_ns=changed + LATER_NS)
    reads.clear()
    assert see_again(again) is again  # what was read late enough need not be read again
    assert reads == []


def test_edited_twice_within_one_tick(file: Path):
    """The second edit leaves size and times as they are: the clock has not moved since."""
    seen = see(str(file))
    file.write_bytes(b"other")
    assert seen is not None
    unchanged = seen._replace(identity=identity_of(file))

    assert see_again(unchanged) is None


def test_edited_twice_within_one_tick_without_reading(file: Path):
    seen = see(str(file), read=False)
    file.write_bytes(b"other")
    assert seen is not None

    assert see_again(seen._replace(identity=identity_of(file))) is None


def test_edited_in_place_with_the_times_set_back(file: Path):
    seen = see(str(file))
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_bytes(b"other")
    os.utime(file, ns=times)

    assert seen is not None
    assert see_again(seen) is None


def test_replaced_by_a_rename_with_equal_size_and_time(file: Path):
    seen = see(str(file))
    other = file.with_name("other.so")
    other.write_bytes(b"other")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.rename(file)

    assert seen is not None
    assert see_again(seen) is None


def test_a_time_of_change_of_zero_says_nothing(file: Path, set_clock, reads: list[int]):
    """Archives that are to be reproducible set it; the time that nobody can set still counts."""
    os.utime(file, ns=(0, 0))
    changed = identity_of(file).ctime_ns
    seen = seen_at(file, changed + LATER_NS)
    set_clock(changed + LATER_NS)
    reads.clear()
    assert see_again(seen) is seen
    assert reads == []

    file.write_bytes(b"other")
    os.utime(file, ns=(0, 0))
    assert see_again(seen) is None


def test_a_file_of_the_future_is_read(file: Path, set_clock, reads: list[int]):
    changed = identity_of(file).ctime_ns
    set_clock(changed - LATER_NS)
    seen = see(str(file))
    assert seen is not None
    reads.clear()

    assert see_again(seen) is not None
    assert len(reads) == 1
    assert see_again(seen._replace(sha256="0" * 64)) is None


def test_after_the_clock_was_set_back_a_file_is_read(file: Path, set_clock, reads: list[int]):
    changed = identity_of(file).ctime_ns
    seen = seen_at(file, changed + LATER_NS)
    set_clock(changed + LATER_NS - 1)
    reads.clear()

    assert see_again(seen) is not None
    assert len(reads) == 1
    assert see_again(seen._replace(sha256="0" * 64)) is None


def test_a_file_with_new_times_and_old_bytes_is_the_same(file: Path):
    seen = see(str(file))
    os.utime(file, ns=(5, 5))
    file.chmod(0o700)
    assert seen is not None
    again = see_again(seen)

    assert again is not None
    assert again.identity == identity_of(file) != seen.identity


def test_a_copy_in_its_place_is_the_same(file: Path):
    seen = see(str(file))
    copy = file.with_name("copy.so")
    copy.write_bytes(b"first")
    copy.rename(file)
    assert seen is not None
    again = see_again(seen)

    assert again is not None
    assert again.identity == identity_of(file)


@pytest.mark.parametrize(
    ("ctime_ns", "then_ns", "newer"),
    [
        (5_000_000_001, 5_000_000_000, True),
        (5_000_000_001, 5_010_000_000, True),  # the clock of file times ticks more slowly
        (5_000_000_001, 5_010_000_001, False),
        (5_000_000_000, 6_999_999_999, True),  # kept to the second, or to two
        (5_000_000_000, 7_000_000_000, False),
    ],
)
def test_what_may_have_changed_after_a_time(ctime_ns: int, then_ns: int, newer: bool):
    assert FileIdentity(1, 2, 3, 0, ctime_ns).may_be_newer(then_ns) == newer


# -- files of images ---------------------------------------------------------------------------

DATE_NS = 1_000_000_000 * SECOND_NS


@pytest.fixture
def dated(file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose two times are one date, to the second, as all files of its image have."""

    def of(status: os.stat_result) -> FileIdentity:
        return FileIdentity(status.st_dev, status.st_ino, status.st_size, DATE_NS, DATE_NS)

    monkeypatch.setattr(FileIdentity, "of", of)
    return file


def test_a_file_of_an_image_is_read_once_in_a_boot(dated: Path, reads: list[int], monkeypatch):
    monkeypatch.setattr(file_identity, "boot_id", lambda: "one")
    seen = see(str(dated))
    assert seen is not None
    assert seen.boot == "one"
    reads.clear()
    assert see_again(seen) is seen
    assert reads == []

    monkeypatch.setattr(file_identity, "boot_id", lambda: "two")
    again = see_again(seen)
    assert again is not None
    assert again.boot == "two"
    assert len(reads) == 1


def test_the_next_image_has_other_bytes(dated: Path, monkeypatch):
    monkeypatch.setattr(file_identity, "boot_id", lambda: "one")
    seen = see(str(dated))
    dated.write_bytes(b"other")
    monkeypatch.setattr(file_identity, "boot_id", lambda: "two")
    assert seen is not None

    assert see_again(seen) is None


def test_an_image_that_is_mounted_read_only_is_always_read(dated: Path):
    with pytest.MonkeyPatch.context() as patch:
        real = os.statvfs(0)
        read_only = type(real)((*real[:8], os.ST_RDONLY, *real[9:]))
        patch.setattr(os, "statvfs", lambda _: read_only)
        seen = see(str(dated))
        assert seen is not None
        assert seen.boot == ""
        dated.write_bytes(b"other")
        assert see_again(seen) is None


def test_a_date_that_is_young_is_not_relied_on(file: Path, reads: list[int], monkeypatch):
    """Where times are kept to the second, each new file looks like one of an image."""
    monkeypatch.setattr(file_identity, "boot_id", lambda: "one")
    now = DATE_NS + SECOND_NS
    monkeypatch.setattr(file_identity, "time_ns", lambda: now)
    identity = FileIdentity(1, 2, 5, DATE_NS, DATE_NS)

    assert not SeenFile("", identity, "", now, "one").is_settled(now)
    assert SeenFile("", identity, "", now + LATER_NS, "one").is_settled(now + LATER_NS)
    assert not SeenFile("", identity, "", now + LATER_NS, "").is_settled(now + LATER_NS)


# -- what is not there, or not to be read ------------------------------------------------------


def test_nothing_may_be_there(tmp_path: Path):
    path = tmp_path / "missing"
    seen = see(str(path), read=False)

    assert seen == SeenFile(str(path), None, None, seen.seen_ns if seen else 0)
    assert seen is not None
    assert see_again(seen) is seen
    path.write_bytes(b"")
    assert see_again(seen) is None


def test_what_went_away_is_not_the_same(file: Path):
    seen = see(str(file))
    assert seen is not None
    file.unlink()

    assert see_again(seen) is None


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "nul"])
def test_what_cannot_be_read_is_not_seen(tmp_path: Path, kind: str):
    path = str(tmp_path / "x")
    if kind == "directory":
        Path(path).mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "nul":
        path = "nul\0"

    assert see(path) is None


def test_a_file_that_changes_while_it_is_read_is_not_seen(file: Path, monkeypatch):
    def grow(fd: int) -> str:
        with file.open("ab") as stream:
            stream.write(b"more")
        return sha256_of(fd)

    monkeypatch.setattr(file_identity, "sha256_of", grow)

    assert see(str(file)) is None


def test_a_file_is_read_only_where_that_is_needed(file: Path, set_clock, reads: list[int]):
    changed = identity_of(file).ctime_ns
    set_clock(changed + LATER_NS)
    old = see(str(file), read=False)
    set_clock(changed)
    young = see(str(file), read=False)

    assert old is not None
    assert old.sha256 is None
    assert young is not None
    assert young.sha256 is not None


def test_one_look_serves_a_whole_pass(file: Path, set_clock):
    set_clock(identity_of(file).ctime_ns + LATER_NS)
    seen = see(str(file))
    assert seen is not None
    known: dict[str, FileIdentity | None] = {}
    assert see_again(seen, known) is seen
    file.unlink()

    assert see_again(seen, known) is seen
    assert see_again(seen, {}) is None
