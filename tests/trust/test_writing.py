"""LD-076 and LD-077: nobody else may write to what is on the way to a plugin."""

import grp
import os
import pwd
from types import SimpleNamespace

import pytest

from modular_tf.discovery.trust import paths as trust_writers
from modular_tf.discovery.trust.paths import TrustedWriters
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.trust.conftest import STRANGER, assert_refused, judge

USER, OWNER_GROUP, GROUP, MASK, OTHER = 0x02, 0x04, 0x08, 0x10, 0x20
READ, WRITE, SEARCH, NOBODY = 4, 2, 1, 0xFFFFFFFF
PLAIN = (
    (0x01, READ | WRITE | SEARCH, NOBODY),
    (OWNER_GROUP, READ, NOBODY),
    (OTHER, READ, NOBODY),
)


@pytest.mark.parametrize("part", ["home/libx.so", "home", "."])
def test_what_anybody_may_write_to_is_refused_unless_excused(part, library, tmp_path):
    path = tmp_path / part
    path.chmod(0o777)

    assert_refused(judge(library), "LD-076", f"{path} has mode 0777")
    for excused in (f"{path}", f"{path}*", f"*/{path.name}"):
        assert judge(library, TrustPolicy(allow_writable=(excused,))).accepted
    path.chmod(0o755)
    assert judge(library).accepted


def test_a_sticky_directory_will_do_but_not_as_the_plugins_own(library, tmp_path):
    """There anybody could put a library beside it that it would open by itself."""
    tmp_path.chmod(0o1777)
    assert judge(library).accepted

    library.parent.chmod(0o1777)
    assert_refused(judge(library), "LD-076")


@pytest.mark.parametrize("part", ["home/libx.so", "home"])
def test_a_group_of_strangers_is_refused(part, library, tmp_path, give_to):
    path = tmp_path / part
    give_to(path, group=STRANGER)
    path.chmod(0o775)

    assert_refused(judge(library), "LD-077", f"group {STRANGER} may write to it")
    assert judge(library, TrustPolicy(groups=(STRANGER,))).accepted
    path.chmod(0o755)
    assert judge(library).accepted
    give_to(path, group=0)  # root's: images for arbitrary users, as of OpenShift, grant it
    path.chmod(0o775)
    assert judge(library).accepted


ALICE, BOB = ("alice", 1000, 1000), ("bob", 1001, 1001)
GROUPS = {
    "a group of one's own": ([ALICE], [("alice", 1000, [])], 1000, True),
    "its owner is listed": ([ALICE], [("alice", 1000, ["alice"])], 1000, True),
    "it has a guest": ([ALICE, BOB], [("alice", 1000, ["bob"])], 1000, False),
    "nobody knows a member": ([ALICE], [("alice", 1000, ["gone"])], 1000, False),
    "members may not be listed": ([ALICE], [("team", 5000, ["alice"])], 5000, False),
    "a container without names": ([], [], 1000, True),
    "another group there": ([], [], 1001, False),
    "one's own by its name alone": ([ALICE], [("alice", 4000, [])], 4000, True),
    "a stranger's own": ([ALICE, BOB], [("bob", 1001, [])], 1001, False),
    "Debian's /usr/local": ([ALICE], [("staff", 50, [])], 50, True),
    "with an administrator": ([ALICE, BOB], [("staff", 50, ["bob"])], 50, False),
    "the first of somebody": ([ALICE, ("carol", 1002, 50)], [("staff", 50, [])], 50, False),
    "the group of all people": ([ALICE], [("users", 100, [])], 100, False),
    "root's group": ([ALICE, BOB], [("root", 0, ["bob"])], 0, True),
}


@pytest.fixture
def system(monkeypatch):
    """Have the system know other users and groups."""
    caches = trust_writers._group, trust_writers._user_name

    def become(users, groups):
        known = [SimpleNamespace(pw_name=n, pw_uid=u, pw_gid=g) for n, u, g in users]
        teams = [SimpleNamespace(gr_name=n, gr_gid=g, gr_mem=m) for n, g, m in groups]
        monkeypatch.setattr(pwd, "getpwall", lambda: known)
        for module, function, entries, field in (
            (pwd, "getpwuid", known, "pw_uid"),
            (pwd, "getpwnam", known, "pw_name"),
            (grp, "getgrgid", teams, "gr_gid"),
            (grp, "getgrnam", teams, "gr_name"),
        ):
            found = {getattr(entry, field): entry for entry in entries}
            monkeypatch.setattr(module, function, found.__getitem__)
        for cache in caches:
            cache.cache_clear()

    yield become
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize(("users", "groups", "group", "accepted"), GROUPS.values(), ids=GROUPS)
def test_groups(users, groups, group, accepted, system):
    system(users, groups)

    assert TrustedWriters(frozenset((0, 1000))).includes_group(group) is accepted


@pytest.mark.parametrize("entry", [(USER, READ | WRITE, STRANGER), (GROUP, READ, STRANGER)])
@pytest.mark.parametrize("part", ["home/libx.so", "home"])
def test_what_has_an_access_control_list_and_a_group_may_write_to_is_refused(
    part, entry, library, tmp_path, give_list
):
    path = tmp_path / part
    give_list(path, *sorted((*PLAIN, (MASK, READ | WRITE, NOBODY), entry)))

    who = "somebody, by an access control list, may write to it"
    assert_refused(judge(library), "LD-077", f"{path} has mode ", who)
    assert judge(library, TrustPolicy(allow_writable=(str(path),))).accepted


def test_the_mask_of_a_list_counts_and_one_that_cannot_be_read(
    library, give_list, give_to, monkeypatch
):
    give_list(library, *sorted((*PLAIN, (MASK, READ, NOBODY), (USER, READ | WRITE, STRANGER))))
    assert judge(library).accepted

    def fail(*_arguments, **_options):
        raise OSError(5, "Input/output error")

    give_to(library, group=0)
    library.chmod(0o664)
    monkeypatch.setattr(os, "getxattr", fail)
    assert_refused(judge(library), "LD-077")
