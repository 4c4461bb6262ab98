"""What root does in the home of a user, which `sudo` leaves it on some systems.

Where this suite is not root's, the process believes that it is, in a home that is not root's then.
"""

import json
import os
import shutil

import pytest

from tests.trust.conftest import STRANGER

SCRIPT = """
    import json, os, sys

    if os.geteuid() != 0:
        os.geteuid = os.getuid = lambda: 0

    from modular_tf.errors import ConfigError
    from modular_tf.service.service import PluginService

    try:
        with PluginService(plugin_paths=sys.argv[1:]) as service:
            found = {p.name: p.state.value for p in service.load().plugins}
    except ConfigError as error:
        found = error.rule
    print(json.dumps(found))
"""


@pytest.fixture
def home(tmp_path):
    """Return a user's home with a cache, a state and a folder for plugins of that user."""
    home = tmp_path / "home"
    for folder in (".cache/modular_tf", ".local/state", ".local/share/modular_tf/plugins"):
        (home / folder).mkdir(parents=True)
    (home / ".cache" / "modular_tf").chmod(0o700)
    return home


@pytest.fixture
def run_as_root(run_forked, home):
    """Run a service as root in that home; return what it printed."""

    def run(*arguments):
        if os.geteuid() == 0:
            for path in (home, *home.rglob("*")):
                os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        variables = {name: "" for name in os.environ if name.startswith("XDG_")}
        variables |= {"HOME": str(home), "MODULAR_TF_FIRST_CONTACT": "new"}
        return json.loads(run_forked(SCRIPT, *arguments, env=variables).stdout)

    return run


def test_nothing_is_stored_there_and_the_users_plugins_are_refused(
    run_as_root, home, fixture_plugin
):
    drop_in = home / ".local" / "share" / "modular_tf" / "plugins" / "libtheirs.so"
    shutil.copy(fixture_plugin("good"), drop_in)
    if os.geteuid() != 0:
        drop_in.chmod(0o666)
    before = sorted(home.rglob("*"))
    states = run_as_root(fixture_plugin("good"))

    assert states.pop("theirs") == "rejected"
    assert set(states.values()) == {"loaded"}
    assert sorted(home.rglob("*")) == before


def test_the_users_configuration_is_an_error(run_as_root, home):
    """It could say that the user's plugins are as good as root's."""
    config = home / ".config" / "modular_tf" / "modular-tf.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[trust]\nowners = [{STRANGER}]\n")
    if os.geteuid() != 0:  # this suite's user may own this package, and is trusted then
        config.chmod(0o666)

    assert run_as_root() == "LD-106"
