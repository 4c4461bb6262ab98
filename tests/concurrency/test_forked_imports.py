"""Forks while modules are imported, in another thread or in the one that forks."""

from __future__ import annotations

SLOW = """
import os, sys, threading

sys.began.set()
while not os.path.exists(os.environ["MAY_END"]):
    threading.Event().wait(0.01)
"""

FORKING = """
import os

child = os.fork()
value = 2
"""

SUBJECT = """
    import os, signal, sys, threading
    import modular_tf

    sys.path.append({folder!r})
    sys.began = threading.Event()
    thread = threading.Thread(target=__import__, args=("slow",))
    thread.start()
    assert sys.began.wait(60)
    if (child := os.fork()) == 0:
        signal.alarm(60)  # a child that waits for the lost thread
        open(os.environ["MAY_END"], "w").close()
        import slow
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()

    import forking
    if forking.child == 0:
        import forking as again
        os._exit(0 if again is forking and forking.value == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forking.child, 0)[1]) == 0
"""


def test_a_child_imports_what_was_being_imported(run_python, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "forking.py").write_text(FORKING)

    run_python(SUBJECT.format(folder=str(tmp_path)), env={"MAY_END": str(tmp_path / "may end")})
