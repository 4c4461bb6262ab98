"""What this process has too little of is no verdict on a plugin, and nothing of it is kept."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("home")

EXHAUSTING = """
    import json, os, resource, sys
    import modular_tf as mtf
    from modular_tf.errors import ResourceExhaustedError

    def exhaust(free):
        "Use up all descriptors but a few; return those that were taken."
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            pass
        for _ in range(free):
            os.close(taken.pop())
        return taken

    def give_back(taken):
        for fd in taken:
            os.close(fd)
"""

LOADS_WITH_FEW_DESCRIPTORS = f"""{EXHAUSTING}
    def states(service):
        return {{
            plugin.name: [str(plugin.state), plugin.reason and plugin.reason.rule]
            for plugin in service.plugins()
        }}

    def attempt(free):
        os.environ["XDG_CACHE_HOME"] = os.path.join(sys.argv[2], str(free))
        service = mtf.PluginService(plugin_paths=[sys.argv[1]])
        taken = exhaust(free)
        try:
            problems = [problem.rule for problem in service.load().problems]
        except ResourceExhaustedError as error:  # not even the hooks of packages can be read
            problems = [error.rule]
        during = states(service)
        give_back(taken)
        (service.load, service.refresh)[free % 2]()
        print(json.dumps([free, problems, during, states(service)]), flush=True)
        service.close()

    for free in map(int, sys.argv[3:]):
        child = os.fork()
        if not child:
            attempt(free)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, free
"""

USED_WITHOUT_DESCRIPTORS = f"""{EXHAUSTING}
    with mtf.PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
        service.load()
    with mtf.PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
        service.load()  # registered by what is known of it
        assert service.entry("good").library is None
        taken = exhaust(0)
        try:
            service.filesystem("fixture").path_exists("fixture://x")
        except ResourceExhaustedError as error:
            said = [error.rule, str(error)]
        give_back(taken)
        state = str(service.report()["good"].state)
        service.filesystem("fixture").path_exists("fixture://x")
        print(json.dumps([*said, state, str(service.report()["good"].state)]))
"""

USERS_AND_GROUPS_WITHOUT_DESCRIPTORS = f"""{EXHAUSTING}
    import grp, pwd
    from modular_tf.discovery.trust.paths import TrustedWriters, group_text, user_text

    includes_group = TrustedWriters(frozenset([0])).includes_group
    group_text(2)  # so that only who belongs to it has to be read
    taken = exhaust(0)
    for ask, number in ((includes_group, 1), (includes_group, 2), (user_text, 1)):
        try:
            ask(number)
        except ResourceExhaustedError as error:
            print(error.rule)
    give_back(taken)
"""


def test_no_plugin_is_refused_where_descriptors_are_few(plugin_file, run_forked, tmp_path):
    library = plugin_file("libgood.so")
    free = [0, 1, 2, 3, 5, 8]
    arguments = (library, tmp_path / "caches", *map(str, free))
    ended = run_forked(LOADS_WITH_FEW_DESCRIPTORS, *arguments)
    rows = [json.loads(line) for line in ended.stdout.splitlines()]

    assert [row[0] for row in rows] == free
    names = ["good", "host_device", "posix_filesystem", "ram_filesystem"]
    for _, problems, during, after in rows:
        assert set(problems) <= {"LD-113"}
        for state, rule in during.values():
            assert (state, rule) in {("loaded", None), ("found", None), ("failed", "LD-063")}
        assert after == {name: ["loaded", None] for name in names}
    assert rows[0][1] == ["LD-113"]


def test_the_next_use_maps_what_could_not_be_mapped(plugin_file, run_forked):
    ended = run_forked(USED_WITHOUT_DESCRIPTORS, plugin_file("libgood.so"))
    rule, message, before, after = json.loads(ended.stdout)

    assert rule == "LD-113"
    assert "Too many open files" in message
    assert (before, after) == ("loaded", "loaded")


def test_users_and_groups_are_not_forgotten_where_their_lists_cannot_be_read(run_forked):
    said = run_forked(USERS_AND_GROUPS_WITHOUT_DESCRIPTORS).stdout

    assert said.split() == ["LD-113"] * 3
