"""The configuration: a TOML file, overridden by the environment, overridden by arguments."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from modular_tf.device.memory.memory_limit import environment_settings
from modular_tf.device.memory.memory_settings import (
    MemorySettings,
    all_under,
    parse_memory,
    settings_of,
)
from modular_tf.device.names import LOCAL_PREFIX
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.trust.policy import (
    TrustPolicy,
    default_lock_path,
    frozen_by,
    parse_policy,
)
from modular_tf.discovery.user_directories import NO_HOME, config_directory, expand_home
from modular_tf.errors import ConfigError
from modular_tf.rules.keys import unknown_keys
from modular_tf.rules.shortage import raise_shortage
from modular_tf.rules.user_places import CONFIGURATION_OWNER
from modular_tf.service.configuration_keys import KEYS, LISTS, PROCESS, SINGLE, TABLES
from modular_tf.service.configuration_variables import said_by
from modular_tf.service.configured_filesystems import parse_filesystems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONFIG_VARIABLE = "MODULAR_TF_CONFIG"
FILE_NAME = "modular-tf.toml"


@dataclass(frozen=True, slots=True)
class Config:
    """What a user may decide. Immutable, and it pickles.

    Attributes:
        plugin_dirs: Directories or files to search for plugins.
        enable: Globs over plugin names; when given, no other plugin is loaded.
        disable: Globs over plugin names that are not loaded, whatever `enable` says.
        priorities: Priority of device factories, by `TYPE` or `TYPE:PLATFORM`.
        scheme_pins: Name of the plugin that alone may serve a scheme.
        filesystems: What serves a scheme in the place of any plugin, by scheme: `"fsspec"`, for
            what fsspec has under this name; a table of `fsspec`, a protocol, and the options of its
            filesystem, each of which may be `{env = "VARIABLE"}`; or a table of `object`, the
            `package.module:name` of a filesystem or of a function or class without arguments that
            makes one. Nothing is imported before the first use of the scheme. What cannot be made
            is an error of that use, and is tried again by the next.
        fsspec_fallback: Whether a scheme that neither a plugin nor `filesystems` serves goes to the
            client that fsspec has for it, where that is installed. It does not where `scheme_pins`
            names a plugin for the scheme, or where plugins are frozen. A plugin that comes later
            takes the scheme.
        dlpack_types: What the device memory of a platform is to other libraries, as `CUDA` or
            `ONE_API` (`modular_tf.abi.dlpack_devices.DeviceType`). Where nothing is said
            it is `CPU` for the bundled host device, and `EXT_DEV` for others.
        visible_devices: Devices to list, `TYPE:ordinal` in the order wanted; empty for all.
        device_count: The most devices of a type that are listed, by device type, as in TensorFlow's
            `ConfigProto`; of types that are not named, all are.
        name_prefix: What the full names of devices begin with: the job, replica and task of this
            process in its cluster.
        memory: How much device memory arenas may take, by device type; under "" for all types.
            What is said for no type is for TensorFlow's environment variables to say.
        calls_at_once: The most calls of one store that work on many files makes at once, 1 to 256:
            as `cat`, `get`, `rm` and `du` of fsspec, `fs cp -r`, copies of trees. A store of this
            machine is asked one call at a time.
        copy_streams: How many streams of a device share its copies to other devices, 1 to 4.
        isolation: Where filesystem plugins run: "none", in this process, or "process", each in a
            worker process of its own; or either by globs over names, the first that matches. None
            is "process" where `call_timeout_s` is set, and "none" otherwise.
        call_timeout_s: Seconds that a call of a plugin in a worker process may take, after which
            the process is ended; None as long as it takes. Calls of plugins that run in this
            process, and of Python filesystems, have no limit.
        most_worker_faults: How often a worker process may end within five minutes while it is used;
            then none is started for the plugin until they are over. 0 for any number.
        worker_directories: Directories that the worker processes of plugins may use, by globs over
            names: those of plugins for local files these alone, where any are named; those of
            others besides what their stores need. All globs that match count.
        instance_idle_s: Seconds after which the worker process of an instance ends that fsspec's
            `storage_options` asked for, when it has no call under way and no open file; the next
            call starts it again.
        most_instances: How many of these instances have a process at a time. One more ends the one
            that was idle for longest, or is refused where none is idle.
        first_contact: Whether a plugin runs in a child process before it runs in this one:
            "always", "new" (only bytes that were never seen good on this host) or "never".
        first_contact_timeout_s: Seconds that one plugin may take there.
        first_contact_memory_mib: MiB of memory that one plugin may take there.
        first_contact_accept: Ids of rules of first contact that are taken as warnings.
        load: When the library of a plugin is mapped that is known from an earlier trial: "lazy",
            at the first use of its scheme or device, or "eager".
        tell_ended_calls: Whether it is told on standard error, and kept for the next process, when
            this one ends in a call into a plugin. That needs handlers of signals, which pass on to
            those that are there when the first plugin is mapped.
        statistics: Whether the calls into plugins are counted, for `PluginService.statistics`.
        trust: Whose files are opened.
        close_timeout_s: Seconds that `PluginService.close` waits for plugins, such as one that
            sends what was written to a store, and that exit handlers and destructors of plugins
            may take at the end of the process, which then ends at once; None as long as it takes.
            Of several services in a process the longest time counts for the latter.
        watch_poll_interval_s: Seconds between two polls of the watched directories.
        path: The file it was read from, None for none.
    """

    plugin_dirs: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    priorities: Mapping[str, int] = field(default_factory=dict)
    scheme_pins: Mapping[str, str] = field(default_factory=dict)
    filesystems: Mapping[str, Any] = field(default_factory=dict)
    fsspec_fallback: bool = True
    dlpack_types: Mapping[str, str] = field(default_factory=dict)
    visible_devices: tuple[str, ...] = ()
    device_count: Mapping[str, int] = field(default_factory=dict)
    name_prefix: str = LOCAL_PREFIX
    memory: Mapping[str, MemorySettings] = field(default_factory=dict)
    calls_at_once: int = 32
    copy_streams: int = 1
    isolation: str | Mapping[str, str] | None = None
    call_timeout_s: float | None = None
    most_worker_faults: int = 5
    worker_directories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    instance_idle_s: float = 60.0
    most_instances: int = 64
    first_contact: str = "new"
    first_contact_timeout_s: float = 30.0
    first_contact_memory_mib: int = 1024
    first_contact_accept: tuple[str, ...] = ()
    load: str = "lazy"
    tell_ended_calls: bool = True
    statistics: bool = False
    trust: TrustPolicy = field(default_factory=TrustPolicy)
    close_timeout_s: float | None = None
    watch_poll_interval_s: float = 0.2
    path: str | None = None

    def __post_init__(self) -> None:
        for name in LISTS:
            value = getattr(self, name)
            if isinstance(value, str | bytes):  # it would count as a list of its letters
                raise TypeError(f"Config.{name}: expected several strings, found {value!r}")
        self._set_filesystems()
        accept = self.first_contact_accept
        if (expected := KEYS["first_contact_accept"].why_wrong(list(accept))) is not None:
            found = f"expected {expected}, found {accept!r}"
            raise ValueError(f"Config.first_contact_accept: {found}")
        for device_type, settings in self.memory.items():
            if not isinstance(settings, MemorySettings):
                raise TypeError(f"Config.memory[{device_type!r}]: found {settings!r}")
        for name in (*SINGLE, "device_count", "worker_directories"):
            key = KEYS[name]
            if (expected := key.why_wrong(value := getattr(self, name))) is not None:
                raise ValueError(f"Config.{name}: expected {expected}, found {value!r}")

    def _set_filesystems(self) -> None:
        try:
            parsed = parse_filesystems(self.filesystems)
        except ValueError as error:
            raise ConfigError(f"{self.path or 'Config'}: {error}", path=self.path) from None
        object.__setattr__(self, "filesystems", parsed)
        if twice := sorted(parsed.keys() & self.scheme_pins.keys()):
            text = f"{self.origin}: {twice} in `filesystems` and in `scheme_pins`; keep one of each"
            raise ConfigError(text, path=self.path)

    def with_given(self, **values: Any) -> Config:
        """Return this configuration with the values that are not None in place of its own."""
        given = {name: value for name, value in values.items() if value is not None}
        return replace(self, **given) if given else self

    def why_disabled(self, plugin: str) -> str | None:
        """Return the glob that keeps a plugin from being loaded, as a sentence; None for none."""
        for glob in self.disable:
            if fnmatchcase(plugin, glob):
                return f"{plugin!r} matches {glob!r} in `disable` of {self.origin}"
        if self.enable and not any(fnmatchcase(plugin, glob) for glob in self.enable):
            return f"{plugin!r} matches none of {list(self.enable)} in `enable` of {self.origin}"
        return None

    def is_isolated(self, plugin: str) -> bool:
        """Return whether a plugin is to run in a process of its own."""
        said = self.isolation
        if said is None:
            return self.call_timeout_s is not None
        if isinstance(said, str):
            return said == PROCESS
        return next((v for glob, v in said.items() if fnmatchcase(plugin, glob)), "") == PROCESS

    def directories_of(self, plugin: str) -> tuple[str, ...]:
        """Return the directories that the worker process of a plugin may use."""
        named = self.worker_directories.items()
        return tuple(d for glob, found in named if fnmatchcase(plugin, glob) for d in found)

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


def config_path(environment: Mapping[str, str]) -> str | None:
    """Return the file that would be read, as an absolute path; None for none.

    It is the one that `MODULAR_TF_CONFIG` names, which may begin where the program does, or the
    user's own, which may not.

    Raises:
        ConfigError: The variable names a file in a home directory, and there is none.
    """
    if chosen := environment.get(CONFIG_VARIABLE):
        return os.path.abspath(_expanded(chosen, CONFIG_VARIABLE, environment))
    directory = config_directory(environment)
    return None if directory is None else os.path.join(directory, FILE_NAME)


def _expanded(path: str, origin: str, environment: Mapping[str, str] | None = None) -> str:
    """Return a path with the home directory in the place of `~`."""
    expanded = expand_home(path, environment)
    if expanded is None:
        raise ConfigError(f"{origin}: {path!r} is below the home directory, but {NO_HOME}")
    return expanded


def lock_path(config: Config) -> str | None:
    """Return the lock file of frozen plugins; None where only the user names one who must not."""
    if config.trust.lock or (config.path is None and is_privileged()):
        return config.trust.lock
    return default_lock_path(config.path or config_path(os.environ))


def trust_of(config: Config) -> TrustPolicy:
    """Return what is decided about trust, with the lock file that counts."""
    lock = lock_path(config)
    return config.trust if lock == config.trust.lock else replace(config.trust, lock=lock)


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
            nobody has named it and others can change it (LD-106); or `MODULAR_TF_CONFIG` names a
            file that does not exist, or `MODULAR_TF_FIRST_CONTACT` or `MODULAR_TF_LOAD` is no
            policy, or `MODULAR_TF_TELL_ENDED_CALLS`, `MODULAR_TF_STATISTICS` or
            `MODULAR_TF_FSSPEC_FALLBACK` neither 0 nor 1, or `MODULAR_TF_CALLS_AT_ONCE` no number
            from 1 to 256.
        ShortageError: The file cannot be read now.
    """
    if privileged:
        return Config()
    variables = os.environ if environment is None else environment
    config = _read_config(variables)
    config = replace(config, **said_by(variables))
    try:
        frozen = frozen_by(variables)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if frozen is not None:
        config = replace(config, trust=replace(config.trust, frozen=frozen))
    if (said := environment_settings(variables)) != MemorySettings():
        config = replace(config, memory=all_under(config.memory, said))
    return config


def _read_config(variables: Mapping[str, str]) -> Config:
    path = config_path(variables)
    if path is None:
        return Config()
    try:
        with open(path, "rb", opener=_opened_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise ConfigError(f"{path}: expected a regular file", path=path)
            text = stream.read().decode("utf-8")
    except FileNotFoundError:
        if variables.get(CONFIG_VARIABLE):
            raise ConfigError(f"{CONFIG_VARIABLE} names {path}, which does not exist") from None
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise_shortage(error)
        raise ConfigError(f"{path}: cannot be read: {error}", path=path) from error
    if not variables.get(CONFIG_VARIABLE):
        _require_trusted(path)
    return parse_config(text, path)


def _opened_at_once(path: str, flags: int) -> int:
    """Open a file, not waiting for somebody who writes to a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _require_trusted(path: str) -> None:
    """Check that nobody can have written the user's file who could not write plugins either."""
    from modular_tf.discovery.trust.paths import PathJudge  # noqa: PLC0415  (where there is a file)
    from modular_tf.discovery.trust.rights import Rights  # noqa: PLC0415
    from modular_tf.discovery.trust.writers import trusted_writers  # noqa: PLC0415

    offence = PathJudge(Rights(trusted_writers(TrustPolicy()))).judge(path).offence
    if offence is not None:
        message = f"{path} is not believed: {offence.message}. {CONFIGURATION_OWNER.remedy}"
        raise ConfigError(message, path=path, rule=CONFIGURATION_OWNER.id)


def parse_config(text: str, path: str) -> Config:
    """Make a configuration of a file's text.

    Raises:
        ConfigError: See `load_config`; it names the key, what was expected and what was found.
    """
    values = _tables(text, path)
    known = {name.partition(".")[0] for name in KEYS}
    if (wrong := unknown_keys(values, known)) is not None:
        raise ConfigError(f"{path}: {wrong}", path=path)
    checked = {key: _checked(key, value, path) for key, value in values.items()}
    if "plugin_dirs" in checked:
        checked["plugin_dirs"] = tuple(_place(entry, path) for entry in checked["plugin_dirs"])
    return Config(**checked, path=path)


def _tables(text: str, path: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415  (most processes have no file to read)
    else:
        import tomli as tomllib  # noqa: PLC0415
    try:
        values = tomllib.loads(text)
        _require_64_bits(values)
    except (ValueError, RecursionError) as error:  # as numbers and nesting beyond Python's limits
        raise ConfigError(f"{path}: not valid TOML: {error}", path=path) from error
    return values


def _require_64_bits(values: dict[str, Any]) -> None:
    """Refuse longer integers, as TOML asks; Python would fail later, when it shows them."""
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise ValueError("an integer needs more than 64 bits")


def _place(entry: str, path: str) -> str:
    """Make a path of `plugin_dirs` absolute: relative ones begin where the file is."""
    if "\0" in entry:
        message = f"{path}: plugin_dirs: expected paths without NUL characters, found {entry!r}"
        raise ConfigError(message, path=path)
    expanded = _expanded(entry, f"{path}: plugin_dirs")
    return os.path.join(os.path.dirname(os.path.abspath(path)), expanded)


def _checked(key: str, value: Any, path: str) -> Any:
    """Bring one value into its type, or say what is wrong with it."""
    if key == "filesystems":
        return value  # whose message must show no option
    if key in TABLES:
        try:
            if key == "trust":
                return parse_policy(value, os.path.dirname(os.path.abspath(path)))
            return parse_memory(value)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}", path=path) from None
    if (expected := KEYS[key].why_wrong(value)) is not None:
        raise ConfigError(f"{path}: {key}: expected {expected}, found {value!r}", path=path)
    return tuple(value) if key in LISTS else value
