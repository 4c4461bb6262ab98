"""The configuration: a TOML file, overridden by the environment, overridden by arguments."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from modular_tf.device.memory.memory_settings import (
    MemorySettings,
    all_under,
    environment_settings,
    parse_memory,
    settings_of,
)
from modular_tf.device.names import LOCAL_PREFIX, is_name_prefix
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import NO_HOME, config_directory, expand_home
from modular_tf.discovery.trust.policy import (
    TrustPolicy,
    default_lock_path,
    parse_policy,
)
from modular_tf.errors import ConfigError
from modular_tf.first_contact.finding import ACCEPTABLE
from modular_tf.rules.keys import (
    Key,
    choice,
    flag,
    is_number,
    keys_of,
    list_of,
    setting,
    table_of,
    unknown_keys,
    values_of,
    whole,
)
from modular_tf.rules.shortage import raise_shortage
from modular_tf.rules.trust import CONFIGURATION_OWNER
from modular_tf.service.configured_filesystems import EXPECTED, parse_filesystems
from modular_tf.tables import parse_table

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIG_VARIABLE = "MODULAR_TF_CONFIG"
ISOLATION_VARIABLE = "MODULAR_TF_ISOLATION"
FILE_NAME = "modular-tf.toml"

_NONE, _PROCESS = "none", "process"
# What limits of processes and waits of threads can be given.
_FEWEST_SECONDS, _MOST_SECONDS = 0.001, 1_000_000
_MOST_MIB = 1 << 30


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_seconds(value: Any) -> bool:
    return is_number(value) and bool(_FEWEST_SECONDS <= value <= _MOST_SECONDS)


def _is_isolation(value: Any) -> bool:
    places = value.values() if isinstance(value, Mapping) else (value,)
    return all(place in (_NONE, _PROCESS) for place in places)


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


def _is_acceptable(value: Any) -> bool:
    return _is_string(value) and value in ACCEPTABLE


def _read_seconds(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _read_isolation(text: str) -> str | dict[str, str]:
    """Read `process`, `none`, or `GLOB=process,GLOB=none`."""
    if "=" not in text:
        return text
    pairs = (entry.rpartition("=") for entry in text.split(","))
    return {glob.strip(): place.strip() for glob, _, place in pairs}


_STRINGS = list_of("a list of strings", _is_string)
_SECONDS = Key(f"a number of seconds from {_FEWEST_SECONDS} to {_MOST_SECONDS}", _is_seconds)


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
        report_ended_calls: Whether standard error and the next process are informed when this one
            ends in a call into a plugin. That needs handlers of signals, which pass on to those
            that are there when the first plugin is mapped.
        statistics: Whether the calls into plugins are counted, for `PluginService.statistics`.
        trust: Whose files are opened.
        close_timeout_s: Seconds that `PluginService.close` waits for plugins, such as one that
            sends what was written to a store, and that exit handlers and destructors of plugins
            may take at the end of the process, which then ends at once; None as long as it takes.
            Of several services in a process the longest time counts for the latter.
        watch_poll_interval_s: Seconds between two polls of the watched directories.
        path: The file it was read from, None for none.
    """

    plugin_dirs: tuple[str, ...] = setting((), _STRINGS)
    enable: tuple[str, ...] = setting((), _STRINGS)
    disable: tuple[str, ...] = setting((), _STRINGS)
    priorities: Mapping[str, int] = setting(dict, table_of(int))
    scheme_pins: Mapping[str, str] = setting(dict, table_of(str))
    filesystems: Mapping[str, Any] = setting(dict, Key(EXPECTED, _are_filesystems))
    fsspec_fallback: bool = setting(key=flag("MODULAR_TF_FSSPEC_FALLBACK"), default=True)
    dlpack_types: Mapping[str, str] = setting(dict, table_of(str))
    visible_devices: tuple[str, ...] = setting((), _STRINGS)
    device_count: Mapping[str, int] = setting(dict, Key("a table of numbers from 0", _are_counts))
    name_prefix: str = setting(
        LOCAL_PREFIX, Key("a text such as /job:worker/replica:0/task:1", is_name_prefix)
    )
    memory: Mapping[str, MemorySettings] = field(default_factory=dict)
    calls_at_once: int = setting(32, whole(1, 256, "MODULAR_TF_CALLS_AT_ONCE"))
    copy_streams: int = setting(1, whole(1, 4))  # TensorFlow's num_dev_to_dev_copy_streams
    isolation: str | Mapping[str, str] | None = setting(
        None,
        Key(
            f"{_NONE!r} or {_PROCESS!r}, or a table of globs with one of these",
            _is_isolation,
            (ISOLATION_VARIABLE,),
            _read_isolation,
            f"{_NONE}, {_PROCESS}, or GLOB={_PROCESS},GLOB={_NONE}",
        ),
    )
    call_timeout_s: float | None = setting(
        None, _SECONDS._replace(variables=("MODULAR_TF_CALL_TIMEOUT_S",), read=_read_seconds)
    )
    most_worker_faults: int = setting(5, whole(0, 1_000_000))
    worker_directories: Mapping[str, Sequence[str]] = setting(
        dict, Key("a table of globs with lists of absolute paths", _are_directories)
    )
    instance_idle_s: float = setting(60.0, _SECONDS)
    most_instances: int = setting(64, whole(1, 10_000))
    first_contact: str = setting(
        "new", choice(("always", "new", "never"), "MODULAR_TF_FIRST_CONTACT")
    )
    first_contact_timeout_s: float = setting(30.0, _SECONDS)
    first_contact_memory_mib: int = setting(
        1024, whole(1, _MOST_MIB)._replace(expected=f"a whole number of MiB from 1 to {_MOST_MIB}")
    )
    first_contact_accept: tuple[str, ...] = setting(
        (), list_of(f"a list of ids among {sorted(ACCEPTABLE)}", _is_acceptable)
    )
    load: str = setting("lazy", choice(("lazy", "eager"), "MODULAR_TF_LOAD"))
    report_ended_calls: bool = setting(key=flag("MODULAR_TF_REPORT_ENDED_CALLS"), default=True)
    statistics: bool = setting(key=flag("MODULAR_TF_STATISTICS"), default=False)
    trust: TrustPolicy = field(default_factory=TrustPolicy)
    close_timeout_s: float | None = setting(None, _SECONDS)
    watch_poll_interval_s: float = setting(0.2, _SECONDS)
    path: str | None = None

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(entry.default, tuple) and isinstance(value, str | bytes):
                # It would count as a list of its letters.
                raise TypeError(f"Config.{entry.name}: expected several strings, found {value!r}")
        self._set_filesystems()
        for device_type, settings in self.memory.items():
            if not isinstance(settings, MemorySettings):
                raise TypeError(f"Config.memory[{device_type!r}]: found {settings!r}")
        for entry in fields(self):
            value, key = getattr(self, entry.name), entry.metadata.get("key")
            if key is None or value is entry.default:
                continue
            if (expected := key.why_wrong(value)) is not None:
                raise ValueError(f"Config.{entry.name}: expected {expected}, found {value!r}")

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
            return said == _PROCESS
        return next((v for glob, v in said.items() if fnmatchcase(plugin, glob)), "") == _PROCESS

    def directories_of(self, plugin: str) -> tuple[str, ...]:
        """Return the directories that the worker process of a plugin may use."""
        named = self.worker_directories.items()
        return tuple(d for glob, found in named if fnmatchcase(plugin, glob) for d in found)

    def memory_of(
        self, device_type: str, environment: Mapping[str, str] | None = None
    ) -> MemorySettings:
        """Return what is decided about the memory of a device type, such as `GPU`.

        The environment speaks where the configuration is silent; by default `os.environ`, or
        nothing in a privileged process.
        """
        if environment is None:
            environment = {} if is_privileged() else os.environ
        return settings_of(self.memory, device_type).over(environment_settings(environment))

    @property
    def origin(self) -> str:
        """What to call the configuration in messages."""
        return self.path or "the configuration"


TABLES: Mapping[str, Mapping[str, Key]] = {
    "memory": keys_of(MemorySettings),
    "trust": keys_of(TrustPolicy),
}
"""The tables that have keys of their own."""
KEYS: Mapping[str, Key] = {
    **keys_of(Config),
    **{f"{table}.{name}": key for table, keys in TABLES.items() for name, key in keys.items()},
}
"""All keys of the file; those in a table under its name and theirs, as `trust.frozen`."""


def variables_of(name: str) -> list[str]:
    """Return the variables of the environment that replace a key, or the keys of a table."""
    keys = TABLES.get(name) or {name: KEYS[name]}
    return [variable for key in keys.values() for variable in key.variables]


def config_path(environment: Mapping[str, str]) -> str | None:
    """Return the file that would be read, as an absolute path; None for none.

    `MODULAR_TF_CONFIG` names it, as a path that may begin in the working directory; otherwise it is
    the user's own, which may not. Raises ConfigError if the variable names a file in a home
    directory that does not exist.
    """
    if chosen := environment.get(CONFIG_VARIABLE):
        return os.path.abspath(_expanded(chosen, CONFIG_VARIABLE, environment))
    directory = config_directory(environment)
    return None if directory is None else os.path.join(directory, FILE_NAME)


def _expanded(path: str, origin: str, environment: Mapping[str, str] | None = None) -> str:
    """Return a path with the home directory instead of `~`."""
    expanded = expand_home(path, environment)
    if expanded is None:
        raise ConfigError(f"{origin}: {path!r} is below the home directory, but {NO_HOME}")
    return expanded


def lock_path(config: Config) -> str | None:
    """Return the lock file of frozen plugins; None where only a user could name it who must not."""
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

    Without either, all is at its default. `environment` replaces `os.environ`. In a privileged
    process, which has rights that its user lacks, neither the user's file nor their environment
    counts. Raises ConfigError if the file cannot be read, is not TOML, or has an unknown or
    misshapen key; if nobody has named it and others can change it (LD-106); if `MODULAR_TF_CONFIG`
    names a file that does not exist, or a variable has no right value. ShortageError: the file
    cannot be read now.
    """
    if privileged:
        return Config()
    variables = os.environ if environment is None else environment
    config = _read_config(variables)
    try:
        config = replace(config, **values_of(Config, variables))
        config = replace(config, trust=replace(config.trust, **values_of(TrustPolicy, variables)))
    except ValueError as error:
        raise ConfigError(str(error)) from None
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
    """Open a file, without waiting for a writer where it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _require_trusted(path: str) -> None:
    """Refuse the user's file if others can have written it who may not write plugins either."""
    from modular_tf.discovery.trust.paths import (  # noqa: PLC0415  (where there is a file)
        PathJudge,
        Rights,
        trusted_writers,
    )

    offence = PathJudge(Rights(trusted_writers(TrustPolicy()))).judge(path).offence
    if offence is not None:
        message = f"{path} is not believed: {offence.message}. {CONFIGURATION_OWNER.remedy}"
        raise ConfigError(message, path=path, rule=CONFIGURATION_OWNER.id)


def parse_config(text: str, path: str) -> Config:
    """Make a configuration of a file's text.

    Raises ConfigError, which names the key, what was expected and what was found.
    """
    try:
        values = parse_table(text)
        _require_64_bits(values)
    except (ValueError, RecursionError) as error:  # as numbers and nesting beyond Python's limits
        raise ConfigError(f"{path}: not valid TOML: {error}", path=path) from error
    base = os.path.dirname(os.path.abspath(path))
    known = {name.partition(".")[0] for name in KEYS}
    if (wrong := unknown_keys(values, known)) is not None:
        raise ConfigError(f"{path}: {wrong}", path=path)
    try:
        if "trust" in values:
            values["trust"] = parse_policy(values["trust"], base)
        if "memory" in values:
            values["memory"] = parse_memory(values["memory"])
    except ValueError as error:
        raise ConfigError(f"{path}: {error}", path=path) from None
    for name, value in values.items():
        # Config itself refuses wrong filesystems: its message must show no option.
        expected = None if name in (*TABLES, "filesystems") else KEYS[name].why_wrong(value)
        if expected is not None:
            raise ConfigError(f"{path}: {name}: expected {expected}, found {value!r}", path=path)
        values[name] = tuple(value) if isinstance(value, list) else value
    if "plugin_dirs" in values:
        values["plugin_dirs"] = tuple(_place(entry, path) for entry in values["plugin_dirs"])
    return Config(**values, path=path)


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
