"""Uploads to a real store whose `close` an interrupt ends."""

from __future__ import annotations

import pytest

from tests.fixtures.emulators import proxied

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


@pytest.fixture
def slow(s3_store, tmp_path):
    """The store, which keeps what is to be stored waiting."""
    with proxied(s3_store, tmp_path) as proxy:
        proxy.set(held="PUT")
        yield proxy


def test_the_upload_of_an_interrupted_close_goes_on(slow, run_subject):
    """In Python: Ctrl-C ends the wait, and the end of the service waits for the data."""
    run_subject(
        slow,
        """
        import signal, threading
        def interrupt():
            while not requests_now().get("PUT", 0):  # it is under way, and held
                pass
            os.kill(os.getpid(), signal.SIGINT)

        def interrupt_upload():
            forget_requests()
            threading.Thread(target=interrupt).start()

        size = 1_000_000
        file = fs.open(uri("python"), "wb")
        file.write(bytes(size))
        interrupt_upload()
        try:
            file.close()
            raise AssertionError("nothing interrupted it")
        except KeyboardInterrupt as interruption:
            notes = getattr(interruption, "__notes__", ["is still being stored"])
            assert "is still being stored" in notes[0], notes
        expect(file.closed, False)
        expect_error(errors.NotFoundError, fs.stat, uri("python"))
        set_up(held="")
        file.close()
        expect(fs.stat(uri("python")).length, size)

        def write(mode, data):
            set_up(held="PUT")
            interrupt_upload()
            try:
                with fs.open(uri(mode), mode) as file:
                    file.write(data)
            except KeyboardInterrupt:
                pass
            # Nobody has the file any more; its end has not waited for the upload.

        for mode, data in (("wb", bytes(size)), ("w", "x" * size)):
            write(mode, data)
            expect_error(errors.NotFoundError, fs.stat, uri(mode))
        set_up(held="")
        fs.close()
        again = begin().filesystem_for(base)
        for mode in ("wb", "w"):
            expect(again.stat(uri(mode)).length, size)
        """,
        folder="interrupted",
    )
