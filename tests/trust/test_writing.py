"""LD-076 and LD-077: nobody else may write to what is on the way to a plugin."""

from __future__ import annotations

import grp
import os
import pwd
from types import SimpleNamespace

import pytest

from modular_tf.discovery.trust import paths as trust_writers
from modular_tf.discovery.trust.paths import TrustedWriters
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.trust.conftest import STRANGER, judge

USER, OWNER_GROUP, GROUP, MASK, OTHER = 0x02, 0x04, 0x08, 0x10, 0x20
READ, WRITE, NOBODY = 4, 2, 0xFFFFFFFF
PLAIN = ((0x01, READ | WRITE, NOBODY), (OWNER_GROUP, READ, NOBODY), (OTHER, READ, NOBODY))


def with_entry(*entries):
    """Return an access control list, sorted as the kernel wants it."""
    return sorted((*PLAIN, (MASK, READ | WRITE, NOBODY), *entries))


@pytest.mark.parametrize("part", ["file", "folder", "folder above"])
def test_what_anybody_may_write_to_is_refused(part, library, tmp_path):
    path = {"file": library, "folder": library.parent, "folder above": tmp_path}[part]
    path.chmod(0o777)

    verdict = judge(library)

    assert verdict.rule == "LD-076"
    assert f"{path} has mode 0777" in verdict.message
    path.chmod(0o755)
    assert judge(library).accepted


@pytest.mark.parametrize("path", ["{home}", "{home}*", "*/home"])
def test_a_path_may_be_excused(path, library):
    library.parent.chmod(0o777)
    policy = TrustPolicy(allow_writable=(path.format(home=library.parent),))

    assert not judge(library).accepted
    assert judge(library, policy).accepted


def test_a_sticky_directory_will_do_above_the_plugins_own(library, tmp_path):
    tmp_path.chmod(0o1777)

    assert judge(library).accepted


def test_a_sticky_directory_will_not_do_as_the_plugins_own(library):
    """Anybody could put a library beside it that it would open by itself."""
    library.parent.chmod(0o1777)

    assert judge(library).rule == "LD-076"


def test_a_group_of_strangers_is_refused(library, give_to):
    give_to(library, group=STRANGER)
    library.chmod(0o664)

    verdict = judge(library)

    assert verdict.rule == "LD-077"
    assert f"group {STRANGER} may write to it" in verdict.message
    assert judge(library, TrustPolicy(groups=(STRANGER,))).accepted
    library.chmod(0o644)
    assert judge(library).accepted


def test_a_group_that_may_write_to_a_directory_counts_too(library, give_to):
    give_to(library.parent, group=STRANGER)
    library.parent.chmod(0o775)

    assert judge(library).rule == "LD-077"


def test_the_group_of_root_is_accepted(library, give_to, own_group):
    """Images for arbitrary users, as of OpenShift, let it write."""
    give_to(library, group=own_group)
    library.chmod(0o664)

    assert judge(library).accepted


class System:
    """A list of users and groups."""

    def __init__(self, monkeypatch, users, groups):
        trust_writers._group.cache_clear()
        trust_writers._user_name.cache_clear()
        self._users = [SimpleNamespace(pw_name=n, pw_uid=u, pw_gid=g) for n, u, g in users]
        self._groups = [SimpleNamespace(gr_name=n, gr_gid=g, gr_mem=m) for n, g, m in groups]
        monkeypatch.setattr(pwd, "getpwall", lambda: self._users)
        for module, function, entries, field in (
            (pwd, "getpwuid", self._users, "pw_uid"),
            (pwd, "getpwnam", self._users, "pw_name"),
            (grp, "getgrgid", self._groups, "gr_gid"),
            (grp, "getgrnam", self._groups, "gr_name"),
        ):
            monkeypatch.setattr(module, function, self._finder(entries, field))

    @staticmethod
    def _finder(entries, field):
        def find(key):
            for entry in entries:
                if getattr(entry, field) == key:
                    return entry
            raise KeyError(key)

        return find


@pytest.fixture
def system(monkeypatch):
    """Let the system know other users and groups."""
    yield lambda users, groups: System(monkeypatch, users, groups)
    trust_writers._group.cache_clear()
    trust_writers._user_name.cache_clear()


ALICE, BOB = ("alice", 1000, 1000), ("bob", 1001, 1001)
OF_ALICE = TrustedWriters(frozenset((0, 1000)))


@pytest.mark.parametrize(
    ("users", "groups", "group", "accepted"),
    [
        ([ALICE], [("alice", 1000, [])], 1000, True),
        ([ALICE], [("alice", 1000, ["alice"])], 1000, True),
        ([ALICE, BOB], [("alice", 1000, ["bob"])], 1000, False),
        ([ALICE], [("alice", 1000, ["gone"])], 1000, False),
        ([ALICE], [("team", 5000, ["alice"])], 5000, False),
        ([], [], 1000, True),
        ([], [], 1001, False),
        ([ALICE], [("alice", 4000, [])], 4000, True),
        ([ALICE, BOB], [("bob", 1001, [])], 1001, False),
        ([ALICE], [("staff", 50, [])], 50, True),
        ([ALICE, BOB], [("staff", 50, ["bob"])], 50, False),
        ([ALICE, ("carol", 1002, 50)], [("staff", 50, [])], 50, False),
        ([ALICE], [("users", 100, [])], 100, False),
        ([ALICE, BOB], [("root", 0, ["bob"])], 0, True),
    ],
    ids=[
        "a group of one's own",
        "a group of one's own that lists its owner",
        "a group of one's own with a guest",
        "a group with a member whom nobody knows",
        "a group whose other members may not be listed",
        "a container without names",
        "another group in a container without names",
        "a group of one's own by its name alone",
        "a group of a stranger's own",
        "Debian's /usr/local",
        "Debian's /usr/local with a local administrator",
        "a system's group that is the first of somebody",
        "the group of all people",
        "root's group",
    ],
)
def test_groups(users, groups, group, accepted, system):
    system(users, groups)

    assert OF_ALICE.includes_group(group) is accepted


@pytest.mark.parametrize("entry", [(USER, READ | WRITE, STRANGER), (GROUP, READ, STRANGER)])
@pytest.mark.parametrize("part", ["file", "folder"])
def test_what_has_an_access_control_list_and_a_group_may_write_to_is_refused(
    part, entry, library, give_list
):
    path = {"file": library, "folder": library.parent}[part]
    give_list(path, *with_entry(entry))

    verdict = judge(library)

    assert verdict.rule == "LD-077"
    assert f"{path} has mode " in verdict.message
    assert "somebody, by an access control list, may write to it" in verdict.message
    assert judge(library, TrustPolicy(allow_writable=(str(path),))).accepted


def test_the_mask_of_an_access_control_list_counts(library, give_list):
    entries = sorted((*PLAIN, (MASK, READ, NOBODY), (USER, READ | WRITE, STRANGER)))
    give_list(library, *entries)

    assert judge(library).accepted


def test_a_list_that_cannot_be_read_excuses_nobody(library, give_to, monkeypatch):
    give_to(library, group=0)
    library.chmod(0o664)

    def fail(*_arguments, **_options):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "getxattr", fail)

    assert judge(library).rule == "LD-077"


def test_root_is_trusted_where_the_user_namespace_cannot_be_read(monkeypatch, tmp_path):
    monkeypatch.setattr(trust_writers, "_UID_MAP", str(tmp_path / "none"))

    assert set(trust_writers._roots()) == {0}
