"""Target: the configuration file and the environment over it, against a plain statement of it.

A key that `_RIGHT` does not know is held to its field's type, and to being named when refused.
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


def _are_strings(value):
    return type(value) is list and all(type(entry) is str for entry in value)


def _are_named(kind):
    return lambda value: type(value) is dict and all(type(v) is kind for v in value.values())


def _is_integer(first, end):
    return lambda value: type(value) is int and first <= value < end


def _is_bool(value):
    return type(value) is bool


def _is_one_of(*words):
    return lambda value: value in words


def _is_duration(value):
    return type(value) in (int, float) and 0.001 <= value <= 1_000_000


_MEMORY = {
    "limit_bytes": _is_integer(0, 1 << 62),
    "host_limit_bytes": _is_integer(0, 1 << 62),
    "fraction": lambda value: type(value) in (int, float) and 0 < value <= 1,
    "growth": _is_bool,
    "garbage_collection": _is_bool,
}


def _is_memory(value, *, inner=False):
    if type(value) is not dict or {"limit_bytes", "fraction"} <= value.keys():
        return False
    return all(
        not inner
        and bool(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", key))
        and _is_memory(entry, inner=True)
        if type(entry) is dict
        else key in _MEMORY and _MEMORY[key](entry)
        for key, entry in value.items()
    )


_PREFIX = "/job:[A-Za-z][A-Za-z0-9_]*/replica:[0-9]+/task:[0-9]+"
_RIGHT = {
    "plugin_dirs": lambda value: _are_strings(value) and not any("\0" in path for path in value),
    "enable": _are_strings,
    "disable": _are_strings,
    "visible_devices": _are_strings,
    "priorities": _are_named(int),
    "scheme_pins": _are_named(str),
    "filesystems": configuration.KEYS["filesystems"].is_right,
    "dlpack_types": _are_named(str),
    "device_count": lambda value: _are_named(int)(value) and min(value.values(), default=0) >= 0,
    "name_prefix": lambda value: type(value) is str and bool(re.fullmatch(_PREFIX, value)),
    "memory": _is_memory,
    "calls_at_once": _is_integer(1, 257),
    "copy_streams": _is_integer(1, 5),
    "first_contact": _is_one_of("always", "new", "never"),
    "first_contact_timeout_s": _is_duration,
    "first_contact_memory_mib": _is_integer(1, (1 << 30) + 1),
    "watch_poll_interval_s": _is_duration,
    "load": _is_one_of("lazy", "eager"),
}


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
    wrong = [key for key, value in values.items() if key in _RIGHT and not _RIGHT[key](value)]
    assert not wrong, f"accepted with wrong values of {wrong}"
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
    wrong = {key for key, value in values.items() if key not in _RIGHT or not _RIGHT[key](value)}
    assert any(re.search(rf"\b{key}\b", error) for key in wrong), f"no key is wrong: {error}"
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
