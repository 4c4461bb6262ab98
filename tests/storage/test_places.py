"""Our files lie where the XDG Base Directory Specification has them, or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf.storage.places import cache_directory, state_directory

if TYPE_CHECKING:
    from pathlib import Path

PLACES = [
    pytest.param(cache_directory, "XDG_CACHE_HOME", ".cache", id="cache"),
    pytest.param(state_directory, "XDG_STATE_HOME", ".local/state", id="state"),
]


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
def test_the_variable_names_the_place(find, variable, below_home):
    assert find({variable: "/somewhere"}, privileged=False) == "/somewhere/modular_tf"


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
@pytest.mark.parametrize("value", ["", "not/absolute", "~/x"])
def test_without_a_usable_variable_it_is_below_the_home(
    find, variable, below_home, value, tmp_path: Path
):
    environment = {variable: value, "HOME": str(tmp_path)}

    assert find(environment, privileged=False) == str(tmp_path / below_home / "modular_tf")


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
def test_the_system_knows_the_home_of_who_has_no_variable(
    find, variable, below_home, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert find({}, privileged=False) == str(tmp_path / below_home / "modular_tf")


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
@pytest.mark.parametrize("home", ["", "relative", "/nonexistent/home"])
def test_without_a_home_there_is_none(find, variable, below_home, home):
    assert find({"HOME": home}, privileged=False) is None


@pytest.mark.parametrize(("find", "variable", "below_home"), PLACES)
def test_a_privileged_process_has_none(find, variable, below_home, tmp_path: Path):
    environment = {variable: str(tmp_path), "HOME": str(tmp_path)}

    assert find(environment, privileged=True) is None
