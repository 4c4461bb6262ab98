"""The user's directories are absolute, or there are none: no checkout is taken for one of them."""

import os
import pwd
from functools import partial

import pytest

from modular_tf.discovery.sources.search_paths import (
    cache_directory,
    config_directory,
    data_directory,
    expand_home,
    home_directory,
    state_directory,
)

unprivileged = {"privileged": False}
each_place = pytest.mark.parametrize(
    ("find", "variable", "below_home"),
    [
        pytest.param(config_directory, "XDG_CONFIG_HOME", ".config", id="config"),
        pytest.param(data_directory, "XDG_DATA_HOME", ".local/share", id="data"),
        pytest.param(
            partial(cache_directory, **unprivileged), "XDG_CACHE_HOME", ".cache", id="cache"
        ),
        pytest.param(
            partial(state_directory, **unprivileged), "XDG_STATE_HOME", ".local/state", id="state"
        ),
    ],
)


@pytest.fixture
def nobody_in_particular(monkeypatch):
    """Be a user without a home, as in a container that is given a number instead of a user."""

    def getpwuid(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    monkeypatch.delenv("HOME")


@each_place
def test_a_place_is_where_the_variable_says_or_below_the_home(
    find, variable, below_home, tmp_path, monkeypatch
):
    assert find({variable: "/somewhere"}) == "/somewhere/modular_tf"
    default = str(tmp_path / below_home / "modular_tf")
    for unusable in ("", ".", "not/absolute", "~/x", " "):
        assert find({variable: unusable, "HOME": str(tmp_path)}) == default

    entry = pwd.struct_passwd(("me", "x", os.getuid(), 0, "", str(tmp_path), ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry if uid == os.getuid() else None)
    assert find({}) == default  # the system knows the home of who has no variable


@each_place
def test_without_a_home_there_is_none(find, variable, below_home, tmp_path, monkeypatch, request):
    (tmp_path / "relative").mkdir()
    monkeypatch.chdir(tmp_path)

    for home in ("", "relative", "."):
        assert find({"HOME": home, variable: home}) is None
    request.getfixturevalue("nobody_in_particular")
    assert find({}) is None
    assert home_directory(os.environ) is None
    assert expand_home("~/x") is None


@pytest.mark.parametrize("find", [cache_directory, state_directory])
def test_nothing_is_stored_by_privileged_processes_or_in_a_home_that_is_not_there(find, tmp_path):
    environment = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(tmp_path))

    assert find(environment, privileged=True) is None
    assert find({"HOME": "/nonexistent/home"}, privileged=False) is None


def test_a_tilde_is_the_home(tmp_path):
    environment = {"HOME": str(tmp_path)}

    assert expand_home("~", environment) == f"{tmp_path}/"
    assert expand_home("~/x/~", environment) == str(tmp_path / "x/~")
    assert expand_home("/x/~", environment) == "/x/~"
    assert expand_home(f"~{pwd.getpwuid(0).pw_name}/x", {}) == f"{pwd.getpwuid(0).pw_dir}/x"
    assert expand_home("~no-user-has-this-name/x", environment) == "~no-user-has-this-name/x"
    assert expand_home("~/x", {"HOME": "relative"}) is None
