"""Each link on the way to a plugin, and each directory that it leads through, is judged."""

import os

import pytest

from modular_tf.discovery.trust.paths import PathJudge, Rights, trusted_writers
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.trust.conftest import STRANGER, assert_refused, judge


@pytest.fixture
def elsewhere(tmp_path, library):
    """Move the library into another directory, with a link between, and a link in its place."""
    folder, between = tmp_path / "elsewhere" / "deep", tmp_path / "between"
    folder.mkdir(parents=True)
    between.mkdir()
    library.rename(folder / "libx.so")
    (between / "link.so").symlink_to(os.path.relpath(folder / "libx.so", between))
    library.symlink_to(between / "link.so")
    return folder


def paths_judge():
    return PathJudge(Rights(trusted_writers(TrustPolicy())))


def test_links_of_ours_to_a_file_of_ours_are_accepted(elsewhere, library):
    (seen,) = judge(library).checked

    assert seen.path == str(library)
    assert seen.identity.inode == (elsewhere / "libx.so").stat().st_ino
    assert judge(f"{library.parent}{'/./.' * 500}/{library.name}").accepted


@pytest.mark.parametrize("part", ["elsewhere/deep", "elsewhere", "between", "home"])
def test_each_directory_on_the_way_is_judged(part, elsewhere, library, tmp_path):
    (tmp_path / part).chmod(0o777)

    assert_refused(judge(library), "LD-076", tmp_path / part)


@pytest.mark.parametrize("part", ["home/libx.so", "between/link.so"])
def test_a_strangers_link_is_refused(part, elsewhere, library, give_to, tmp_path):
    give_to(tmp_path / part, user=STRANGER)

    assert_refused(judge(library), "LD-075", tmp_path / part)


def test_two_points_lead_where_the_kernel_goes(tmp_path, library):
    """Behind a link they lead above what it leads to, not above itself."""
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "far" / "libx.so").write_bytes(b"the one that counts")
    (tmp_path / "by-link").symlink_to(tmp_path / "far" / "away", target_is_directory=True)
    path = f"{tmp_path}/by-link/../libx.so"

    assert judge(path).checked[0].identity.size == len(b"the one that counts")
    (tmp_path / "far").chmod(0o777)
    assert_refused(judge(path), "LD-076")


@pytest.mark.parametrize("target", ["loop.so", "./loop.so", "nothing.so"])
def test_a_link_that_leads_nowhere_is_the_probes_matter(target, home):
    (home / "loop.so").symlink_to(target)

    with pytest.raises(OSError, match=r"symbolic links|No such file"):
        paths_judge().judge(str(home / "loop.so"))
