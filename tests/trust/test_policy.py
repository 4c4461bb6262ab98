"""The table `[trust]` of the configuration, and what the environment says of freezing."""

import pickle

from modular_tf.discovery.trust.policy import TrustPolicy, parse_policy


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
