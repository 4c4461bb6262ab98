"""Each link on the way to a plugin, and each directory that it leads through, is judged."""

from __future__ import annotations

import os

import pytest

from modular_tf.discovery.trust.paths import PathJudge, Rights, trusted_writers
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.trust.conftest import STRANGER, judge


@pytest.fixture
def elsewhere(tmp_path, library):
    """Move the library into another directory, and leave a link in its place."""
    folder = tmp_path / "elsewhere" / "deep"
    folder.mkdir(parents=True)
    library.rename(folder / "libx.so")
    library.symlink_to(os.path.relpath(folder / "libx.so", library.parent))
    return folder


def test_a_link_of_ours_to_a_file_of_ours_is_accepted(elsewhere, library):
    verdict = judge(library)

    assert verdict.accepted
    (seen,) = verdict.checked
    assert seen.path == str(library)
    assert seen.identity.inode == (elsewhere / "libx.so").stat().st_ino


@pytest.mark.parametrize("levels_up", [0, 1])
def test_the_directories_that_a_link_leads_to_are_judged(levels_up, elsewhere, library):
    folder = elsewhere if levels_up == 0 else elsewhere.parent
    folder.chmod(0o777)

    verdict = judge(library)

    assert verdict.rule == "LD-076"
    assert str(folder) in verdict.message


def test_the_directory_that_a_link_lies_in_is_judged(elsewhere, library):
    library.parent.chmod(0o777)

    assert judge(library).rule == "LD-076"


def test_a_strangers_link_is_refused(elsewhere, library, give_to):
    give_to(library, user=STRANGER)

    verdict = judge(library)

    assert verdict.rule == "LD-075"
    assert str(library) in verdict.message


def test_links_between_are_judged(tmp_path, elsewhere, library):
    between = tmp_path / "between"
    between.mkdir()
    (between / "link.so").symlink_to(elsewhere / "libx.so")
    library.unlink()
    library.symlink_to(between / "link.so")
    assert judge(library).accepted

    between.chmod(0o777)

    assert judge(library).rule == "LD-076"


def test_a_directory_may_be_a_link(tmp_path, library):
    (tmp_path / "by-link").symlink_to(library.parent, target_is_directory=True)
    path = tmp_path / "by-link" / "libx.so"
    assert judge(path).accepted

    library.parent.chmod(0o777)

    assert judge(path).rule == "LD-076"


def test_a_strangers_link_in_the_place_of_a_directory_is_refused(tmp_path, library, give_to):
    link = tmp_path / "by-link"
    link.symlink_to(library.parent, target_is_directory=True)
    give_to(link, user=STRANGER)

    assert judge(link / "libx.so").rule == "LD-075"


def test_two_points_lead_where_the_kernel_goes(tmp_path, library):
    """Behind a link they lead above what it leads to, not above itself."""
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "far" / "libx.so").write_bytes(b"the one that counts")
    (tmp_path / "by-link").symlink_to(tmp_path / "far" / "away", target_is_directory=True)
    path = f"{tmp_path}/by-link/../libx.so"

    (seen,) = judge(path).checked
    assert seen.identity.size == len(b"the one that counts")

    (tmp_path / "far").chmod(0o777)
    assert judge(path).rule == "LD-076"


@pytest.mark.parametrize("target", ["loop.so", "./loop.so", "nothing.so"])
def test_a_link_that_leads_nowhere_is_the_probes_matter(target, home):
    (home / "loop.so").symlink_to(target)
    paths = PathJudge(Rights(trusted_writers(TrustPolicy())))

    with pytest.raises(OSError, match=r"symbolic links|No such file"):
        paths.judge(str(home / "loop.so"))


@pytest.mark.parametrize("n_links", [39, 40, 41])
def test_as_many_links_are_followed_as_by_the_kernel(n_links, library):
    path = library
    for number in range(n_links):
        link = library.with_name(f"link{number}.so")
        link.symlink_to(path.name)
        path = link

    for follow in (os.stat, PathJudge(Rights(trusted_writers(TrustPolicy()))).judge):
        if n_links <= 40:
            assert follow(str(path))
        else:
            with pytest.raises(OSError, match="Too many levels of symbolic links"):
                follow(str(path))


def test_a_path_of_very_many_parts_is_followed(library):
    path = f"{library.parent}{'/./.' * 500}/{library.name}"

    assert judge(path).accepted
