"""Asking whether a file is open for writing disturbs nobody."""

from __future__ import annotations


def test_a_file_that_is_opened_in_that_instant_signals_no_other_thread(run_python, tmp_path):
    """The kernel signals who holds the lease; a handler of the application must not run."""
    (tmp_path / "file").touch()
    child = run_python(
        """
        import fcntl, os, signal, sys, threading, time
        from modular_tf.service.reload.watching.open_for_writing import is_open_for_writing

        path, real, refused, told = sys.argv[1], fcntl.fcntl, [], []
        signal.signal(signal.SIGURG, lambda *_: told.append(1))
        threading.Thread(target=threading.Event().wait, daemon=True).start()

        def open_before_the_end(descriptor, command, argument=0):
            if command == fcntl.F_SETLEASE and argument == fcntl.F_UNLCK:
                try:
                    os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                except BlockingIOError:
                    refused.append(1)
                    time.sleep(0.2)  # for a handler that would run in another thread
            return real(descriptor, command, argument)

        fcntl.fcntl = open_before_the_end
        print(is_open_for_writing(path), refused, told)
        """,
        tmp_path / "file",
    )

    assert child.stdout == "False [1] []\n"
