"""A process with rights that its user lacks takes no word of that user.

Where this suite may not change users, the process is told that it did.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.trust.conftest import STRANGER

_SCRIPT = """
    import json, os, sys

    user, *arguments = sys.argv[1:]
    if os.geteuid() == 0:
        os.setresuid(int(user), 0, 0)
    else:
        os.getuid = lambda: int(user)

    from modular_tf.service import PluginService

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

    def run(*arguments):
        child = run_python(_SCRIPT, str(STRANGER), *arguments, env=surroundings)
        return json.loads(child.stdout)

    return run


def test_the_users_paths_and_settings_do_not_count(run_privileged, surroundings):
    told = run_privileged()

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
