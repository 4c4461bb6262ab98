"""The configuration: a TOML file, overridden by the environment, overridden by arguments."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from modular_tf.device.memory_limit import environment_settings
from modular_tf.device.memory_settings import MemorySettings, all_under, parse_memory, settings_of
from modular_tf.discovery.search_paths import is_privileged
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_VARIABLE = "MODULAR_TF_CONFIG"
FIRST_CONTACT_VARIABLE = "MODULAR_TF_FIRST_CONTACT"
FIRST_CONTACT_POLICIES = ("always", "never")
FILE_NAME = "modular-tf.toml"
_COPY_STREAMS = range(1, 5)  # TensorFlow's num_dev_to_dev_copy_streams
_SINGLE = ("copy_streams", "first_contact", "first_contact_timeout_s")
"""The keys with a single value."""


@dataclass(frozen=True, slots=True)
class Config:
    """What a user may decide. Immutable, and it pickles.

    Attributes:
        plugin_dirs: Directories or files to search for plugins.
        enable: Globs over plugin names; when given, no other plugin is loaded.
        disable: Globs over plugin names that are not loaded, whatever `enable` says.
        priorities: Priority of device factories, by `TYPE` or `TYPE:PLATFORM`.
        scheme_pins: Name of the plugin that alone may serve a scheme.
        dlpack_types: What the device memory of a platform is to other libraries, as `CUDA` or
            `ONE_API` (`modular_tf.abi.dlpack_devices.DeviceType`); `EXT_DEV` where nothing is said.
        visible_devices: Devices to list, `TYPE:ordinal` in the order wanted; empty for all.
        memory: How much device memory arenas may take, by device type; under "" for all types.
            What is said for no type is for TensorFlow's environment variables to say.
        copy_streams: How many streams of a device share its copies to other devices, 1 to 4.
        first_contact: Whether a device plugin runs in a child process before it runs in this one:
            "always" or "never".
        first_contact_timeout_s: Seconds that one plugin may take there.
        path: The file it was read from, None for none.
    """

    plugin_dirs: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    priorities: Mapping[str, int] = field(default_factory=dict)
    scheme_pins: Mapping[str, str] = field(default_factory=dict)
    dlpack_types: Mapping[str, str] = field(default_factory=dict)
    visible_devices: tuple[str, ...] = ()
    memory: Mapping[str, MemorySettings] = field(default_factory=dict)
    copy_streams: int = 1
    first_contact: str = "always"
    first_contact_timeout_s: float = 30.0
    path: str | None = None

    def __post_init__(self) -> None:
        for key in ("plugin_dirs", "enable", "disable", "visible_devices"):
            value = getattr(self, key)
            if isinstance(value, str | bytes):  # it would count as a list of its letters
                raise TypeError(f"Config.{key}: expected several strings, found {value!r}")
        for device_type, settings in self.memory.items():
            if not isinstance(settings, MemorySettings):
                raise TypeError(f"Config.memory[{device_type!r}]: found {settings!r}")
        for key in _SINGLE:
            if (expected := _why_wrong(key, value := getattr(self, key))) is not None:
                raise ValueError(f"Config.{key}: expected {expected}, found {value!r}")

    def why_disabled(self, plugin: str) -> str | None:
        """Return the glob that keeps a plugin from being loaded, as a sentence; None for none."""
        for glob in self.disable:
            if fnmatchcase(plugin, glob):
                return f"{plugin!r} matches {glob!r} in `disable` of {self.origin}"
        if self.enable and not any(fnmatchcase(plugin, glob) for glob in self.enable):
            return f"{plugin!r} matches none of {list(self.enable)} in `enable` of {self.origin}"
        return None

    def memory_of(
        self, device_type: str, environment: Mapping[str, str] | None = None
    ) -> MemorySettings:
        """Return what is decided about the memory of a device type.

        Args:
            device_type: As `GPU`.
            environment: What speaks where the configuration is silent; by default `os.environ`,
                or nothing in a privileged process.
        """
        if environment is None:
            environment = {} if is_privileged() else os.environ
        return settings_of(self.memory, device_type).over(environment_settings(environment))

    @property
    def origin(self) -> str:
        """What to call the configuration in messages."""
        return self.path or "the configuration"


def config_path(environment: Mapping[str, str]) -> str:
    """Return the file that would be read: `MODULAR_TF_CONFIG`, or the user's own."""
    if chosen := environment.get(CONFIG_VARIABLE):
        return chosen
    if sys.platform != "linux":
        import platformdirs  # noqa: PLC0415  (costs more than reading a file)

        return os.path.join(platformdirs.user_config_dir("modular_tf", appauthor=False), FILE_NAME)
    base = environment.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
    return os.path.join(base, "modular_tf", FILE_NAME)


def load_config(
    environment: Mapping[str, str] | None = None, *, privileged: bool = False
) -> Config:
    """Read the configuration file, and what the environment says instead of it.

    Without either, all is at its default.

    Args:
        environment: Instead of `os.environ`.
        privileged: The process has rights that its user lacks: neither the user's file nor their
            environment counts.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or has an unknown or misshapen key; or
            `MODULAR_TF_CONFIG` names a file that does not exist, or `MODULAR_TF_FIRST_CONTACT` is
            no policy.
    """
    if privileged:
        return Config()
    variables = os.environ if environment is None else environment
    config = _read_config(variables)
    if policy := variables.get(FIRST_CONTACT_VARIABLE):
        if (expected := _why_wrong("first_contact", policy)) is not None:
            message = f"{FIRST_CONTACT_VARIABLE}: expected {expected}, found {policy!r}"
            raise ConfigError(message)
        config = replace(config, first_contact=policy)
    if (said := environment_settings(variables)) != MemorySettings():
        config = replace(config, memory=all_under(config.memory, said))
    return config


def _read_config(variables: Mapping[str, str]) -> Config:
    path = config_path(variables)
    try:
        with open(path, "rb") as stream:
            text = stream.read().decode("utf-8")
    except FileNotFoundError:
        if variables.get(CONFIG_VARIABLE):
            raise ConfigError(f"{CONFIG_VARIABLE} names {path}, which does not exist") from None
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", path=path) from error
    return parse_config(text, path)


def parse_config(text: str, path: str) -> Config:
    """Make a configuration of a file's text.

    Raises:
        ConfigError: See `load_config`; it names the key, what was expected and what was found.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415  (most processes have no file to read)
    else:
        import tomli as tomllib  # noqa: PLC0415
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}", path=path) from error
    known = {entry.name for entry in fields(Config)} - {"path"}
    if unknown := sorted(values.keys() - known):
        raise ConfigError(f"{path}: unknown keys {unknown}; known: {sorted(known)}", path=path)
    checked = {key: _checked(key, value, path) for key, value in values.items()}
    if "plugin_dirs" in checked:
        base = os.path.dirname(os.path.abspath(path))
        checked["plugin_dirs"] = tuple(
            os.path.join(base, os.path.expanduser(entry)) for entry in checked["plugin_dirs"]
        )
    return Config(**checked, path=path)


def _checked(key: str, value: Any, path: str) -> Any:
    """Bring one value into its type, or say what is wrong with it."""
    if key == "memory":
        try:
            return parse_memory(value)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}", path=path) from None
    if key in ("priorities", "scheme_pins", "dlpack_types"):
        kind = int if key == "priorities" else str
        if isinstance(value, dict) and all(type(entry) is kind for entry in value.values()):
            return dict(value)
        expected = f"a table of {kind.__name__} values"
    elif key in _SINGLE:
        if (wrong := _why_wrong(key, value)) is None:
            return value
        expected = wrong
    else:
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            return tuple(value)
        expected = "a list of strings"
    raise ConfigError(f"{path}: {key}: expected {expected}, found {value!r}", path=path)


def _why_wrong(key: str, value: Any) -> str | None:
    """Return what the value of a key of `_SINGLE` should be, None if it is that."""
    if key == "first_contact":
        return None if value in FIRST_CONTACT_POLICIES else f"one of {FIRST_CONTACT_POLICIES}"
    if key == "copy_streams":
        is_right = type(value) is int and value in _COPY_STREAMS
        return None if is_right else "a number from 1 to 4"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if number and 0 < value < float("inf") else "a number of seconds above 0"
