"""A child that is forked while threads of a plugin run.

What a child does with what it inherits, and loads itself, is in `tests.filesystem.test_forks`,
`tests.service.test_forked_children`, `tests.service.test_default_service` and `tests.watching`.
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
