"""Filesystems of a plugin whose cleanup ends them all: one init, and one cleanup, for all."""

from __future__ import annotations

import pytest

from tests.filesystem.ended_child import assert_ended

# `begin` makes a service of its own each time; what it serves shares its init from here on.
_SHARING = """
from modular_tf.filesystem import workarounds
from modular_tf.filesystem.workarounds.store import Store

class Sharing(Store):
    shares_init = True
    def after_fork_in_child(self):
        super().after_fork_in_child(reinitialise=anew)

anew = False
workarounds.store_class = lambda path, scheme: Sharing
"""


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_to_close_cleans_up(first, ledger):
    counted = ledger(
        f"""
{_SHARING}
(one, one_fs), (two, two_fs) = begin(), begin()
with one_fs.new_writable_file("fixture://h/f") as writer:
    writer.append(b"kept")
closing, other_fs = [(one, two_fs), (two, one_fs)][{first}]
closing.close()
with other_fs.new_random_access_file("fixture://h/f") as reader:
    assert reader.read(0, 9) == b"kept"
one.close(); two.close()
"""
    )
    assert_ended(counted, files=2, writers=1, cleanups=1)


def test_a_closed_one_is_closed_though_others_are_not(ledger):
    counted = ledger(
        f"""
{_SHARING}
(one, one_fs), (two, two_fs) = begin(), begin()
writer = one_fs.new_writable_file("fixture://h/one")
other_writer = two_fs.new_writable_file("fixture://h/two")
one.close()
for use in (lambda: writer.append(b"x"), lambda: one_fs.path_exists("fixture://h/one")):
    try:
        use()
    except ClosedError:
        continue
    raise AssertionError(use)
other_writer.append(b"x")
"""
    )
    assert_ended(counted, files=2, writers=2, cleanups=1)


def test_after_the_last_a_new_one_starts_anew(ledger):
    counted = ledger(
        f"""
{_SHARING}
for _ in range(3):
    (one, one_fs), (two, _) = begin(), begin()
    assert not one_fs.path_exists("fixture://h/f")
    one_fs.new_writable_file("fixture://h/f").close()
    one.close(); two.close()
"""
    )
    assert_ended(counted, files=3, writers=3, cleanups=3)


def test_a_region_keeps_what_it_lies_in(ledger):
    counted = ledger(
        f"""
{_SHARING}
one, fs = begin()
with fs.new_writable_file("fixture://h/f") as writer:
    writer.append(b"kept")
region = fs.new_read_only_memory_region_from_file("fixture://h/f")
view = region.view()
one.close()
two, fs = begin()
assert fs.path_exists("fixture://h/f")
two.close()
assert view == b"kept"
del view, region
gc.collect()
"""
    )
    assert_ended(counted, files=2, writers=1, cleanups=1)


def test_a_failed_init_is_not_shared(fixture_plugin, plugin_report, run_python):
    run_python(
        f"""
import sys
from modular_tf.service.service import PluginService
{_SHARING}
for _ in range(2):
    service = PluginService(plugin_paths=sys.argv[1:2], bundled=False)
    (record,) = service.load().plugins
    assert [reason.rule for reason in record.reasons] == ["FS-019"], record.reasons
    service.close()
""",
        fixture_plugin("init-fails"),
        env=plugin_report.environment,
    )
    counted = plugin_report.last()

    assert (counted["inits"], counted["cleanups"]) == (2, 0)


@pytest.mark.parametrize("anew", [True, False])
def test_children_share_too(anew, ledger):
    """Where init is called anew in the child, that is once for all, not once for each."""
    counted = ledger(
        f"""
{_SHARING}
anew = {anew}
(one, one_fs), (two, two_fs) = begin(), begin()
one_fs.new_writable_file("fixture://h/before").close()
pid = os.fork()
if pid:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not two_fs.path_exists("fixture://h/child")
    os._exit(0)  # it is the child that reports
assert one_fs.path_exists("fixture://h/before") is not {anew}
one_fs.new_writable_file("fixture://h/child").close()
assert two_fs.path_exists("fixture://h/child")
one.close()
assert two_fs.path_exists("fixture://h/child")
"""
    )
    assert counted["inits"] == (2 if anew else 1)
    assert counted["cleanups"] == 1
