"""The table `[trust]` of the configuration: `tests/service/test_configuration.py` has its keys."""

from modular_tf.discovery.trust.policy import TrustPolicy, parse_policy


def test_relative_paths_begin_where_the_file_is():
    places = ["plugins/*", "/shared/x.so"]
    lists = {"allow_writable": places, "allow_executable_stack": places}

    assert parse_policy({**lists, "lock": "plugins.lock"}, "/etc/app") == TrustPolicy(
        allow_writable=("/etc/app/plugins/*", "/shared/x.so"),
        allow_executable_stack=("/etc/app/plugins/*", "/shared/x.so"),
        lock="/etc/app/plugins.lock",
    )
