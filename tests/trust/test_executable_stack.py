"""LD-110: no library that is loaded asks for an executable stack.

The dynamic linker would let code be run from the stacks of all threads of the process, and nothing
takes that back.
"""

import pytest

from modular_tf.discovery.elf.file import wants_executable_stack
from tests.discovery.elf_builder import ElfBuilder
from tests.fixtures.machine import LINKER_MAKES_STACKS_EXECUTABLE
from tests.trust.opening import opened_library, opening_plugin, write_lock

EXECUTABLE = ["-Wl,-z,execstack"]
# When the process ends, it writes the rights of its stack where STACK says.
NOTE_STACK = """
    import atexit, os

    def note_stack():
        with open("/proc/self/maps") as maps, open(os.environ["STACK"], "w") as file:
            file.write(next(line.split()[1] for line in maps if line.rstrip().endswith("[stack]")))
    atexit.register(note_stack)
"""

by_an_earlier_linker = pytest.mark.skipif(
    not LINKER_MAKES_STACKS_EXECUTABLE, reason="glibc 2.41 and later open no such library"
)


@pytest.fixture
def load_one(load, tmp_path):
    """Load a plugin in a new process; return what became of it, and the stack's rights."""

    def run(plugin, first_contact="new", **options):
        stack = tmp_path / "stack"
        options = {"first_contact": first_contact, "first": NOTE_STACK, "STACK": stack, **options}
        [loaded] = load(plugin, **options)
        return loaded, stack.read_text()

    return run


def assert_refused(found, path):
    loaded, stack = found
    assert loaded.outcome == ("rejected", "LD-110")
    (reason,) = loaded.reasons
    assert reason["stage"] == "trust"
    assert f"{path} asks for an executable stack" in reason["message"]
    assert "-z noexecstack" in reason["remedy"]
    assert stack == "rw-p"


@pytest.mark.parametrize(("first_contact", "times"), [("never", 1), ("new", 2)])
def test_a_plugin_that_asks_for_it_is_refused_before_it_is_opened(
    first_contact, times, load_one, tmp_path
):
    """Also where its bytes are known."""
    plugin = opening_plugin(tmp_path / "libx.so", options=EXECUTABLE)

    assert_refused(load_one(plugin, first_contact, times=times), plugin)


def test_the_configuration_may_accept_it(load_one, tmp_path):
    plugin = opening_plugin(tmp_path / "libx.so", options=EXECUTABLE)

    loaded, stack = load_one(plugin, policy={"allow_executable_stack": [f"{tmp_path}/lib*"]})

    # Linkers of glibc 2.41 and later refuse it all the same.
    assert loaded.state in ("loaded", "failed", "quarantined")
    assert (loaded.state, stack) != ("loaded", "rw-p")


def test_a_companion_that_asks_for_it_costs_the_plugin(load_one, tmp_path):
    companion = opened_library(
        tmp_path / "libneeded.so", "needed", soname="libneeded.so", options=EXECUTABLE
    )
    options = ["-Wl,--no-as-needed", str(companion), "-Wl,-rpath,$ORIGIN"]
    plugin = opening_plugin(tmp_path / "libx.so", options=options)

    assert_refused(load_one(plugin), companion)


@by_an_earlier_linker
@pytest.mark.parametrize("when", ["OPENS_IN_CONSTRUCTOR", "OPENS_IN_INIT"])
def test_a_library_that_code_opens_must_not_ask_for_it(when, load_one, tmp_path):
    opened = opened_library(tmp_path / "libopened.so", options=EXECUTABLE)
    plugin = opening_plugin(tmp_path / "libx.so")

    assert_refused(load_one(plugin, **{when: opened}), opened)


@by_an_earlier_linker
def test_without_a_trial_such_a_frozen_plugin_is_not_used(load, tmp_path):
    """The stack is executable by then."""
    opened = opened_library(tmp_path / "libopened.so", options=EXECUTABLE)
    plugin = opening_plugin(tmp_path / "libx.so")
    policy = write_lock(tmp_path / "plugins.lock", plugin, opened)

    [refused] = load(plugin, policy=policy, OPENS_IN_CONSTRUCTOR=opened)

    assert refused.outcome == ("failed", "LD-098")
    assert f"{opened} asks for an executable stack" in refused.message


@pytest.mark.parametrize(("machine", "asks"), [(62, True), (3, True), (183, False), (243, False)])
def test_what_holds_where_a_file_says_nothing_depends_on_the_machine(machine, asks, tmp_path):
    path = tmp_path / "libx.so"
    path.write_bytes(ElfBuilder(machine=machine).build())

    assert wants_executable_stack(str(path)) is asks
