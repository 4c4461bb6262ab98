"""A process with rights that its user lacks takes no word of that user.

Where this suite may not change users, the process is told that it did.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
import sys
from pathlib import Path

import pytest

from modular_tf.discovery import privileges
from modular_tf.discovery.privileges import is_privileged, linker_variable
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.service.configuration import Config, lock_path
from tests.trust.conftest import STRANGER

_BY_USER = """
    import json, os, sys

    user, *arguments = sys.argv[1:]
    if os.geteuid() == 0:
        os.setresuid(int(user), 0, 0)
    else:
        os.getuid = lambda: int(user)
"""
# The interpreter's file has a capability, which lets it read what this suite may read. The kernel
# looks at the path before it gives the capability, so the file is opened before.
_BY_CAPABILITY = """
    import json, os, sys

    if os.geteuid() == 0:
        user, *arguments = sys.argv[1:]
        program = os.open("python", os.O_RDONLY)
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
        code = sys.orig_argv[sys.orig_argv.index("-c") + 1]
        os.execve(program, [sys.executable, "-c", code, *sys.argv[1:]], os.environ)
    elif os.path.exists("python"):
        assert os.geteuid() == os.getuid() == int(sys.argv[1])
    else:
        from modular_tf.discovery import privileges

        privileges._AUXILIARY_VECTOR = "auxv"
    arguments = sys.argv[2:]
"""
_SCRIPT = """
    from modular_tf.service.service import PluginService

    with PluginService(plugin_paths=arguments) as service:
        report = service.load()
        print(json.dumps({
            "plugins": [
                [p.name, p.state.value, p.reason and p.reason.rule] for p in report.plugins
            ],
            "ignored": [p.origin for p in report.searched if p.ignored],
            "frozen": service.config.trust.frozen,
            "config": service.config.path,
            "disable": list(service.config.disable),
        }))
"""


@pytest.fixture
def surroundings(tmp_path, fixture_plugin):
    """Return variables with which a user would have a say in everything."""
    home = tmp_path / "home"
    drop_in = home / "data" / "modular_tf" / "plugins"
    drop_in.mkdir(parents=True)
    shutil.copy(fixture_plugin("good", scheme="dropped"), drop_in / "libdropped.so")
    shutil.copy(fixture_plugin("good", scheme="named"), home / "libnamed.so")
    (home / "modular-tf.toml").write_text('disable = ["*"]\n[trust]\nfrozen = true\n')
    for name in ("cache", "state", "runtime"):
        (home / name).mkdir()
    return {
        "HOME": str(home),
        "MODULAR_TF_CONFIG": str(home / "modular-tf.toml"),
        "MODULAR_TF_PLUGIN_PATH": str(home / "libnamed.so"),
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(home / "libnamed.so"),
        "MODULAR_TF_FROZEN": "1",
        "MODULAR_TF_FIRST_CONTACT": "never",
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_RUNTIME_DIR": str(home / "runtime"),
    }


@pytest.fixture
def run_privileged(run_python, surroundings):
    """Run a service with more rights than its user has; return what it told."""

    def run(*arguments, way=_BY_USER):
        child = run_python(way + _SCRIPT, str(STRANGER), *arguments, env=surroundings)
        return json.loads(child.stdout)

    return run


def capable_interpreter(folder):
    """Put an interpreter whose file has a capability there; else what tells that it had one."""
    if os.geteuid() != 0:
        (folder / "auxv").write_bytes(vector(23, 1))
        return
    program = folder / "python"
    shutil.copy(os.path.realpath(sys.executable), program)
    version_2, effective, read_all_files = 0x02000000, 1, 1 << 2
    rights = struct.pack("<5I", version_2 | effective, read_all_files, 0, 0, 0)
    os.setxattr(program, "security.capability", rights)


def vector(*numbers):
    return struct.pack(f"@{len(numbers)}L", *numbers)


@pytest.mark.parametrize("way", [_BY_USER, _BY_CAPABILITY], ids=["by user", "by capability"])
def test_the_users_paths_and_settings_do_not_count(way, run_privileged, surroundings, tmp_path):
    capable_interpreter(tmp_path)
    told = run_privileged(way=way)

    assert sorted(told["ignored"]) == sorted(
        [
            "MODULAR_TF_PLUGIN_PATH",
            "TF_PLUGGABLE_DEVICE_LIBRARY_PATH",
            f"{surroundings['XDG_DATA_HOME']}/modular_tf/plugins",
        ]
    )
    names = {name: state for name, state, _ in told["plugins"]}
    assert "dropped" not in names
    assert "named" not in names
    assert set(names.values()) == {"loaded"}
    assert (told["config"], told["disable"], told["frozen"]) == (None, [], False)


def test_nothing_is_kept_where_the_user_could_change_it(
    run_privileged, surroundings, fixture_plugin
):
    told = run_privileged(fixture_plugin("good"))

    assert {state for _, state, _ in told["plugins"]} == {"loaded"}
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        assert list(Path(surroundings[variable]).iterdir()) == [], variable


def test_a_plugin_that_belongs_to_the_user_is_refused(run_privileged, tmp_path, fixture_plugin):
    library = tmp_path / "libtheirs.so"
    shutil.copy(fixture_plugin("good"), library)
    library.chmod(0o666 if os.geteuid() else 0o644)
    if os.geteuid() == 0:
        os.chown(library, STRANGER, -1)

    told = run_privileged(library)

    state, rule = next(rest for name, *rest in told["plugins"] if name == "theirs")
    assert state == "rejected"
    assert rule == ("LD-076" if os.geteuid() else "LD-075")


# -- how the process knows -----------------------------------------------------------------------


@pytest.fixture
def kernel_tells(tmp_path, monkeypatch):
    """Let the kernel tell something else of this process; None for nothing."""
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    started = privileges._started_with_more_rights

    def tell(auxiliary_vector=None, status=None):
        for name, content in (("_AUXILIARY_VECTOR", auxiliary_vector), ("_STATUS", status)):
            file = tmp_path / name
            if content is not None:
                file.write_bytes(content)
            monkeypatch.setattr(privileges, name, str(file))
        started.cache_clear()

    yield tell
    started.cache_clear()


def test_this_process_knows_what_the_c_library_knows():
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype = ctypes.c_ulong

    assert is_privileged() == bool(getauxval(23))
    assert not is_privileged()


@pytest.mark.parametrize(
    ("content", "privileged"),
    [
        (vector(6, 4096, 23, 1, 0, 0), True),
        (vector(6, 4096, 23, 0, 0, 0), False),
        (vector(6, 4096, 0, 0), False),
        (vector(6, 23, 23, 1)[:-1], False),
        (b"", False),
    ],
    ids=["secure", "not secure", "not told", "cut off", "empty"],
)
def test_the_kernel_tells_it_at_the_start(content, privileged, kernel_tells):
    kernel_tells(content, status=b"CapPrm:\tffff\nCapAmb:\t0000\n")

    assert is_privileged() is privileged


@pytest.mark.parametrize(
    ("status", "privileged"),
    [
        (b"Name:\tpython\nCapPrm:\t0000000000000400\nCapAmb:\t0000000000000000\n", True),
        (b"CapPrm:\t0000000000000404\nCapAmb:\t0000000000000400\n", True),
        (b"CapPrm:\t0000000000000400\nCapAmb:\t0000000000000400\n", False),
        (b"CapPrm:\t0000000000000000\nCapAmb:\t0000000000000000\n", False),
        (b"CapPrm:\tnonsense\n", True),
        (None, True),
    ],
    ids=["its file's", "more than ambient", "ambient", "none", "damaged", "unknown"],
)
def test_where_the_vector_is_hidden_capabilities_tell_it(status, privileged, kernel_tells):
    kernel_tells(status=status)

    assert is_privileged() is privileged


def test_who_gave_up_the_rights_of_root_has_no_more_than_its_user(run_python):
    child = run_python("""
        import os

        if os.geteuid() == 0:
            from modular_tf.discovery import privileges  # its files may be root's alone

            os.setresuid(54321, 54321, 54321)
            try:
                os.open("/proc/self/auxv", os.O_RDONLY)
            except PermissionError:
                pass
            else:
                raise SystemExit("the vector is not hidden, so this shows nothing")
        from modular_tf.discovery.privileges import is_privileged

        print(is_privileged())
    """)

    assert child.stdout == "False\n"


def test_variables_of_the_linker_count_where_the_linker_reads_them(kernel_tells):
    environment = {"LD_LIBRARY_PATH": "/x"}

    kernel_tells(vector(23, 0))
    assert linker_variable("LD_LIBRARY_PATH", environment) == "/x"
    assert linker_variable("LD_PRELOAD", environment) == ""
    kernel_tells(vector(23, 1))
    assert linker_variable("LD_LIBRARY_PATH", environment) == ""


def test_the_user_names_no_lock_file(kernel_tells, monkeypatch):
    monkeypatch.setenv("MODULAR_TF_CONFIG", "/home/user/modular-tf.toml")

    kernel_tells(vector(23, 0))
    assert lock_path(Config()) == "/home/user/modular-tf.lock"
    kernel_tells(vector(23, 1))
    assert lock_path(Config()) is None
    assert lock_path(Config(trust=TrustPolicy(lock="/etc/x.lock"))) == "/etc/x.lock"
    assert lock_path(Config(path="/etc/modular-tf.toml")) == "/etc/modular-tf.lock"
