"""Target: the configuration file and the environment over it.

A configuration has what the file says, of the types of its fields; a refusal names what is wrong.
Which values are right is stated by `tests/service/test_configuration.py`.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from typing import Any, get_args, get_origin, get_type_hints

from modular_tf.errors import ConfigError
from modular_tf.service import configuration
from modular_tf.service.configuration import Config, load_config
from tests.fuzz.config_texts import KEYS, make
from tests.fuzz.given_file import path_with

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["check", "make"]


def check(given):
    """Read it; a configuration is as the file says, and a refusal names what is wrong."""
    content, variables = given
    path = path_with(content)
    values = _plainly_parsed(content)
    try:
        config = load_config({configuration.CONFIG_VARIABLE: path, **variables})
    except ConfigError as error:
        return _check_refusal(str(error), path, values, variables)
    assert values is not None, "no TOML, and accepted"
    assert values.keys() <= set(KEYS)
    _check_config(config, values, variables)
    return "accepted"


def _check_refusal(error, path, values, variables):
    if values is None:
        assert path in error
        assert "not valid TOML" in error or "cannot be read" in error
        return "no TOML"
    if unknown := values.keys() - set(KEYS):
        assert f"unknown keys {sorted(unknown)}" in error
        return "unknown key"
    if path not in error:
        assert any(name in error for name in variables), error
        return "variable"
    assert any(re.search(rf"\b{key}\b", error) for key in values), error
    return "wrong value"


def _check_config(config, values, variables):
    hints = get_type_hints(Config, vars(configuration) | {"Mapping": dict, "Sequence": list})
    for key in KEYS:
        assert _fits(getattr(config, key), hints[key]), f"{key}: {getattr(config, key)!r}"
    for key in {"enable", "disable", "visible_devices"} & values.keys():
        assert getattr(config, key) == tuple(values[key])
    for key in {"priorities", "scheme_pins", "dlpack_types", "device_count"} & values.keys():
        assert getattr(config, key) == values[key]
    if not variables:
        defaults = Config()
        for key in set(KEYS) - values.keys():
            assert getattr(config, key) == getattr(defaults, key), key
    assert all(map(os.path.isabs, config.plugin_dirs))
    assert pickle.loads(pickle.dumps(config)) == config
    config.why_disabled("any")
    config.memory_of("GPU", variables)


def _fits(value, hint):
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is tuple:
        return type(value) is tuple and all(_fits(entry, arguments[0]) for entry in value)
    if origin is dict:
        return type(value) is dict and all(
            _fits(k, arguments[0]) and _fits(v, arguments[1]) for k, v in value.items()
        )
    if arguments:  # a union
        return any(_fits(value, argument) for argument in arguments)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint if hint in (int, bool, str) else isinstance(value, hint)


def _plainly_parsed(content):
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):  # numbers too long for Python are no TOMLDecodeError
        return None
    return values if _fit_64_bits(values) else None


def _fit_64_bits(value):
    if type(value) in (dict, list):
        return all(map(_fit_64_bits, value.values() if type(value) is dict else value))
    return type(value) is not int or -(1 << 63) <= value < 1 << 63
