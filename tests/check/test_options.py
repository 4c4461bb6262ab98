"""The options of checks: each is known, has a type, and is read by a check."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import modular_tf.check
from modular_tf.check.options import OPTIONS
from modular_tf.check.pytest_plugin import settings_for
from modular_tf.check.settings import FILE_NAME, bundled_profile, load_settings, profile_names
from modular_tf.errors import ConfigError

_RIGHT = {
    "capacity_option": "limit",
    "clock_tolerance_s": 0.5,
    "create_roots": False,
    "large_bytes": 1 << 20,
    "large_files": 70_000,
    "load_seconds": 2,
    "longest_program": 20,
    "many": 40,
    "ops": ("Relu*",),
    "ordinals": (0, 1),
    "prepared": True,
    "pressure_mib": 32,
    "programs": 60,
    "repeat": 20,
    "schemes": ("ram", ""),
}
_WRONG = {
    "capacity_option": 3,
    "clock_tolerance_s": 0,
    "create_roots": "no",
    "large_bytes": 1.5,
    "large_files": 0,
    "load_seconds": float("inf"),
    "longest_program": 0,
    "many": True,
    "ops": "Relu",
    "ordinals": 0,
    "prepared": 1,
    "pressure_mib": "32",
    "programs": -1,
    "repeat": "often",
    "schemes": "ram",
}


def _read_by_checks() -> set[str]:
    """Return the names of options that code of the kit reads."""
    names = set()
    for path in Path(modular_tf.check.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=asked, attr=name) if name in OPTIONS:
                    if ast.unparse(asked).endswith(("options", "for_checks")):
                        names.add(name)
    return names


def test_every_option_is_read_by_a_check():
    assert _read_by_checks() == {*OPTIONS}


def test_the_samples_are_of_every_option():
    assert {*_RIGHT} == {*_WRONG} == {*OPTIONS}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_value_of_the_right_shape_is_taken(name, tmp_path):
    settings = tmp_path / FILE_NAME
    settings.write_text(f"[options]\n{name} = {json.dumps(_RIGHT[name])}\n")

    assert load_settings(str(settings)).options == {name: _RIGHT[name]}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_value_of_another_shape_is_refused_with_what_is_expected(name, tmp_path):
    settings = tmp_path / FILE_NAME
    value = "inf" if _WRONG[name] == float("inf") else json.dumps(_WRONG[name])
    settings.write_text(f"[options]\n{name} = {value}\n")

    with pytest.raises(ConfigError, match=f"options: {name}: expected .*, found "):
        load_settings(str(settings))


def test_a_mistyped_name_is_refused_with_the_one_that_was_meant(tmp_path):
    settings = tmp_path / FILE_NAME
    settings.write_text("[options]\nreapeat = 3\n")

    with pytest.raises(ConfigError, match="did you mean repeat"):
        load_settings(str(settings))


def test_options_of_a_profile_and_of_a_test_class_are_looked_at_too(tmp_path):
    settings = tmp_path / FILE_NAME
    settings.write_text("profile = 'm'\n[profiles.m.options]\nmany = 'all'\n")

    with pytest.raises(ConfigError, match="many: expected a whole number"):
        load_settings(str(settings))
    settings.write_text("")
    with pytest.raises(ConfigError, match="repeat: expected a whole number"):
        settings_for(str(tmp_path), options={"repeat": "often"})
    assert settings_for(str(tmp_path), options={"repeat": 3}).options == {"repeat": 3}


def test_the_profiles_of_the_package_have_options_of_the_right_shape():
    assert [bundled_profile(name).name for name in profile_names()] == profile_names()
