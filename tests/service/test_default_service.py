"""The one service of TensorFlow's habits, and services in forked processes."""

from __future__ import annotations

from pathlib import Path

USERS = Path(__file__).with_name("default_service_users.py")


def test_it_is_made_once_loaded_and_made_again_after_its_end(run_forked):
    run_forked(
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


def test_a_thread_that_nobody_waits_for_gets_the_error_that_the_process_ends(run_python):
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


def test_whoever_uses_it_while_it_is_made_is_served(run_forked, tmp_path):
    """Log handlers, hooks, signal handlers and other threads."""
    run_forked(USERS.read_text(), tmp_path / "log")
