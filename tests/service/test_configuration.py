"""The configuration file: what it may say, and how it says that something is wrong."""

from __future__ import annotations

import pickle

import pytest

from modular_tf.configuration import Config, load_config, parse_config
from modular_tf.errors import ConfigError
from modular_tf.service import PluginService

_FULL = """
plugin_dirs = ["plugins", "/absolute", "~/home"]
enable = ["a*"]
disable = ["b"]
visible_devices = ["NPU:0"]
[priorities]
NPU = 300
"GPU:CUDA" = 10
[scheme_pins]
s3 = "tensorflow-io"
[dlpack_types]
ONE_CHIP = "ONE_API"
"""


def test_every_key_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/x")
    config = parse_config(_FULL, str(tmp_path / "c.toml"))

    assert config == Config(
        plugin_dirs=(str(tmp_path / "plugins"), "/absolute", "/home/x/home"),
        enable=("a*",),
        disable=("b",),
        visible_devices=("NPU:0",),
        priorities={"NPU": 300, "GPU:CUDA": 10},
        scheme_pins={"s3": "tensorflow-io"},
        dlpack_types={"ONE_CHIP": "ONE_API"},
        path=str(tmp_path / "c.toml"),
    )
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plugin_dirs = 5", r"plugin_dirs: expected a list of strings, found 5"),
        ("plugin_dirs = [5]", r"plugin_dirs: expected a list of strings, found \[5\]"),
        ('enable = "a"', r"enable: expected a list of strings, found 'a'"),
        ("priorities = []", r"priorities: expected a table of int values"),
        ('priorities = {A = "1"}', r"priorities: expected a table of int values"),
        ("priorities = {A = true}", r"priorities: expected a table of int values"),
        ("scheme_pins = {s3 = 5}", r"scheme_pins: expected a table of str values"),
        ("dlpack_types = {X = 2}", r"dlpack_types: expected a table of str values"),
        ("plugindirs = []", r"unknown keys \['plugindirs'\]; known: .*'plugin_dirs'"),
        ("path = 'x'", r"unknown keys \['path'\]"),
        ("= 5", r"not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_the_file(text, said, tmp_path):
    with pytest.raises(ConfigError, match=said) as failure:
        parse_config(text, "/etc/c.toml")

    assert "/etc/c.toml" in failure.value.message


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


def test_a_file_that_cannot_be_read_is_an_error_and_not_an_empty_one(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        load_config({"MODULAR_TF_CONFIG": str(tmp_path / "absent")})
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config({"MODULAR_TF_CONFIG": str(tmp_path)})
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config({"MODULAR_TF_CONFIG": str(tmp_path / "bytes")})


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
