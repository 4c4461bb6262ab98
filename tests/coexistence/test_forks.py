"""A child that is forked before anything was loaded, and one that is forked while threads run.

What a child does with open files, devices and services that it inherits is in
`tests.filesystem.test_forks`, `tests.device` and `tests.service.test_default_service`.
"""

from __future__ import annotations

import pytest

from tests.coexistence.conftest import WORK

_FORK = (
    WORK
    + """
import faulthandler
def forked(task):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            faulthandler.dump_traceback_later(100, exit=True)
            task()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    return pid
def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
)


@pytest.mark.parametrize("imported", ["", "import modular_tf.native.ffi, modular_tf.native.tensor"])
def test_children_and_parent_load_after_the_fork(imported, run_python, fixture_plugin):
    run_python(
        _FORK
        + f"{imported}\n"
        + """
def load_and_use():
    with PluginService(plugin_paths=sys.argv[1:]) as service:
        service.load()
        use_all(service)
children = [forked(load_and_use) for _ in range(3)]
load_and_use()
assert [ended(child) for child in children] == [0, 0, 0]
load_and_use()
assert ended(forked(lambda: None)) == 0
""",
        fixture_plugin("good"),
    )


def test_a_child_is_forked_while_a_plugin_logs_on_its_threads(run_python, restless_plugin):
    """Each of the host's locks may be held by a thread that the child does not have."""
    run_python(
        _FORK
        + """
with PluginService(plugin_paths=sys.argv[1:]) as service:
    service.load()
    file = service.filesystem("restless").new_random_access_file("restless://f")
    def read():
        use_files(service, "ram", "ram://child%d" % os.getpid())
        with service.filesystem("restless").new_random_access_file("restless://f") as mine:
            assert mine.read(0, 5) == b"x"
    for _ in range(30):
        assert ended(forked(read)) == 0
    assert file.read(0, 5) == b"x"
""",
        restless_plugin,
    )


def test_a_child_has_devices_of_its_own_and_those_of_the_parent_go_on(run_python):
    run_python(
        _FORK
        + """
with PluginService() as service:
    service.load()
    use_all(service)
    def use_in_child():
        with PluginService() as own:
            own.load()
            use_all(own)
            use_device(service)
    assert ended(forked(use_in_child)) == 0
    use_all(service)
""",
    )


def test_a_watch_stays_with_the_parent(run_python, fixture_plugin, tmp_path):
    (tmp_path / "drop").mkdir()
    run_python(
        _FORK
        + """
import shutil, time
drop, plugin = sys.argv[1:]
with PluginService(plugin_dirs=[drop]) as service, service.watch() as watch:
    def in_child():
        assert watch.closed
        use_files(service, "ram", "ram://child")
        shutil.copy(plugin, drop + "/libchild.so")
        service.close()
    for _ in range(5):
        assert ended(forked(in_child)) == 0
    assert not watch.closed
    deadline = time.monotonic() + 100
    while "fixture" not in service.schemes() and time.monotonic() < deadline:
        time.sleep(0.01)
    use_all(service)
""",
        tmp_path / "drop",
        fixture_plugin("good"),
    )
