"""The configuration file: what it may say, and how it says that something is wrong."""

from __future__ import annotations

import os
import pickle
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.errors import ConfigError
from modular_tf.service.configuration import (
    KEYS,
    Config,
    load_config,
    lock_path,
    parse_config,
    trust_of,
)
from modular_tf.service.configured_filesystems import ConfiguredFilesystem
from modular_tf.service.service import PluginService
from tests.device.dialects.building import Build

_S3 = ConfiguredFilesystem(fsspec="s3")
_PREFIX = "/job:a/replica:0/task:1"
# Of each key a right value, as TOML and as Python has it, other than the default, a wrong one, and
# what is expected instead.
_VALUES = {
    "plugin_dirs": ('["/p"]', ("/p",), "5", "a list of strings"),
    "enable": ('["a*"]', ("a*",), '"a"', "a list of strings"),
    "disable": ('["b"]', ("b",), "[5]", "a list of strings"),
    "visible_devices": ('["NPU:0"]', ("NPU:0",), "[true]", "a list of strings"),
    "first_contact_accept": ('["LD-064"]', ("LD-064",), '["LD-001"]', "a list of ids among"),
    "calls_at_once": ("7", 7, "257", "a number from 1 to 256"),
    "copy_streams": ("4", 4, "5", "a number from 1 to 4"),
    "isolation": ('{"s*" = "process"}', {"s*": "process"}, '"thread"', "'none' or 'process'"),
    "call_timeout_s": ("1.5", 1.5, "0", "a number of seconds from 0.001 to 1000000"),
    "most_worker_faults": ("0", 0, "-1", "a number from 0 to 1000000"),
    "instance_idle_s": ("2", 2, "true", "a number of seconds from 0.001 to 1000000"),
    "most_instances": ("1", 1, "0", "a number from 1 to 10000"),
    "first_contact": ('"always"', "always", '"sometimes"', "one of ('always', 'new', 'never')"),
    "first_contact_timeout_s": ("5", 5, "1e300", "a number of seconds from 0.001 to 1000000"),
    "first_contact_memory_mib": ("64", 64, "1.5", "a whole number of MiB from 1 to 1073741824"),
    "fsspec_fallback": ("false", False, "0", "true or false"),
    "load": ('"eager"', "eager", '"late"', "one of ('lazy', 'eager')"),
    "name_prefix": (f'"{_PREFIX}"', _PREFIX, '"/job:a"', "a text such as /job:worker"),
    "statistics": ("true", True, "1", "true or false"),
    "report_ended_calls": ("false", False, "0", "true or false"),
    "close_timeout_s": ("9", 9, '"9"', "a number of seconds from 0.001 to 1000000"),
    "watch_poll_interval_s": ("1", 1, "0", "a number of seconds from 0.001 to 1000000"),
    "priorities": ("{NPU = 300}", {"NPU": 300}, "{NPU = true}", "a table of int values"),
    "scheme_pins": ('{s3 = "mine"}', {"s3": "mine"}, "{s3 = 5}", "a table of str values"),
    "filesystems": ('{s3 = "fsspec"}', {"s3": _S3}, "5", 'a table of schemes, each "fsspec"'),
    "dlpack_types": ('{A = "ONE_API"}', {"A": "ONE_API"}, "{A = 14}", "a table of str values"),
    "worker_directories": ('{"s*" = ["/d"]}', {"s*": ["/d"]}, '{s = ["d"]}', "a table of globs"),
    "device_count": ("{NPU = 1}", {"NPU": 1}, "{NPU = -1}", "a table of numbers from 0"),
    "memory.limit_bytes": ("1024", 1024, "-1", "a number of bytes"),
    "memory.fraction": ("0.5", 0.5, "1.5", "a number above 0 and at most 1"),
    "memory.growth": ("true", True, "1", "true or false"),
    "memory.garbage_collection": ("true", True, '"yes"', "true or false"),
    "memory.host_limit_bytes": ("1024", 1024, "1.5", "a number of bytes"),
    "trust.owners": ('["me", 7]', ("me", 7), "[1.5]", "a list of names and numbers"),
    "trust.groups": ('["us"]', ("us",), '"us"', "a list of names and numbers"),
    "trust.allow_writable": ('["/shared/*"]', ("/shared/*",), "[5]", "a list of paths"),
    "trust.allow_executable_stack": ('["/x.so"]', ("/x.so",), '[""]', "a list of paths"),
    "trust.require_record": ("true", True, "1", "true or false"),
    "trust.frozen": ("true", True, '"yes"', "true or false"),
    "trust.lock": ('"/l"', "/l", "5", "a path"),
}


def test_every_key_has_a_right_and_a_wrong_value_here():
    assert _VALUES.keys() == KEYS.keys()


@pytest.mark.parametrize("key", _VALUES)
def test_a_right_value_arrives_in_the_configuration_and_a_wrong_one_is_named(key):
    text, value, wrong, expected = _VALUES[key]
    config = parse_config(f"{key} = {text}", "/etc/c.toml")
    assert _value_of(config, key) == value != _value_of(Config(), key)

    with pytest.raises(ConfigError) as failure:
        parse_config(f"{key} = {wrong}", "/etc/c.toml")
    assert failure.value.message.startswith(f"/etc/c.toml: {key}: expected {expected}")
    assert ", found " in failure.value.message


def _value_of(config: Config, key: str) -> object:
    table, _, name = key.rpartition(".")
    holder = getattr(config, table) if table else config
    if table == "memory":
        holder = holder.get("", MemorySettings())
    return getattr(holder, name)


# Of each variable of the environment that replaces a key: a right text, its value, a wrong text,
# and what is expected instead.
_VARIABLES = {
    "MODULAR_TF_FSSPEC_FALLBACK": ("0", False, "no", "0 or 1"),
    "MODULAR_TF_CALLS_AT_ONCE": ("7", 7, "257", "a number from 1 to 256"),
    "MODULAR_TF_ISOLATION": (
        "ram*=process,*=none",
        {"ram*": "process", "*": "none"},
        "on",
        "none, process, or GLOB=",
    ),
    "MODULAR_TF_CALL_TIMEOUT_S": ("1.5", 1.5, "soon", "a number of seconds"),
    "MODULAR_TF_FIRST_CONTACT": ("never", "never", "yes", "one of ('always', 'new', 'never')"),
    "MODULAR_TF_LOAD": ("eager", "eager", "soon", "one of ('lazy', 'eager')"),
    "MODULAR_TF_REPORT_ENDED_CALLS": ("0", False, "no", "0 or 1"),
    "MODULAR_TF_STATISTICS": ("1", True, "yes", "0 or 1"),
    "MODULAR_TF_FROZEN": ("1", True, "true", "0 or 1"),
}


def test_every_variable_has_a_right_and_a_wrong_text_here():
    known = {name for key, each in KEYS.items() if "memory." not in key for name in each.variables}
    assert _VARIABLES.keys() == known  # those of memory are TensorFlow's, below


@pytest.mark.parametrize("variable", _VARIABLES)
def test_a_variable_replaces_what_the_file_says_and_a_wrong_one_is_named(variable, tmp_path):
    text, value, wrong, expected = _VARIABLES[variable]
    (key,) = (name for name, each in KEYS.items() if variable in each.variables)
    file = tmp_path / "c.toml"
    file.write_text(f"{key} = {_VALUES[key][0]}")
    environment = {"MODULAR_TF_CONFIG": str(file)}
    in_file = _value_of(load_config(environment), key)

    assert _value_of(load_config(environment | {variable: text}), key) == value
    assert _value_of(load_config(environment | {variable: ""}), key) == in_file
    with pytest.raises(ConfigError) as failure:
        load_config(environment | {variable: wrong})
    assert failure.value.message.startswith(f"{variable}: expected {expected}")
    assert failure.value.message.endswith(f", found {wrong!r}")


@pytest.mark.parametrize(
    ("key", "least", "most"), [("calls_at_once", 1, 256), ("close_timeout_s", 0.001, 1_000_000)]
)
def test_a_bound_is_accepted_and_nothing_beyond_it(key, least, most):
    for value in (least, most):
        assert getattr(parse_config(f"{key} = {value}", "/etc/c.toml"), key) == value
    for value in (least * 0.9 if least < 1 else 0, most + 1):
        with pytest.raises(ConfigError, match=f"{key}: expected .*, found {value}"):
            parse_config(f"{key} = {value}", "/etc/c.toml")


def test_paths_begin_where_the_file_is_and_a_configuration_pickles(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/x")
    path = str(tmp_path / "c.toml")
    text = 'plugin_dirs = ["p", "/p", "~/p"]\n[memory]\ngrowth = true\n[memory.NPU]\nfraction = 0.5'
    config = parse_config(text, path)

    assert config == Config(
        plugin_dirs=(str(tmp_path / "p"), "/p", "/home/x/p"),
        memory={"": MemorySettings(growth=True), "NPU": MemorySettings(fraction=0.5)},
        path=path,
    )
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory = 5", r"memory: expected a table, found 5"),
        ("memory = {limit_bytes = true}", r"memory.limit_bytes: expected a number of bytes"),
        ("memory = {limit_bytes = 1, fraction = 1}", r"memory: limit_bytes and fraction: exp"),
        ("memory = {GPU = {growth = 'no'}}", r"memory.GPU.growth: expected true or false"),
        ("memory = {N-PU = {growth = true}}", r"memory.N-PU: expected a device type"),
        (
            "memory = {limit = 5}",
            r"memory: unknown keys \['limit'\]; did you mean limit_bytes\? known: ",
        ),
        ("plugindirs = []", r"unknown keys \['plugindirs'\]; did you mean plugin_dirs\? known: "),
        ("path = 'x'", r"unknown keys \['path'\]"),
        ('trust = {owners = ["\\u0000"]}', r"trust.owners: expected a list of names and numbers"),
        ("= 5", r"not valid TOML"),
        (f"copy_streams = {'1' * 5000}", r"not valid TOML"),
        (f"priorities = {{A = {2**63}}}", "not valid TOML: an integer needs more than 64 bits"),
        (f"enable = {'[' * 20_000}", r"not valid TOML"),
        ('plugin_dirs = ["~\\u0000"]', r"plugin_dirs: expected paths without NUL characters"),
    ],
)
def test_a_mistake_is_named_with_the_file(text, said):
    with pytest.raises(ConfigError, match=said) as failure:
        parse_config(text, "/etc/c.toml")

    assert "/etc/c.toml" in failure.value.message


@pytest.mark.parametrize("key", [name for name in KEYS if getattr(Config(), name, None) == ()])
@pytest.mark.parametrize("value", ["one", b"one"])
def test_a_string_is_no_list_of_strings(key, value):
    with pytest.raises(TypeError, match=f"Config.{key}: expected several strings, found b?'one'"):
        Config(**{key: value})


def test_trust_has_the_lock_file_that_counts(tmp_path):
    beside = parse_config("", str(tmp_path / "c.toml"))
    named = parse_config(f"trust = {{lock = '{tmp_path}/named'}}", str(tmp_path / "c.toml"))

    assert trust_of(beside).lock == lock_path(beside) != beside.trust.lock
    assert Path(trust_of(beside).lock).parent == tmp_path
    assert trust_of(named) is named.trust


def test_the_file_is_the_users_or_the_named_one(tmp_path):
    user = tmp_path / "modular_tf" / "modular-tf.toml"
    named = tmp_path / "named.toml"
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert load_config(environment) == Config()
    user.parent.mkdir()
    user.write_text('disable = ["user"]')
    named.write_text('disable = ["named"]')

    assert load_config(environment).disable == ("user",)
    environment["MODULAR_TF_CONFIG"] = str(named)
    assert load_config(environment).disable == ("named",)
    assert load_config(environment, privileged=True) == Config()


def put(file, text='disable = ["found"]'):
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


@pytest.fixture
def without_home(monkeypatch):
    """Be a user whom the system does not know, as in a container that is given a number."""

    def getpwuid(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    monkeypatch.delenv("HOME")


@pytest.mark.parametrize(
    ("place", "environment"),
    [
        *[(it, {"XDG_CONFIG_HOME": it, "HOME": "/x"}) for it in ("there", ".", "~/there", " ")],
        *[("~/.config", environment) for environment in ({}, {"HOME": "~"}, {"HOME": ""})],
    ],
)
@pytest.mark.usefixtures("without_home")
def test_no_file_of_the_working_directory_is_read(place, environment, tmp_path, monkeypatch):
    put(tmp_path / place / "modular_tf" / "modular-tf.toml")
    monkeypatch.chdir(tmp_path)

    assert load_config(environment) == Config()


def test_a_file_that_is_named_may_begin_where_the_program_does(tmp_path, monkeypatch):
    put(tmp_path / "mine" / "c.toml")
    monkeypatch.chdir(tmp_path)
    config = load_config({"MODULAR_TF_CONFIG": "mine/c.toml"})

    assert config.disable == ("found",)
    assert config.path == str(tmp_path / "mine" / "c.toml")


def test_a_home_that_is_not_known_is_named(tmp_path, without_home):
    with pytest.raises(ConfigError, match=r"MODULAR_TF_CONFIG: '~/c.toml' .* no home directory"):
        load_config({"MODULAR_TF_CONFIG": "~/c.toml"})
    for text in ('plugin_dirs = ["~/x"]', 'trust = {lock = "~/x"}'):
        with pytest.raises(ConfigError, match=r"c\.toml: .*'~/x' .* no home directory"):
            parse_config(text, str(tmp_path / "c.toml"))


def test_a_file_that_others_can_change_is_an_error(tmp_path):
    file = put(tmp_path / "home" / ".config" / "modular_tf" / "modular-tf.toml")
    environment = {"HOME": str(tmp_path / "home")}
    assert load_config(environment).disable == ("found",)
    (tmp_path / "home").chmod(0o777)

    with pytest.raises(ConfigError, match=r"anybody may write to it.*MODULAR_TF_CONFIG") as failure:
        load_config(environment)

    assert failure.value.rule == "LD-106"
    assert load_config(environment | {"MODULAR_TF_CONFIG": str(file)}).disable == ("found",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent", "does not exist"),
        ("", "cannot be read"),
        ("pipe", "expected a regular file"),
        ("bytes", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_and_not_an_empty_one(name, said, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=said):
        load_config({"MODULAR_TF_CONFIG": str(tmp_path / name)})


def test_a_service_reads_it_and_an_argument_overrides_it(tmp_path, monkeypatch):
    file = tmp_path / "c.toml"
    file.write_text('disable = ["*"]')
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(file))
    with PluginService() as service:
        service.load()
        assert service.schemes() == {}
        assert str(file) in service.plugins()[0].reason.message
    with PluginService(config=Config()) as service:
        service.load()
        assert "ram" in service.schemes()
    file.write_text("nonsense")
    with pytest.raises(ConfigError):
        PluginService()


def test_devices_have_as_many_copy_streams_as_configured():
    with PluginService(config=Config(copy_streams=3)) as service:
        service.load("host_device")
        assert service.device("CPU:0").to_dict()["streams"] == 3 + 3


class TestMemory:
    def test_a_type_s_own_settings_come_before_those_for_all(self):
        memory = {
            "": MemorySettings(limit_bytes=5, growth=True),
            "NPU": MemorySettings(fraction=0.5),
        }
        config = Config(memory=memory)

        assert config.memory_of("NPU", {}) == MemorySettings(fraction=0.5, growth=True)
        assert config.memory_of("GPU", {}) == memory[""]
        assert Config().memory_of("GPU", {}) == MemorySettings()

    def test_the_environment_overrides_the_file_and_an_argument_overrides_both(self, tmp_path):
        file = tmp_path / "c.toml"
        file.write_text("[memory]\ngrowth = true\nlimit_bytes = 9\n[memory.NPU]\ngrowth = true")
        environment = {
            "TF_FORCE_GPU_ALLOW_GROWTH": "false",
            "TF_GPU_HOST_MEM_LIMIT_IN_MB": "3",
            "TF_ENABLE_GPU_GARBAGE_COLLECTION": "0",
        }
        said = MemorySettings(growth=False, garbage_collection=False, host_limit_bytes=3 << 20)
        assert load_config({**environment, "HOME": str(tmp_path)}).memory == {"": said}

        config = load_config({**environment, "MODULAR_TF_CONFIG": str(file)})
        for device_type in ("GPU", "NPU"):
            assert config.memory_of(device_type, environment) == replace(said, limit_bytes=9)
        argument = Config(memory={"": MemorySettings(growth=True)})
        assert argument.memory_of("GPU", environment) == replace(said, growth=True)

    def test_the_process_s_own_environment_is_heard(self, monkeypatch):
        monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true")
        assert Config().memory_of("GPU").growth is True

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"growth": 1}, "growth: expected true or false, found 1"),
            ({"limit_bytes": 1 << 62}, "limit_bytes: expected a number of bytes"),
            ({"limit_bytes": 1, "fraction": 0.5}, "expected one of the two"),
        ],
    )
    def test_settings_that_cannot_be_are_refused(self, values, said):
        with pytest.raises(ValueError, match=said):
            MemorySettings(**values)

    def test_an_argument_of_another_shape_is_refused(self):
        with pytest.raises(TypeError, match=r"Config.memory\['GPU'\]: found 5"):
            Config(memory={"GPU": 5})

    def test_a_service_applies_the_file_to_its_devices(self, tmp_path, monkeypatch):
        file = tmp_path / "c.toml"
        file.write_text("[memory]\nfraction = 0.25\n[memory.DIALECT]\nlimit_bytes = 5000000")
        monkeypatch.setenv("MODULAR_TF_CONFIG", str(file))
        plugin = Build(Dialect.DEVICE_V209).compile()  # has 1 GiB, and wants it cut

        with PluginService(plugin_paths=[plugin], bundled=False) as service:
            service.load(plugin)
            device = service.device("DIALECT:0")
            with device.put(bytes(1000)):
                stats = device.allocator_stats()
            with pytest.raises(MemoryError, match="arena DIALECT:0"):
                device.allocate(5000001)

        assert (stats.bytes_limit, stats.bytes_in_use) == (5000000, 1024)

    def test_the_bundled_device_is_not_cut(self):
        with PluginService(config=Config(memory={"": MemorySettings(limit_bytes=1)})) as service:
            service.load("host_device")
            service.device("CPU:0").allocate(1000).close()
