"""Whether a file still has its bytes is known without reading them, where that is certain."""

import hashlib
import os

import pytest

from modular_tf.codec import decode, encode
from modular_tf.discovery import file_identity
from modular_tf.discovery.file_identity import (
    SETTLED_AFTER_NS,
    FileIdentity,
    SeenFile,
    see,
    see_again,
    sha256_of,
)

SECOND_NS = 1_000_000_000
LATER_NS = 10 * SECOND_NS


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file.so"
    path.write_bytes(b"first")
    return path


@pytest.fixture
def seen(file):
    return see(str(file))


@pytest.fixture
def changed(file):
    """The time of the last change of the file."""
    return identity_of(file).ctime_ns


@pytest.fixture
def reads(monkeypatch):
    """Collect the descriptors of files whose bytes are read."""
    read = []

    def noted(fd):
        read.append(fd)
        return sha256_of(fd)

    monkeypatch.setattr(file_identity, "sha256_of", noted)
    return read


@pytest.fixture
def set_clock(monkeypatch):
    """Have the clock show a time from now on."""
    return lambda now: monkeypatch.setattr(file_identity, "time_ns", lambda: now)


def identity_of(path):
    return FileIdentity.of(path.stat())


def test_a_digest_covers_large_files(file):
    content = os.urandom(3 * 1024 * 1024 + 7)
    file.write_bytes(content)
    seen = see(str(file))

    assert (seen.path, seen.identity) == (str(file), identity_of(file))
    assert seen.sha256 == hashlib.sha256(content).hexdigest()


def test_a_file_is_read_again_where_it_changed_right_before(seen, changed, reads, set_clock):
    set_clock(changed + LATER_NS)
    settled = seen._replace(seen_ns=changed + SETTLED_AFTER_NS + 1)
    assert see_again(settled) is settled
    assert reads == []

    young = seen._replace(seen_ns=changed + SETTLED_AFTER_NS)
    again = see_again(young)
    assert len(reads) == 1
    assert again == young._replace(seen_ns=changed + LATER_NS)
    assert see_again(again) is again  # what was read late enough need not be read again
    assert len(reads) == 1


@pytest.mark.parametrize("read", [True, False])
def test_edited_twice_within_one_tick(file, read):
    """The second edit leaves size and times as they are: the clock has not moved since."""
    seen = see(str(file), read=read)
    file.write_bytes(b"other")

    assert see_again(seen._replace(identity=identity_of(file))) is None


@pytest.mark.parametrize("by_rename", [False, True])
def test_replaced_by_what_has_equal_size_and_times(file, seen, by_rename):
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    place = file.with_name("other.so") if by_rename else file
    place.write_bytes(b"other")
    os.utime(place, ns=times)
    place.rename(file)

    assert see_again(seen) is None


@pytest.mark.parametrize(("seen_after", "now_after"), [(-LATER_NS, -LATER_NS), (LATER_NS, 0)])
def test_a_file_of_the_future_is_read(seen, changed, set_clock, reads, seen_after, now_after):
    """So is each one after the clock was set back."""
    seen = seen._replace(seen_ns=changed + seen_after)
    set_clock(changed + now_after)

    assert see_again(seen) is not None
    assert len(reads) == 1
    assert see_again(seen._replace(sha256="0" * 64)) is None


@pytest.mark.parametrize("seconds", [2**62, 2**40, -1, -(2**62)])
def test_any_time_of_a_file_reaches_other_processes(seen, seconds):
    """Some file systems keep seconds in 64 bits, and a wrong clock, or an archive, writes any."""
    time_ns = seconds * SECOND_NS
    identity = seen.identity._replace(mtime_ns=time_ns, ctime_ns=time_ns)
    far = seen._replace(identity=identity, seen_ns=time_ns)

    assert decode(SeenFile, encode(far)) == far


def test_a_file_with_new_times_or_a_copy_in_its_place_is_the_same(file, seen):
    os.utime(file, ns=(5, 5))
    file.chmod(0o700)
    again = see_again(seen)
    assert again.identity == identity_of(file) != seen.identity

    copy = file.with_name("copy.so")
    copy.write_bytes(b"first")
    copy.rename(file)
    assert see_again(seen).identity == identity_of(file) != again.identity


@pytest.mark.parametrize(
    ("ctime_ns", "then_ns", "newer"),
    [
        (5_000_000_001, 5_000_000_000, True),
        (5_000_000_001, 5_010_000_000, True),  # the clock of file times ticks more slowly
        (5_000_000_001, 5_010_000_001, False),
        (5_000_000_000, 6_999_999_999, True),  # stored to the second, or to two
        (5_000_000_000, 7_000_000_000, False),
    ],
)
def test_what_may_have_changed_after_a_time(ctime_ns, then_ns, newer):
    assert FileIdentity(1, 2, 3, 0, ctime_ns).may_be_newer(then_ns) == newer


# -- files of images ---------------------------------------------------------------------------

DATE_NS = 1_000_000_000 * SECOND_NS


@pytest.fixture
def dated(file, monkeypatch):
    """A file whose two times are one date, to the second, as all files of its image have."""

    def of(status):
        return FileIdentity(status.st_dev, status.st_ino, status.st_size, DATE_NS, DATE_NS)

    monkeypatch.setattr(FileIdentity, "of", of)
    monkeypatch.setattr(file_identity, "boot_id", lambda: "one")
    return file


def test_a_file_of_an_image_is_read_once_in_a_boot(dated, reads, monkeypatch):
    seen = see(str(dated))
    assert seen.boot == "one"
    reads.clear()
    assert see_again(seen) is seen
    assert reads == []

    monkeypatch.setattr(file_identity, "boot_id", lambda: "two")
    assert see_again(seen).boot == "two"
    assert len(reads) == 1
    dated.write_bytes(b"other")  # the next image has other bytes
    assert see_again(seen) is None


def test_an_image_that_is_mounted_read_only_is_always_read(dated):
    with pytest.MonkeyPatch.context() as patch:
        real = os.statvfs(0)
        read_only = type(real)((*real[:8], os.ST_RDONLY, *real[9:]))
        patch.setattr(os, "statvfs", lambda _: read_only)
        seen = see(str(dated))
        assert seen.boot == ""
        dated.write_bytes(b"other")
        assert see_again(seen) is None


def test_a_date_that_is_young_is_not_relied_on(monkeypatch):
    """Where times are stored to the second, each new file looks like one of an image."""
    monkeypatch.setattr(file_identity, "boot_id", lambda: "one")
    now = DATE_NS + SECOND_NS
    identity = FileIdentity(1, 2, 5, DATE_NS, DATE_NS)

    assert not SeenFile("", identity, "", now, "one").is_settled(now)
    assert SeenFile("", identity, "", now + LATER_NS, "one").is_settled(now + LATER_NS)
    assert not SeenFile("", identity, "", now + LATER_NS, "").is_settled(now + LATER_NS)


# -- what is not there, or not to be read ------------------------------------------------------


def test_what_comes_or_goes_is_not_the_same(tmp_path):
    path = tmp_path / "missing"
    missing = see(str(path), read=False)
    assert missing == SeenFile(str(path), None, None, missing.seen_ns)
    assert see_again(missing) is missing

    path.write_bytes(b"")
    assert see_again(missing) is None
    seen = see(str(path))
    path.unlink()
    assert see_again(seen) is None


def test_what_cannot_be_read_is_not_seen(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "fifo", "nul\0"):
        assert see(str(path)) is None


def test_a_file_that_changes_while_it_is_read_is_not_seen(file, monkeypatch):
    def grow(fd):
        with file.open("ab") as stream:
            stream.write(b"more")
        return sha256_of(fd)

    monkeypatch.setattr(file_identity, "sha256_of", grow)

    assert see(str(file)) is None


@pytest.mark.parametrize("age", [LATER_NS, 0])
def test_a_file_is_read_only_where_that_is_needed(file, changed, set_clock, age):
    set_clock(changed + age)

    assert (see(str(file), read=False).sha256 is None) is (age == LATER_NS)
