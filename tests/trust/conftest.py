"""Files with owners, modes and access control lists; plugins in processes of their own."""

import json
import os
import struct
from typing import Any, NamedTuple

import pytest

from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.discovery.conftest import make_candidate

STRANGER = 54321  # a user and a group that no system has


def judge(path, policy=None, **options):
    """Judge one file that an argument names."""
    return TrustJudge(policy or TrustPolicy(), **options).judge(make_candidate(path))


def judge_with_companions(path, *companions, policy=None, **options):
    """Judge a file that an argument names, and then its companions."""
    one_pass = TrustJudge(policy or TrustPolicy(), **options)
    found = make_candidate(path)
    return one_pass.judge_companions(found, one_pass.judge(found), list(map(str, companions)))


def assert_refused(verdict, rule, *words):
    """Compare rule and message of a verdict on what is refused."""
    assert (verdict.accepted, verdict.rule) == (False, rule)
    assert verdict.checked == ()
    for word in words:
        assert str(word) in verdict.message


@pytest.fixture
def home(tmp_path):
    """Return a directory of ours that holds a library."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    (folder / "libx.so").write_bytes(b"not yet a library")
    return folder


@pytest.fixture
def library(home):
    """Return a library in a directory of ours."""
    return home / "libx.so"


@pytest.fixture
def companion(tmp_path):
    """Return a library in another directory of ours."""
    file = tmp_path / "libs" / "libcompanion.so"
    file.parent.mkdir()
    file.write_bytes(b"some code")
    return file


@pytest.fixture
def give_to(monkeypatch):
    """Have a file, link or directory seem to belong to another user or group."""
    owners = {}
    lstat = os.lstat

    def shown(path):
        status = lstat(path)
        changes = owners.get(os.fspath(path), {})
        times = {name: getattr(status, name) for name in ("st_mtime_ns", "st_ctime_ns")}
        return os.stat_result((changes.get(i, value) for i, value in enumerate(status)), times)

    def give(path, *, user=-1, group=-1):
        changes = {4: user, 5: group}
        owners[str(path)] = {i: number for i, number in changes.items() if number >= 0}
        monkeypatch.setattr(os, "lstat", shown)

    return give


@pytest.fixture
def give_list(monkeypatch):
    """Have a file seem to have an access control list."""
    lists = {}
    getxattr = os.getxattr

    def shown(path, attribute, **options):
        if os.fspath(path) in lists:
            return lists[os.fspath(path)]
        return getxattr(path, attribute, **options)

    def give(path, *entries):
        data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        mask = next(allowed for tag, allowed, _ in entries if tag == 0x10)
        path.chmod(path.stat().st_mode & ~0o070 | mask << 3)  # as the kernel shows it
        lists[str(path)] = data
        monkeypatch.setattr(os, "getxattr", shown)

    return give


class Loaded(NamedTuple):
    """What became of a plugin in another process."""

    name: str
    state: str
    schemes: list[str]
    reasons: list[dict[str, Any]]

    @property
    def outcome(self):
        """The state, and the rules of all that was reported."""
        return (self.state, *(reason["rule"] for reason in self.reasons))

    @property
    def message(self):
        """The message of the only reason."""
        (reason,) = self.reasons
        return reason["message"]


LOAD = """
    import json, os, sys
    from modular_tf.service.configuration import Config
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.service import PluginService

    plugins, policy, options, bundled, times, used_in = json.loads(sys.argv[1])
    config = Config(trust=TrustPolicy(**policy), **options)
    for _ in range(times):
        with PluginService(config=config, plugin_paths=plugins, bundled=bundled) as service:
            service.load()
            os.chdir(used_in)
            for scheme in service.schemes() if options["load"] == "lazy" else []:
                service.filesystem(scheme).path_exists(f"{scheme}://host/x")
            records = service.plugins()
    print(json.dumps([
        [p.name, p.state.value, list(p.schemes), [r.as_dict() for r in (*p.reasons, *p.warnings)]]
        for p in records
    ]))
"""


@pytest.fixture
def run_anew(run_python, run_forked):
    """Run code in a process of its own, which has the variables of the linker from its start."""

    def run(code, *arguments, env, **options):
        is_for_linker = any(name.startswith("LD_") for name in env)
        return (run_python if is_for_linker else run_forked)(code, *arguments, env=env, **options)

    return run


@pytest.fixture
def load(run_anew):
    """Load plugins in a new process; return what became of each.

    `first` is code that runs before, and upper-case names are variables.
    """

    def run(
        *plugins, policy=None, lock=None, bundled=False, times=1, used_in=".", first="", **options
    ):
        env = {name: str(value) for name, value in options.items() if name.isupper()}
        config = {name: value for name, value in options.items() if not name.isupper()}
        config = {"first_contact": "never", "load": "eager", **config}
        policy = policy or ({"frozen": True, "lock": str(lock)} if lock else {})
        paths = list(map(str, plugins))
        given = json.dumps([paths, policy, config, bundled, times, str(used_in)])
        child = run_anew(first + LOAD, given, env=env)
        return [Loaded(*each) for each in json.loads(child.stdout)]

    return run


@pytest.fixture
def lock_by_command(run_anew, tmp_path):
    """Write the lock file of a plugin by the command, without loading anything."""

    def write(plugin, **env):
        path = tmp_path / "plugins.lock"
        arguments = ["--plugin", str(plugin), "--no-bundled", "lock", "--output", str(path)]
        code = f"from modular_tf.cli.main import run; raise SystemExit(run({arguments!r}))"
        run_anew(code, env=env)
        return path

    return write
