"""The one service of TensorFlow's habits, and services in forked processes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from modular_tf.service.default import LoadedOnce
from modular_tf.service.service import PluginService


def test_it_is_made_once_loaded_and_made_again_after_its_end(run_python):
    run_python(
        """
        from concurrent.futures import ThreadPoolExecutor
        from modular_tf.service.default import default_service
        with ThreadPoolExecutor(8) as pool:
            made = set(pool.map(lambda _: default_service(), range(50)))
        (service,) = made
        assert service.schemes() and service.devices()
        service.close()
        assert default_service() is not service
        assert not default_service().closed
        """
    )


def test_importing_the_package_makes_none(run_python):
    child = run_python(
        """
        import sys
        import modular_tf
        print([name for name in sys.modules if name.startswith("modular_tf.")])
        assert "cffi" not in sys.modules and "_cffi_backend" not in sys.modules
        """
    )

    assert child.stdout == "[]\n"


def test_a_forked_child_loads_and_closes_by_itself(run_python, fixture_plugin):
    run_python(
        """
        import os, sys, threading
        from modular_tf.loading import binding
        from modular_tf.service.service import PluginService
        from modular_tf.service.default import default_service

        default_service()
        hold, stop = threading.Event(), threading.Event()
        def keep():
            with binding._lock:
                hold.set()
                stop.wait(60)
        keeper = threading.Thread(target=keep)
        keeper.start()
        hold.wait(60)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with PluginService(plugin_paths=sys.argv[1:]) as service:
                    service.load()
                    service.filesystem("fixture").create_dir("fixture://h/x")
                default_service().filesystem("ram").recursively_create_dir("ram://x")
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        stop.set()
        keeper.join()
        assert not default_service().filesystem("ram").path_exists("ram://x")
        """,
        fixture_plugin("good"),
    )


def test_multiprocessing_children_use_the_parents_service(run_python, tmp_path):
    (tmp_path / "f").write_text("content")
    run_python(
        """
        import multiprocessing, sys
        from modular_tf.service.default import default_service

        def read(uri):
            with default_service().filesystem_for(uri).open(uri) as file:
                return file.read()

        if __name__ == "__main__":
            default_service()
            with multiprocessing.get_context("fork").Pool(3) as pool:
                assert pool.map(read, [sys.argv[1]] * 20) == ["content"] * 20
        """,
        tmp_path / "f",
    )


def test_exit_handlers_can_use_it_whenever_they_were_registered(
    run_python, fixture_plugin, plugin_report, tmp_path
):
    """Those that were registered first run when all services have been closed."""
    run_python(
        """
        import atexit, sys

        def save(name):
            from modular_tf import gfile
            from modular_tf.service.default import default_service
            assert not default_service().closed
            with gfile.GFile(f"{sys.argv[1]}/{name}", "w") as file:
                file.write("saved")
            left_open = default_service().filesystem("").open(f"{sys.argv[1]}/{name}-open", "w")
            left_open.write("saved")
            open_files.append(left_open)
            assert gfile.exists("fixture://h/")

        open_files = []
        atexit.register(save, "late")
        from modular_tf import gfile
        assert gfile.exists("fixture://h/")
        atexit.register(save, "early")
        """,
        tmp_path,
        env={
            **plugin_report.environment,
            "MODULAR_TF_PLUGIN_PATH": str(fixture_plugin("good")),
        },
    )

    for name in ("early", "early-open", "late", "late-open"):
        assert (tmp_path / name).read_text() == "saved"
    counted = plugin_report.last()
    assert counted["inits"] == counted["cleanups"] == 2


def test_a_thread_that_is_not_waited_for_is_told_that_the_process_ends(run_python):
    child = run_python(
        """
        import atexit, os, threading

        def poll():
            try:
                while True:
                    gfile.exists("/")
            except ClosedError as error:
                while "the process ends" not in str(error):  # the first call meets a closed file
                    try:
                        gfile.exists("/")
                    except ClosedError as another:
                        error = another
                os.write(1, str(error).encode())
                told.set()

        told = threading.Event()
        atexit.register(told.wait, 60)  # runs last
        from modular_tf import gfile
        from modular_tf.errors import ClosedError
        gfile.exists("/")
        threading.Thread(target=poll, name="polling", daemon=True).start()
        """
    )

    assert "the process ends" in child.stdout
    assert "'polling'" in child.stdout


_USES_GFILE = """
    import faulthandler, logging, signal, sys
    import modular_tf
    from modular_tf import gfile
    from modular_tf.hookspecs import hookimpl
    from modular_tf.service.service import PluginService

    faulthandler.dump_traceback_later(60, exit=True)
    used = []

    def use():
        gfile.makedirs("ram://host/folder")
        with gfile.GFile(sys.argv[1], "a") as file:
            file.write("used\\n")
        used.append(gfile.exists(sys.argv[1]))
"""
_AFTERWARDS = """
    assert gfile.exists(sys.argv[1])
    assert used and all(used), used
    assert gfile.exists("ram://host/folder")
    services = {modular_tf.service.default.default_service() for _ in range(2)}
    assert len(services) == 1 and services.pop().devices()
"""


def test_a_log_handler_may_use_it_while_it_is_made(run_python, tmp_path):
    run_python(
        _USES_GFILE
        + """
    class ToStore(logging.Handler):
        def emit(self, record):
            heard.append(record.event["event"])
            use()

    heard = []
    logging.getLogger("modular_tf").addHandler(ToStore())
    logging.getLogger("modular_tf").setLevel(logging.DEBUG)
    gfile.exists(sys.argv[1])
    assert "plugin.processed" in heard
"""
        + _AFTERWARDS,
        tmp_path / "log",
    )


@pytest.mark.parametrize(
    ("hook", "answer"),
    [
        ("plugin_paths(self, config)", "[]"),
        ("filesystems(self)", "{}"),
        ("device_factories(self)", "[]"),
        ("outcome(self, record)", "None"),
    ],
)
def test_a_hook_may_use_it_while_it_is_made(run_python, tmp_path, hook, answer):
    run_python(
        _USES_GFILE
        + f"""
    class Hooks:
        @hookimpl
        def modular_tf_{hook}:
            use()
            return {answer}

    make = PluginService.__init__
    PluginService.__init__ = lambda self, **named: make(self, hooks=[Hooks()], **named)
    gfile.exists(sys.argv[1])
"""
        + _AFTERWARDS,
        tmp_path / "log",
    )


def test_what_a_hook_adds_that_used_it_is_searched_too(run_python, plugin_file, tmp_path):
    run_python(
        _USES_GFILE
        + """
    class Hooks:
        @hookimpl
        def modular_tf_plugin_paths(self, config):
            use()
            return [sys.argv[2]]

    make = PluginService.__init__
    PluginService.__init__ = lambda self, **named: make(self, hooks=[Hooks()], **named)
    gfile.exists("fixture://host")
"""
        + _AFTERWARDS,
        tmp_path / "log",
        plugin_file("libhooked.so"),
    )


def test_a_veto_that_uses_it_hears_that_nothing_may_serve_yet(run_python, tmp_path):
    run_python(
        _USES_GFILE
        + """
    from modular_tf.errors import UnimplementedError

    class Hooks:
        @hookimpl
        def modular_tf_veto(self, candidate, probe):
            try:
                use()
            except UnimplementedError:
                used.append(True)

    make = PluginService.__init__
    PluginService.__init__ = lambda self, **named: make(self, hooks=[Hooks()], **named)
    gfile.makedirs("ram://host/folder")
    gfile.exists(sys.argv[1])
    use()
"""
        + _AFTERWARDS,
        tmp_path / "log",
    )


@pytest.mark.parametrize(
    "step", ["discover", "recall", "judge", "open_now", "open_filesystem", "enter"]
)
def test_a_signal_handler_may_use_it_while_it_is_made(run_python, tmp_path, step):
    run_python(
        _USES_GFILE
        + """
    import threading

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_name == sys.argv[2]:
            sys.setprofile(None)
            threading.setprofile(None)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    signal.signal(signal.SIGALRM, lambda *_: used or use())
    import modular_tf.service.default
    threading.setprofile(profile)
    sys.setprofile(profile)
    gfile.exists(sys.argv[1])
    sys.setprofile(None)
    threading.setprofile(None)
"""
        + _AFTERWARDS,
        tmp_path / "log",
        step,
    )


_VETO_THAT_USES_IT_FIRST = """
    import threading
    from modular_tf.errors import UnimplementedError

    class Hooks:
        @hookimpl
        def modular_tf_veto(self, candidate, probe):
            if asked:
                return
            asked.append(candidate)
            try:
                use()
            except UnimplementedError:
                go_on()

    asked = []
    make = PluginService.__init__
    PluginService.__init__ = lambda self, **named: make(self, hooks=[Hooks()], **named)
"""


def test_an_interrupt_after_a_hook_has_used_it_leaves_it_to_be_loaded(run_python, tmp_path):
    run_python(
        _USES_GFILE
        + _VETO_THAT_USES_IT_FIRST
        + """
    def go_on():
        raise KeyboardInterrupt

    try:
        gfile.exists(sys.argv[1])
    except KeyboardInterrupt:
        asked.append("interrupted")
    assert "interrupted" in asked
    use()
"""
        + _AFTERWARDS,
        tmp_path / "log",
    )


def test_another_thread_loads_what_a_hook_that_has_used_it_holds_up(run_python, tmp_path):
    run_python(
        _USES_GFILE
        + _VETO_THAT_USES_IT_FIRST
        + """
    def go_on():
        other = threading.Thread(target=use)
        other.start()
        other.join()
        assert used == [True]

    gfile.exists(sys.argv[1])
    assert used == [True]
"""
        + _AFTERWARDS,
        tmp_path / "log",
    )


def test_it_is_loaded_once_and_a_new_one_after_its_end():
    made, loaded = [], []

    def make():
        made.append(SimpleNamespace(closed=False))
        return made[-1]

    once = LoadedOnce(make, loaded.append)
    assert once.get() is once.get() is made[0]
    assert loaded == made
    made[0].closed = True
    assert once.get() is once.get() is made[1]
    assert loaded == made


def test_the_bundled_plugins_come_unless_they_are_left_out():
    with PluginService() as service:
        service.load()
        assert service.schemes()["ram"] == "ram_filesystem"
    with PluginService(bundled=False) as service:
        service.load()
        assert "ram" not in service.schemes()
