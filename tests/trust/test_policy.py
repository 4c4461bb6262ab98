"""The table `[trust]` of the configuration, and what the environment says of freezing."""

from __future__ import annotations

import pickle

import pytest

from modular_tf.discovery.trust.policy import (
    TrustPolicy,
    default_lock_path,
    frozen_by,
    parse_policy,
)


def test_a_whole_table():
    table = {
        "owners": ["alice", 1000],
        "groups": ["team"],
        "allow_writable": ["plugins/*", "/shared/x.so"],
        "allow_executable_stack": ["plugins/*", "/shared/x.so"],
        "require_record": True,
        "frozen": True,
        "lock": "plugins.lock",
    }

    policy = parse_policy(table, "/etc/app")

    assert policy == TrustPolicy(
        owners=("alice", 1000),
        groups=("team",),
        allow_writable=("/etc/app/plugins/*", "/shared/x.so"),
        allow_executable_stack=("/etc/app/plugins/*", "/shared/x.so"),
        require_record=True,
        frozen=True,
        lock="/etc/app/plugins.lock",
    )
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_an_empty_table_is_the_default():
    assert parse_policy({}, "/") == TrustPolicy()


@pytest.mark.parametrize(
    "table",
    [
        [],
        {"owner": ["alice"]},
        {"owners": "alice"},
        {"owners": [True]},
        {"groups": [1.5]},
        {"allow_writable": [1]},
        {"allow_executable_stack": ["/x.so\0"]},
        {"require_record": 1},
        {"frozen": "yes"},
        {"lock": ""},
        {"lock": False},
    ],
    ids=str,
)
def test_what_is_wrong_is_told(table):
    with pytest.raises(ValueError, match=r"^trust(\.\w+)?: (expected|unknown keys)"):
        parse_policy(table, "/")


@pytest.mark.parametrize(
    ("word", "expected"), [("1", True), ("TRUE", True), ("no", False), ("0", False), ("", None)]
)
def test_the_environment_may_freeze(word, expected):
    assert frozen_by({"MODULAR_TF_FROZEN": word}) is expected
    assert frozen_by({}) is None


def test_a_word_that_is_neither_yes_nor_no_is_told():
    with pytest.raises(ValueError, match=r"MODULAR_TF_FROZEN: expected one of .*found 'maybe'"):
        frozen_by({"MODULAR_TF_FROZEN": "maybe"})


def test_the_lock_file_lies_beside_the_configuration_file():
    assert default_lock_path("/etc/app/modular-tf.toml") == "/etc/app/modular-tf.lock"
