"""LD-110: no library that is loaded asks for an executable stack.

The dynamic linker would let code be run from the stacks of all threads of the process, and nothing
takes that back.
"""

from __future__ import annotations

import json
import os
import struct

import pytest

from modular_tf.discovery.elf.file import wants_executable_stack
from tests.discovery.elf_builder import ElfBuilder
from tests.trust.opening import opened_library, opening_plugin, write_lock

EXECUTABLE, DATA = ["-Wl,-z,execstack"], ["-Wl,-z,noexecstack"]
PT_GNU_STACK, PT_NULL = 0x6474E551, 0

_LOAD = """
    import json, sys
    from modular_tf.service.configuration import Config
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.service import PluginService

    def stack():
        with open("/proc/self/maps") as maps:
            return next(line.split()[1] for line in maps if line.rstrip().endswith("[stack]"))

    policy, first_contact, again, plugin = json.loads(sys.argv[1])
    before = stack()
    assert before == "rw-p", before
    config = Config(trust=TrustPolicy(**policy), first_contact=first_contact, load="eager")
    for _ in range(1 + again):
        with PluginService(config=config, plugin_paths=[plugin], bundled=False) as service:
            (record,) = service.load().plugins
    reason = record.reason and {**record.reason.as_dict()}
    print(json.dumps([record.state.value, reason, stack()]))
"""


@pytest.fixture
def load(run_python):
    """Load a plugin in a new process; return its state, the reason, and the stack's rights."""

    def run(plugin, first_contact="new", *, again=False, policy=None, **environment):
        given = json.dumps([policy or {}, first_contact, again, str(plugin)])
        env = {key: str(value) for key, value in environment.items()}
        return json.loads(run_python(_LOAD, given, env=env).stdout)

    return run


def without_mark(path):
    """Take PT_GNU_STACK out of a library, as linkers without it leave it."""
    data = bytearray(path.read_bytes())
    at, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    for header in range(at, at + size * count, size):
        if struct.unpack_from("<I", data, header)[0] == PT_GNU_STACK:
            struct.pack_into("<I", data, header, PT_NULL)
    path.write_bytes(data)


def assert_refused(outcome, path):
    state, reason, stack = outcome
    assert (state, reason["stage"], reason["rule"]) == ("rejected", "trust", "LD-110")
    assert f"{path} asks for an executable stack" in reason["message"]
    assert "-z noexecstack" in reason["remedy"]
    assert stack == "rw-p"


@pytest.mark.parametrize("first_contact", ["new", "never"])
def test_a_plugin_that_asks_for_it_is_refused_before_it_is_opened(first_contact, load, tmp_path):
    plugin = opening_plugin(tmp_path / "libx.so", options=EXECUTABLE)

    assert_refused(load(plugin, first_contact), plugin)


def test_it_is_refused_also_where_its_bytes_are_known(load, tmp_path):
    plugin = opening_plugin(tmp_path / "libx.so", options=EXECUTABLE)

    assert_refused(load(plugin, again=True), plugin)


def test_the_same_plugin_without_it_is_loaded(load, tmp_path):
    plugin = opening_plugin(tmp_path / "libx.so", options=DATA)

    assert load(plugin) == ["loaded", None, "rw-p"]


def test_a_plugin_that_says_nothing_is_judged_as_its_machine_does(load, tmp_path):
    plugin = opening_plugin(tmp_path / "libx.so", options=DATA)
    without_mark(plugin)

    if os.uname().machine == "x86_64":
        assert_refused(load(plugin), plugin)
    else:
        assert load(plugin) == ["loaded", None, "rw-p"]


def test_the_configuration_may_accept_it(load, tmp_path):
    plugin = opening_plugin(tmp_path / "libx.so", options=EXECUTABLE)

    outcome = load(plugin, policy={"allow_executable_stack": [f"{tmp_path}/lib*"]})

    # Linkers of glibc 2.41 and later refuse it all the same.
    assert outcome[0] in ("loaded", "failed", "quarantined")
    assert (outcome[0], outcome[2]) != ("loaded", "rw-p")


def test_a_companion_that_asks_for_it_costs_the_plugin(load, tmp_path):
    companion = opened_library(
        tmp_path / "libneeded.so", "needed", soname="libneeded.so", options=EXECUTABLE
    )
    options = ["-Wl,--no-as-needed", str(companion), "-Wl,-rpath,$ORIGIN"]
    plugin = opening_plugin(tmp_path / "libx.so", options=options)

    assert_refused(load(plugin), companion)


@pytest.mark.parametrize("when", ["OPENS_IN_CONSTRUCTOR", "OPENS_IN_INIT"])
def test_a_library_that_code_opens_must_not_ask_for_it(when, load, tmp_path):
    opened = opened_library(tmp_path / "libopened.so", options=EXECUTABLE)
    plugin = opening_plugin(tmp_path / "libx.so")

    assert_refused(load(plugin, **{when: opened}), opened)


def test_without_a_trial_such_a_frozen_plugin_is_not_used(load, tmp_path):
    """The stack is executable by then."""
    opened = opened_library(tmp_path / "libopened.so", options=EXECUTABLE)
    plugin = opening_plugin(tmp_path / "libx.so")
    policy = write_lock(tmp_path / "plugins.lock", plugin, opened)

    state, reason, _ = load(plugin, "never", policy=policy, OPENS_IN_CONSTRUCTOR=opened)

    assert (state, reason["rule"]) == ("failed", "LD-098")
    assert f"{opened} asks for an executable stack" in reason["message"]


@pytest.mark.parametrize(("machine", "asks"), [(62, True), (3, True), (183, False), (243, False)])
def test_what_holds_where_a_file_says_nothing_depends_on_the_machine(machine, asks, tmp_path):
    path = tmp_path / "libx.so"
    path.write_bytes(ElfBuilder(machine=machine).build())

    assert wants_executable_stack(str(path)) is asks
