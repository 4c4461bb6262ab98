"""Every key of the configuration file: what it may hold, and which variables replace it.

What a key means, and its default, stand at the class that holds its value: `Config`, `TrustPolicy`
or `MemorySettings`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from modular_tf.device.memory.memory_settings import MEMORY_KEYS
from modular_tf.device.names import is_name_prefix
from modular_tf.discovery.trust.policy import TRUST_KEYS
from modular_tf.first_contact.limits import ACCEPTABLE
from modular_tf.rules.keys import Key, choice, flag, is_number, list_of, table_of
from modular_tf.service.configured_filesystems import EXPECTED, parse_filesystems

FIRST_CONTACT_VARIABLE = "MODULAR_TF_FIRST_CONTACT"
CALLS_VARIABLE = "MODULAR_TF_CALLS_AT_ONCE"
ISOLATION_VARIABLE = "MODULAR_TF_ISOLATION"
CALL_TIMEOUT_VARIABLE = "MODULAR_TF_CALL_TIMEOUT_S"
NONE, PROCESS = "none", "process"
LOAD_VARIABLE = "MODULAR_TF_LOAD"
STATISTICS_VARIABLE = "MODULAR_TF_STATISTICS"
FALLBACK_VARIABLE = "MODULAR_TF_FSSPEC_FALLBACK"
TELL_VARIABLE = "MODULAR_TF_TELL_ENDED_CALLS"
# What limits of processes and waits of threads can be told.
_FEWEST_SECONDS, _MOST_SECONDS = 0.001, 1_000_000
_MOST_MIB = 1 << 30
_CALLS_AT_ONCE = range(1, 257)
_MOST_FAULTS = 1_000_000
_MOST_INSTANCES = 10_000
_COPY_STREAMS = range(1, 5)  # TensorFlow's num_dev_to_dev_copy_streams


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_seconds(value: Any) -> bool:
    return is_number(value) and bool(_FEWEST_SECONDS <= value <= _MOST_SECONDS)


def _is_isolation(value: Any) -> bool:
    places = value.values() if isinstance(value, Mapping) else (value,)
    return all(place in (NONE, PROCESS) for place in places)


def _are_directories(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(named, list | tuple)
        and all(_is_string(one) and os.path.isabs(one) and "\0" not in one for one in named)
        for named in value.values()
    )


def _are_filesystems(value: Any) -> bool:
    try:
        parse_filesystems(value)
    except ValueError:
        return False
    return True


def _are_counts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(type(n) is int and n >= 0 for n in value.values())


_STRINGS = list_of("a list of strings", _is_string)
_SECONDS = Key(f"a number of seconds from {_FEWEST_SECONDS} to {_MOST_SECONDS}", _is_seconds)

LISTS: Mapping[str, Key] = {
    "plugin_dirs": _STRINGS,
    "enable": _STRINGS,
    "disable": _STRINGS,
    "visible_devices": _STRINGS,
    "first_contact_accept": list_of(
        f"a list of ids among {sorted(ACCEPTABLE)}",
        lambda value: _is_string(value) and value in ACCEPTABLE,
    ),
}
"""The keys with a list of strings."""
SINGLE: Mapping[str, Key] = {
    "calls_at_once": Key(
        "a number from 1 to 256",
        lambda value: type(value) is int and value in _CALLS_AT_ONCE,
        (CALLS_VARIABLE,),
    ),
    "copy_streams": Key(
        "a number from 1 to 4", lambda value: type(value) is int and value in _COPY_STREAMS
    ),
    "isolation": Key(
        f"{NONE!r} or {PROCESS!r}, or a table of globs with one of these",
        lambda value: value is None or _is_isolation(value),
        (ISOLATION_VARIABLE,),
    ),
    "call_timeout_s": Key(
        _SECONDS.expected,
        lambda value: value is None or _SECONDS.is_right(value),
        (CALL_TIMEOUT_VARIABLE,),
    ),
    "most_worker_faults": Key(
        f"a number from 0 to {_MOST_FAULTS}",
        lambda value: type(value) is int and 0 <= value <= _MOST_FAULTS,
    ),
    "instance_idle_s": _SECONDS,
    "most_instances": Key(
        f"a number from 1 to {_MOST_INSTANCES}",
        lambda value: type(value) is int and 1 <= value <= _MOST_INSTANCES,
    ),
    "first_contact": choice(("always", "new", "never"), FIRST_CONTACT_VARIABLE),
    "first_contact_timeout_s": _SECONDS,
    "first_contact_memory_mib": Key(
        f"a whole number of MiB from 1 to {_MOST_MIB}",
        lambda value: type(value) is int and 0 < value <= _MOST_MIB,
    ),
    "load": choice(("lazy", "eager"), LOAD_VARIABLE),
    "name_prefix": Key("a text such as /job:worker/replica:0/task:1", is_name_prefix),
    "fsspec_fallback": flag(FALLBACK_VARIABLE),
    "statistics": flag(STATISTICS_VARIABLE),
    "tell_ended_calls": flag(TELL_VARIABLE),
    "close_timeout_s": Key(
        _SECONDS.expected, lambda value: value is None or _SECONDS.is_right(value)
    ),
    "watch_poll_interval_s": _SECONDS,
}
"""The keys with a single value."""
TABLES: Mapping[str, Mapping[str, Key]] = {"memory": MEMORY_KEYS, "trust": TRUST_KEYS}
"""The tables that have keys of their own."""
KEYS: Mapping[str, Key] = {
    **LISTS,
    **SINGLE,
    "priorities": table_of(int),
    "scheme_pins": table_of(str),
    "filesystems": Key(EXPECTED, _are_filesystems),
    "dlpack_types": table_of(str),
    "worker_directories": Key("a table of globs with lists of absolute paths", _are_directories),
    "device_count": Key("a table of numbers from 0", _are_counts),
    **{f"{table}.{name}": key for table, keys in TABLES.items() for name, key in keys.items()},
}
"""All of them; those in a table under its name and theirs, as `trust.frozen`."""


def variables_of(name: str) -> list[str]:
    """Return the variables of the environment that replace a key, or keys of a table.

    Args:
        name: A key, or the name of a table.
    """
    keys = TABLES.get(name) or {name: KEYS[name]}
    return [variable for key in keys.values() for variable in key.variables]
