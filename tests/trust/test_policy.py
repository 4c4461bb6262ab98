"""The table `[trust]` of the configuration, and what the environment says of freezing."""

import pickle

import pytest

from modular_tf.discovery.trust.policy import TrustPolicy, parse_policy
from modular_tf.errors import ConfigError
from modular_tf.service.configuration import load_config


def test_a_whole_table():
    lists = {
        "owners": ["alice", 1000],
        "groups": ["team"],
        "allow_writable": ["plugins/*", "/shared/x.so"],
        "allow_executable_stack": ["plugins/*", "/shared/x.so"],
    }
    switches = {"require_record": True, "frozen": True}

    policy = parse_policy({**lists, **switches, "lock": "plugins.lock"}, "/etc/app")

    assert policy == TrustPolicy(
        owners=("alice", 1000),
        groups=("team",),
        allow_writable=("/etc/app/plugins/*", "/shared/x.so"),
        allow_executable_stack=("/etc/app/plugins/*", "/shared/x.so"),
        lock="/etc/app/plugins.lock",
        **switches,
    )
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert parse_policy({}, "/") == TrustPolicy()


@pytest.mark.parametrize(("word", "expected"), [("1", True), ("0", False), ("", False)])
def test_the_environment_may_freeze(word, expected):
    assert load_config({"MODULAR_TF_FROZEN": word}).trust.frozen is expected
    assert load_config({}).trust.frozen is False


@pytest.mark.parametrize("word", ["maybe", "true", "no"])
def test_a_word_that_is_neither_0_nor_1_is_an_error(word):
    with pytest.raises(ConfigError, match=f"MODULAR_TF_FROZEN: expected 0 or 1, found '{word}'"):
        load_config({"MODULAR_TF_FROZEN": word})
