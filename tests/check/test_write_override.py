"""Rights that override permissions are put aside for one thread, and come back."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from modular_tf.check.native.write_override import without_write_override


@pytest.fixture
def read_only(tmp_path):
    tmp_path.chmod(0o555)
    yield tmp_path
    tmp_path.chmod(0o755)


def _can_write(folder):
    try:
        (folder / "made").mkdir()
    except PermissionError:
        return False
    (folder / "made").rmdir()
    return True


def test_nobody_writes_where_permissions_forbid_it(read_only):
    with without_write_override():
        assert not _can_write(read_only)


def test_rights_come_back_after_a_failure(read_only):
    before = _can_write(read_only)
    with pytest.raises(KeyError), without_write_override():
        raise KeyError

    assert _can_write(read_only) == before


def test_other_threads_keep_theirs(read_only):
    before, found = _can_write(read_only), []
    put_aside = Event()

    def look():
        assert put_aside.wait(60)
        found.append(_can_write(read_only))

    thread = Thread(target=look)  # one that is started within the block would inherit
    thread.start()
    with without_write_override():
        put_aside.set()
        thread.join()
    assert found == [before]
