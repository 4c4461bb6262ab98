"""Source 5: entry points, resolved without importing anything."""

import sys

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources import search_log
from modular_tf.discovery.sources.search_paths import SearchPaths
from tests.discovery.site_folder import install

_NEVER = b"raise SystemExit('a plugin package was imported')"


@pytest.fixture
def site(tmp_path):
    return tmp_path / "site"


def search(*python_path):
    sources = frozenset({Source.ENTRY_POINT})
    return discover(SearchPaths(python_path=tuple(map(str, python_path)), sources=sources))


def paths(result):
    return [candidate.path for candidate in result.candidates]


@pytest.mark.parametrize(
    "value",
    [
        "spam_fs:lib/libspam.so",
        "spam_fs : lib/libspam.so",
        "spam_fs:lib",
        "spam_fs.lib",
        "spam_fs:lib/../lib/./libspam.so",
        "spam_fs:lib/libspam.so [extra]",
    ],
)
def test_forms_of_a_value(site, value):
    files = {"spam_fs/__init__.py": _NEVER, "spam_fs/lib/libspam.so": b"1"}
    install(site, "Spam_FS", version="2.1", files=files, entry_points=f"spam = {value}")

    result = search(site)

    (candidate,) = result.candidates
    assert candidate.path == str(site / "spam_fs/lib/libspam.so")
    assert candidate.source is Source.ENTRY_POINT
    assert candidate.origin == "spam-fs 2.1: spam"
    assert candidate.distribution == candidate.name == "spam-fs"
    assert result.problems == ()
    assert "spam_fs" not in sys.modules


def test_only_the_group_counts_though_it_stands_in_two_parts(site):
    entries = """
        # a comment
        ; another
        files = spam:lib/lib=spam.so
        [console_scripts]
        spam = spam:main
        no value at all
        [ modular_tf.plugins ]\r
        folder=spam\r
    """
    files = {"spam/lib/lib=spam.so": b"1", "spam/libx.so": b"2"}
    install(site, "spam", files=files, entry_points=entries)

    result = search(site)

    assert paths(result) == [str(site / path) for path in files]
    assert result.problems == ()


def test_a_package_alone_names_its_folder_and_the_first_on_the_path_counts(tmp_path):
    for place in ("one", "two"):
        files = {f"spam/{name}": place.encode() for name in ("libb.so", "liba.so", "deep/libc.so")}
        install(tmp_path / place, "spam", files=files, entry_points="all = spam")

    result = search(tmp_path / "two", tmp_path / "one", tmp_path / "missing")

    assert paths(result) == [str(tmp_path / "two/spam" / name) for name in ("liba.so", "libb.so")]
    assert [candidate.name for candidate in result.candidates] == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "rule", "words"),
    [
        ("spam:libgone.so", "LD-020", "libgone.so"),
        ("no_such_package_at_all:lib.so", "LD-020", "'no_such_package_at_all', which is not inst"),
        ("", "LD-020", "not of the form"),
        ("spam fs:lib.so", "LD-020", "not of the form"),
        ("/absolute/lib.so", "LD-020", "not of the form"),
        ("spam:/absolute/lib.so", "LD-021", "leads out of the package"),
        ("spam:../other/lib.so", "LD-021", "leads out of the package"),
        ("spam:lib/../../other.so", "LD-021", "leads out of the package"),
        ("spam:..", "LD-021", "leads out of the package"),
    ],
)
def test_a_bad_entry_is_a_problem_and_the_others_count(site, value, rule, words):
    entries = f"good = spam:libx.so\nbad = {value}\nlast = spam:plugin.bin"
    files = {"spam/libx.so": b"x", "spam/plugin.bin": b"y"}  # a named file may have any name
    install(site, "spam", files=files, entry_points=entries)

    result = search(site)

    assert paths(result) == [str(site / name) for name in files]
    (problem,) = result.problems
    assert problem.rule == rule
    assert words in problem.message
    assert f"entry point 'bad' = {value!r} of distribution spam 1.0" in problem.message
    assert problem.origin == "spam 1.0"
    assert [place.exists for place in result.searched] == [True, False, True]


@pytest.mark.parametrize("outside", ["other", "spam-other"])
@pytest.mark.parametrize(
    ("value", "link"),
    [
        ("spam:libx.so", "spam/libx.so"),
        ("spam:lib/libx.so", "spam/lib"),
        ("spam", "spam/libx.so"),
    ],
)
def test_a_link_does_not_lead_out_of_the_package(site, value, link, outside):
    install(site, outside, files={f"{outside}/libx.so": b"x"})
    files = {"spam/__init__.py": _NEVER, "spam/libgood.so": b"1"}
    install(site, "spam", files=files, entry_points=f"x = {value}")
    target = site / outside / "libx.so"
    (site / link).symlink_to(target if link.endswith(".so") else target.parent)

    result = search(site)

    assert paths(result) == ([str(site / "spam/libgood.so")] if value == "spam" else [])
    (problem,) = result.problems
    assert problem.rule == "LD-021"
    assert "a link leads out of the package, from " in problem.message
    assert f" to {target}" in problem.message


# -- links that are followed ----------------------------------------------------------------------


@pytest.mark.parametrize("linked", ["package", "files"])
def test_an_installer_may_link_a_package_or_each_of_its_files(site, tmp_path, linked):
    """As editable installs and some package managers do."""
    store = tmp_path / "store"
    files = {"spam/__init__.py": _NEVER, "spam/libx.so": b"x"}
    metadata = install(store, "spam", files=files, entry_points="x = spam")
    site.mkdir()
    if linked == "package":  # and nothing of the metadata, which would say where it lies
        (site / "spam").symlink_to(store / "spam")
        metadata.rename(site / metadata.name)
    for folder in (site / "spam", site / metadata.name) if linked == "files" else ():
        folder.mkdir()
        for file in (store / folder.name).iterdir():
            (folder / file.name).symlink_to(file)

    assert paths(search(site)) == [str(site / "spam/libx.so")]


@pytest.mark.parametrize("name", ["edited_spam", "lone_spam"])
def test_a_package_or_module_elsewhere_names_its_folder(site, tmp_path, monkeypatch, name):
    """As an editable installation has it."""
    sources = tmp_path / "sources"
    folder = sources / name if name == "edited_spam" else sources
    folder.mkdir(parents=True)
    module = folder / ("__init__.py" if name == "edited_spam" else f"{name}.py")
    module.write_bytes(_NEVER)
    (folder / "libx.so").write_bytes(b"x")
    install(site, name, entry_points=f"x = {name}:libx.so")
    monkeypatch.syspath_prepend(str(sources))

    assert paths(search(site)) == [str(folder / "libx.so")]
    assert name not in sys.modules


# -- what others wrote ----------------------------------------------------------------------------


def test_what_is_broken_in_one_distribution_spares_the_others(site, monkeypatch):
    class Finder:
        @staticmethod
        def find_spec(name, *_):
            if name == "edited_spam_two":
                raise RuntimeError("broken finder")

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    install(site, "aaa", entry_points="this line has no equals sign")
    (install(site, "bbb") / "entry_points.txt").write_bytes(b"[modular_tf.plugins]\nx = \xff\xfe:x")
    (install(site, "ccc") / "entry_points.txt").mkdir()
    install(site, "cdd", entry_points="= no_name")
    install(site, "ddd", entry_points="x = edited_spam_two:libx.so")
    install(site, "zzz", files={"zzz/libz.so": b"z"}, entry_points="z = zzz:libz.so")

    result = search(site)

    assert paths(result) == [str(site / "zzz/libz.so")]
    origins = [problem.origin[:3] for problem in result.problems]
    assert origins == ["aaa", "bbb", "ccc", "cdd", "ddd"]
    assert {problem.rule for problem in result.problems} == {"LD-020", "LD-023"}
    for number, line in ((0, "this line"), (3, "= no_name")):
        expected = f"line 2: expected 'name = value', found '{line}"
        assert expected in result.problems[number].message
    assert result.problems[-1].rule == "LD-020"


def test_metadata_of_old_installers_counts(site):
    (site / "spam").mkdir(parents=True)
    (site / "spam/libx.so").write_bytes(b"x")
    for folder in ("Spam-3.0-py3.11.egg-info", "~pam-1.0.dist-info"):
        (site / folder).mkdir()
        text = "[modular_tf.plugins]\nx = spam:libx.so\n"
        (site / folder / "entry_points.txt").write_text(text)

    (candidate,) = search(site).candidates

    assert candidate.origin == "spam 3.0: x"


@pytest.mark.parametrize(
    ("entry_points", "words"),
    [
        ("\n".join(f"x{number} = spam:lib{number}.so" for number in range(1001)), "1000 entries"),
        ("x = spam:" + 5000 * "y", "line 2 has 5009 characters"),
        (5000 * "y", "line 2 has 5000 characters"),
        ("x = spam:libx.so\n" + "#" * (1 << 20), "longer than 1 MiB"),
    ],
    ids=["entries", "value", "no value", "file"],
)
def test_a_distribution_that_names_things_without_bound_is_left_out(site, entry_points, words):
    install(site, "excessive", files={"spam/libx.so": b"1"}, entry_points=entry_points)
    install(site, "good", files={"good/libx.so": b"1"}, entry_points="x = good:libx.so")

    result = search(site)

    assert paths(result) == [str(site / "good/libx.so")]
    (problem,) = result.problems
    assert (problem.rule, problem.origin) == ("LD-145", "excessive 1.0")
    assert words in problem.message
    assert len(problem.message) < 400


def test_entry_points_that_name_crowded_folders_are_bounded_together(site, monkeypatch):
    monkeypatch.setattr(search_log, "MOST_LIBRARIES", 10)
    files = {f"spam/{folder}/lib{n}.so": b"" for folder in "ab" for n in range(6)}
    install(site, "spam", files=files, entry_points="a = spam:a\nb = spam:b")

    result = search(site)

    assert [place.hits for place in result.searched] == [6, 4]
    assert [problem.rule for problem in result.problems] == ["LD-145"]
