"""A process with rights that its user lacks takes no word of that user.

Where this suite may not change users, the process believes that it did.
"""

import ctypes
import json
import os
import shutil
import struct
from pathlib import Path

import pytest

from modular_tf.discovery import privileges
from modular_tf.discovery.privileges import is_privileged, linker_variable
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.service.configuration import Config, lock_path
from tests.trust.conftest import STRANGER

_SCRIPT = """
    import json, os, sys

    user, *arguments = sys.argv[1:]
    if os.geteuid() == 0:
        os.setresuid(int(user), 0, 0)
    else:
        os.getuid = lambda: int(user)

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


def vector(*numbers):
    return struct.pack(f"@{len(numbers)}L", *numbers)


def test_the_users_paths_and_settings_do_not_count_and_nothing_is_stored_there(
    run_python, surroundings, tmp_path, fixture_plugin
):
    """A plugin of root is trusted, and one of the user is not."""
    theirs = tmp_path / "libtheirs.so"
    shutil.copy(fixture_plugin("good"), theirs)
    theirs.chmod(0o666 if os.geteuid() else 0o644)
    if os.geteuid() == 0:
        os.chown(theirs, STRANGER, -1)
    arguments = [str(STRANGER), fixture_plugin("good"), theirs]
    found = json.loads(run_python(_SCRIPT, *arguments, env=surroundings).stdout)

    drop_in = f"{surroundings['XDG_DATA_HOME']}/modular_tf/plugins"
    variables = {"MODULAR_TF_PLUGIN_PATH", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"}
    assert {*found["ignored"]} == {*variables, drop_in}
    states = {name: (state, rule) for name, state, rule in found["plugins"]}
    assert states.pop("theirs") == ("rejected", "LD-076" if os.geteuid() else "LD-075")
    assert not {"dropped", "named"} & {*states}
    assert set(states.values()) == {("loaded", None)}
    assert (found["config"], found["disable"], found["frozen"]) == (None, [], False)
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        assert list(Path(surroundings[variable]).iterdir()) == [], variable


# -- how the process knows -----------------------------------------------------------------------


@pytest.fixture
def kernel_says(tmp_path, monkeypatch):
    """Have the kernel say something else of this process; None for nothing."""
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    started = privileges._started_with_more_rights

    def say(auxiliary_vector=None, status=None):
        for name, content in (("_AUXILIARY_VECTOR", auxiliary_vector), ("_STATUS", status)):
            file = tmp_path / name
            if content is not None:
                file.write_bytes(content)
            monkeypatch.setattr(privileges, name, str(file))
        started.cache_clear()

    yield say
    started.cache_clear()


_UNLIKE_AMBIENT = b"CapPrm:\tffff\nCapAmb:\t0000\n"


@pytest.mark.parametrize(
    ("auxiliary_vector", "status", "privileged"),
    [
        pytest.param(vector(6, 4096, 23, 1, 0, 0), _UNLIKE_AMBIENT, True, id="secure"),
        pytest.param(vector(6, 4096, 23, 0, 0, 0), _UNLIKE_AMBIENT, False, id="not secure"),
        pytest.param(vector(6, 4096, 0, 0), _UNLIKE_AMBIENT, False, id="silent"),
        pytest.param(vector(6, 23, 23, 1)[:-1], _UNLIKE_AMBIENT, False, id="cut off"),
        pytest.param(b"", _UNLIKE_AMBIENT, False, id="empty"),
        # Where the vector is hidden:
        pytest.param(None, b"Name:\tx\nCapPrm:\t0400\nCapAmb:\t0000\n", True, id="its file's"),
        pytest.param(None, b"CapPrm:\t0404\nCapAmb:\t0400\n", True, id="more than ambient"),
        pytest.param(None, b"CapPrm:\t0400\nCapAmb:\t0400\n", False, id="ambient"),
        pytest.param(None, b"CapPrm:\t0000\nCapAmb:\t0000\n", False, id="none"),
        pytest.param(None, b"CapPrm:\tnonsense\n", True, id="damaged"),
        pytest.param(None, None, True, id="unknown"),
    ],
)
def test_the_kernel_says_whether_a_process_is_privileged(
    auxiliary_vector, status, privileged, kernel_says
):
    kernel_says(auxiliary_vector, status)

    assert is_privileged() is privileged


def test_this_process_knows_what_the_c_library_knows():
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype = ctypes.c_ulong

    assert is_privileged() is bool(getauxval(23)) is False


def test_variables_of_the_linker_count_where_the_linker_reads_them(kernel_says):
    environment = {"LD_LIBRARY_PATH": "/x"}

    kernel_says(vector(23, 0))
    assert linker_variable("LD_LIBRARY_PATH", environment) == "/x"
    assert linker_variable("LD_PRELOAD", environment) == ""
    kernel_says(vector(23, 1))
    assert linker_variable("LD_LIBRARY_PATH", environment) == ""


def test_the_user_names_no_lock_file(kernel_says, monkeypatch):
    monkeypatch.setenv("MODULAR_TF_CONFIG", "/home/user/modular-tf.toml")

    kernel_says(vector(23, 0))
    assert lock_path(Config()) == "/home/user/modular-tf.lock"
    kernel_says(vector(23, 1))
    assert lock_path(Config()) is None
    assert lock_path(Config(trust=TrustPolicy(lock="/etc/x.lock"))) == "/etc/x.lock"
    assert lock_path(Config(path="/etc/modular-tf.toml")) == "/etc/modular-tf.lock"
