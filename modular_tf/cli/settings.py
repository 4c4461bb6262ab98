"""The value and origin of each configuration key, for `modular-tf paths`."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.trust.policy import default_lock_path
from modular_tf.discovery.user_directories import cache_directory, state_directory
from modular_tf.service.configuration import CONFIG_VARIABLE, Config, load_config
from modular_tf.service.configuration_keys import KEYS, variables_of
from modular_tf.service.configured_filesystems import ConfiguredFilesystem
from modular_tf.service.kept.storage.trusted_directory import why_untrusted

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE_ONLY = (CONFIG_VARIABLE, "XDG_CONFIG_HOME", "HOME")


class Setting(NamedTuple):
    """One key of the configuration.

    Attributes:
        key: Its name in the file.
        value: What holds, as JSON knows it.
        origin: Who said so: variables, the file's path, or `default`.
    """

    key: str
    value: Any
    origin: str


def settings_of(config: Config, environment: Mapping[str, str]) -> list[Setting]:
    """Return every key, in the order of their names.

    Args:
        config: What holds.
        environment: What it was read with.
    """
    kept = {name: environment[name] for name in _FILE_ONLY if name in environment}
    by_file = Config() if config.path is None else load_config(kept)
    names = sorted({name.partition(".")[0] for name in KEYS})
    return [
        Setting(name, _plain(getattr(config, name)), _origin(name, config, by_file, environment))
        for name in names
    ]


def _origin(name: str, config: Config, by_file: Config, environment: Mapping[str, str]) -> str:
    value = getattr(config, name)
    if value != getattr(by_file, name):
        said = [variable for variable in variables_of(name) if environment.get(variable)]
        return ", ".join(said) or "argument"
    return "default" if value == getattr(Config(), name) else config.origin


def _plain(value: Any) -> Any:
    if isinstance(value, ConfiguredFilesystem):
        return value.shown()
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if hasattr(value, "items"):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value


def unused_places(places: Mapping[str, str | None]) -> dict[str, str]:
    """Return why nothing is kept in one of `own_places`, by name; the others are left out."""
    named = {name: places[name] for name in ("cache", "state")}
    reasons = {name: path and why_untrusted(path) for name, path in named.items()}
    return {name: why for name, why in reasons.items() if why}


def own_places(config_file: str | None, environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return where this package keeps what it finds out, None for nowhere.

    Args:
        config_file: The configuration file, whether it is there or not; None for none.
        environment: The variables of the process.
    """
    privileged = is_privileged()
    return {
        "cache": cache_directory(environment, privileged=privileged),
        "state": state_directory(environment, privileged=privileged),
        "lock": default_lock_path(config_file),
    }
