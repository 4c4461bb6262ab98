"""The process that watchers are forked from, where an interrupt comes before its owner keeps it."""

from __future__ import annotations


def test_what_nobody_closes_is_waited_for(run_python):
    run_python(
        """
        import os, subprocess, sys, warnings
        from modular_tf.first_contact.zygote_process import ZygoteProcess

        warnings.simplefilter("ignore", ResourceWarning)
        ZygoteProcess(command=lambda *_: [sys.executable, "-c", ""], environment=os.environ)
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        subprocess.run(["true"], check=True)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            pass  # there is none
        else:
            raise AssertionError("a zombie is left")
        """
    )
