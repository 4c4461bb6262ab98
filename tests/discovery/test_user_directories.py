"""The user's directories are absolute, or there are none: no checkout is taken for one of them."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.sources.search_paths import (
    cache_directory,
    config_directory,
    data_directory,
    expand_home,
    home_directory,
    ignored_variables,
    state_directory,
)

if TYPE_CHECKING:
    from pathlib import Path


def cache(environment):
    return cache_directory(environment, privileged=False)


def state(environment):
    return state_directory(environment, privileged=False)


PLACES = [
    pytest.param(config_directory, "XDG_CONFIG_HOME", ".config", id="config"),
    pytest.param(data_directory, "XDG_DATA_HOME", ".local/share", id="data"),
    pytest.param(cache, "XDG_CACHE_HOME", ".cache", id="cache"),
    pytest.param(state, "XDG_STATE_HOME", ".local/state", id="state"),
]


@pytest.fixture
def nobody_in_particular(monkeypatch):
    """Be a user without a home, as in a container that is given a number instead of a user."""

    def getpwuid(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    monkeypatch.delenv("HOME")


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
def test_the_variable_names_the_place(find, variable, below_home):
    assert find({variable: "/somewhere"}) == "/somewhere/modular_tf"


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
@pytest.mark.parametrize("value", ["", ".", "not/absolute", "~/x", " "])
def test_without_a_usable_variable_it_is_below_the_home(
    find, variable, below_home, value, tmp_path: Path
):
    environment = {variable: value, "HOME": str(tmp_path)}

    assert find(environment) == str(tmp_path / below_home / "modular_tf")


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
def test_the_system_knows_the_home_of_who_has_no_variable(
    find, variable, below_home, tmp_path: Path, monkeypatch
):
    entry = pwd.struct_passwd(("me", "x", os.getuid(), 0, "", str(tmp_path), ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry if uid == os.getuid() else None)

    assert find({}) == str(tmp_path / below_home / "modular_tf")


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
@pytest.mark.parametrize("home", ["", "relative", "."])
def test_without_a_home_there_is_none(find, variable, below_home, home, tmp_path, monkeypatch):
    (tmp_path / "relative").mkdir()
    monkeypatch.chdir(tmp_path)

    assert find({"HOME": home, variable: home}) is None


@pytest.mark.parametrize("find", [cache, state])
def test_nothing_is_kept_in_a_home_that_is_not_there(find):
    assert find({"HOME": "/nonexistent/home"}) is None


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
def test_a_user_without_a_home_has_none(find, variable, below_home, nobody_in_particular):
    assert find({}) is None
    assert home_directory(os.environ) is None


@pytest.mark.parametrize("find", [cache_directory, state_directory])
def test_a_privileged_process_keeps_nothing(find, tmp_path: Path):
    environment = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(tmp_path))

    assert find(environment, privileged=True) is None


def test_a_tilde_is_the_home(tmp_path: Path):
    environment = {"HOME": str(tmp_path)}

    assert expand_home("~", environment) == f"{tmp_path}/"
    assert expand_home("~/x/~", environment) == str(tmp_path / "x/~")
    assert expand_home("/x/~", environment) == "/x/~"
    assert expand_home(f"~{pwd.getpwuid(0).pw_name}/x", {}) == f"{pwd.getpwuid(0).pw_dir}/x"
    assert expand_home("~no-user-has-this-name/x", environment) == "~no-user-has-this-name/x"


def test_a_tilde_without_a_home_is_nothing(nobody_in_particular):
    assert expand_home("~/x") is None
    assert expand_home("~") is None
    assert expand_home("~/x", {"HOME": "relative"}) is None


def test_ignored_variables_are_told():
    environment = {"HOME": "home", "XDG_DATA_HOME": "", "XDG_STATE_HOME": "~/s", "TMPDIR": "t"}
    told = [str(variable) for variable in ignored_variables(environment)]

    assert told == [
        "HOME is ignored: expected an absolute path, found 'home'",
        "XDG_STATE_HOME is ignored: expected an absolute path, found '~/s'",
    ]
    assert ignored_variables({"HOME": "/home", "XDG_CACHE_HOME": "/c"}) == []
