"""A child that is forked while threads of a plugin run, or while directories are watched.

What a child does with what it inherits, and loads itself, is in `tests.filesystem.test_forks`,
`tests.service.test_forked_children` and `tests.service.test_default_service`.
"""

from __future__ import annotations

from tests.coexistence.conftest import WORK


def test_a_child_is_forked_while_a_plugin_logs_on_its_threads(run_forked, restless_plugin):
    """Each of the host's locks may be held by a thread that the child does not have."""
    run_forked(
        WORK
        + """
import signal
with PluginService(plugin_paths=sys.argv[1:]) as service:
    service.load()
    file = service.filesystem("restless").new_random_access_file("restless://f")
    for _ in range(15):
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            use_files(service, "ram", "ram://child%d" % os.getpid())
            with service.filesystem("restless").new_random_access_file("restless://f") as mine:
                os._exit(mine.read(0, 5) != b"x")
        assert os.waitpid(child, 0)[1] == 0
    assert file.read(0, 5) == b"x"
""",
        restless_plugin,
    )


def test_a_watch_stays_with_the_parent(run_forked, fixture_plugin, tmp_path):
    (tmp_path / "drop").mkdir()
    run_forked(
        WORK
        + """
import shutil, signal, time
drop, plugin = sys.argv[1:]
with PluginService(plugin_dirs=[drop]) as service, service.watch() as watch:
    for _ in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            assert watch.closed
            use_files(service, "ram", "ram://child")
            shutil.copy(plugin, drop + "/libchild.so")
            service.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert not watch.closed
    deadline = time.monotonic() + 100
    while "fixture" not in service.schemes() and time.monotonic() < deadline:
        time.sleep(0.01)
    use_all(service)
""",
        tmp_path / "drop",
        fixture_plugin("good"),
    )
