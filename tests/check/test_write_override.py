"""Rights that override permissions are put aside for one thread, and come back."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from modular_tf.check.native.write_override import without_write_override


@pytest.fixture
def can_write(tmp_path):
    """Return whether this thread can write to a folder that nobody may write to."""

    def attempt():
        try:
            (tmp_path / "made").mkdir()
        except PermissionError:
            return False
        (tmp_path / "made").rmdir()
        return True

    tmp_path.chmod(0o555)
    yield attempt
    tmp_path.chmod(0o755)


def test_permissions_hold_in_one_thread_until_the_block_ends(can_write):
    before, found = can_write(), []
    put_aside = Event()

    def look():
        assert put_aside.wait(60)
        found.append(can_write())

    def fail():
        with without_write_override():
            assert not can_write()
            put_aside.set()
            thread.join()
            raise KeyError

    thread = Thread(target=look)  # one that is started within the block would inherit
    thread.start()
    with pytest.raises(KeyError):
        fail()
    assert found == [before]
    assert can_write() == before
