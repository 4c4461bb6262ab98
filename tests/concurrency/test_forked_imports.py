"""Forks while another thread imports: the child imports the module itself."""

from __future__ import annotations

SUBJECT = """
    import importlib.abc, os, signal, sys, threading
    import modular_tf

    class Paused(importlib.abc.MetaPathFinder):
        '''Holds the first import of a module until it may go on.'''

        began, may_end = threading.Event(), threading.Event()

        def find_spec(self, name, path, target=None):
            if name == "modular_tf.service.service" and threading.current_thread() is thread:
                self.began.set()
                self.may_end.wait(60)
            return None

    sys.meta_path.insert(0, Paused())

    def use():
        with modular_tf.PluginService(plugin_dirs=[]) as service:
            service.load()
            assert not service.filesystem("ram").path_exists("ram://bucket/a")

    thread = threading.Thread(target=use)
    thread.start()
    assert Paused.began.wait(60)
    if (child := os.fork()) == 0:
        signal.alarm(60)  # a child that waits for the lost thread
        try:
            use()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    Paused.may_end.set()
    thread.join()
    assert status == 0, status
"""


def test_a_child_imports_what_another_thread_was_importing(run_python):
    run_python(SUBJECT)
