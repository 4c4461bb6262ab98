"""Sources 6 to 9: tensorflow-plugins, distributions, drop-in directories, bundled plugins."""

import pwd

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from tests.discovery.conftest import found
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.site_folder import install

_PLUGIN = ElfBuilder().build()
_LIBRARY = ElfBuilder(exports=("something",)).build()


def search_distributions(python_path):
    sources = frozenset({Source.DISTRIBUTION})
    return discover(SearchPaths(python_path=(str(python_path),), sources=sources))


def names(result):
    return [candidate.name for candidate in result.candidates]


def put(path, content=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_tensorflow_plugins_in_each_site(tmp_path):
    two = put(tmp_path / "two/tensorflow-plugins/libb.so", b"2")
    one = put(tmp_path / "one/tensorflow-plugins/liba.so.1", b"1")
    sites = tuple(str(tmp_path / name) for name in ("two", "none", "one"))

    result = discover(SearchPaths(site_directories=sites))

    assert found(result) == [(str(path), Source.TENSORFLOW_PLUGINS) for path in (two, one)]
    assert result.candidates[0].origin == str(two.parent)
    assert [place.exists for place in result.searched] == [True, False, True]
    assert result.problems == ()


def test_a_distribution_with_one_plugin_lends_it_its_name(tmp_path):
    files = {
        "spam/libspam_plugin.so": _PLUGIN,
        "spam/libhelper.so.1": _LIBRARY,
        "spam/broken.so": b"text",
        "spam/_ext.cpython-311-x86_64-linux-gnu.so": _PLUGIN,
        "spam/_ext.abi3.so": _PLUGIN,
        "spam/data.sorted": _PLUGIN,
    }
    install(tmp_path, "Spam.Filesystem", version="0.2", files=files)

    result = search_distributions(tmp_path)

    assert found(result) == [(str(tmp_path / "spam/libspam_plugin.so"), Source.DISTRIBUTION)]
    (candidate,) = result.candidates
    assert candidate.name == candidate.distribution == "spam-filesystem"
    assert candidate.origin == "spam-filesystem 0.2"
    assert result.problems == ()  # broken.so is nobody's plugin
    assert [(place.path, place.hits) for place in result.searched] == [(str(tmp_path), 1)]


def test_a_distribution_with_several_lends_none_its_name(tmp_path):
    files = {f"x/lib{name}.so": _PLUGIN for name in ("one", "two")}
    install(tmp_path, "spam", files=files)

    assert names(search_distributions(tmp_path)) == ["one", "two"]


def test_our_own_plugins_are_the_bundled_source(tmp_path):
    install(tmp_path, "modular_tf", files={"modular_tf/plugins/libx.so": _PLUGIN})
    package = str(tmp_path / "modular_tf")

    assert search_distributions(tmp_path).candidates == ()
    result = discover(
        SearchPaths(python_path=(str(tmp_path),), package_directories=(package, "/nowhere"))
    )
    assert found(result) == [(f"{package}/plugins/libx.so", Source.BUNDLED)]
    assert result.candidates[0].origin == "modular_tf"


# -- RECORD ---------------------------------------------------------------------------------------


def test_a_record_may_say_anything(tmp_path):
    odd = {"sp,am/lib,x.so": _PLUGIN, 'sp"am/lib"y".so.2': _PLUGIN}
    site = tmp_path / "site"
    install(site, "quoted", files=odd)
    install(site, "garbage", record=b'\xff\xfe.so\n"unclosed.so\n,,.so,\n.so\x00.so,x,1\r\n.so')
    install(site, "gone", record=b"gone/libx.so,,\n/absolute/liby.so,,\n")
    install(site, "outside", record=b"../bin/libz.so,,\n")
    outside = put(tmp_path / "bin/libz.so", _PLUGIN)

    result = search_distributions(site)

    assert {path for path, _ in found(result)} == {
        *(str(site / path) for path in odd),
        str(outside),
    }
    assert result.problems == ()


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        pytest.param(None, "LD-023", id="unreadable"),
        pytest.param(
            b"".join(b"spam/lib%d.so,,\n" % number for number in range(10_001)),
            "LD-145",
            id="libraries",
        ),
        pytest.param(bytes((64 << 20) + 1), "LD-145", id="length"),
    ],
)
def test_a_record_that_cannot_be_read_or_has_no_bound(record, rule, tmp_path):
    metadata = install(tmp_path, "spam", record=record)
    if record is None:
        (metadata / "RECORD").unlink()
        (metadata / "RECORD").mkdir()
    install(tmp_path, "zzz", files={"zzz/libz.so": _PLUGIN})

    result = search_distributions(tmp_path)

    assert names(result) == ["zzz"]
    (problem,) = result.problems
    assert (problem.rule, problem.origin) == (rule, "spam 1.0")
    if record is None:
        assert "RECORD of distribution spam 1.0 cannot be read" in problem.message


# -- drop-in directories


def test_without_a_home_no_directory_of_the_user_is_searched(tmp_path, monkeypatch):
    def getpwuid(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(tmp_path)
    result = discover(SearchPaths.of_process(arguments=["~/mine"], environment={}))
    homeless = {place.path: place for place in result.searched if place.ignored}

    assert [*homeless] == ["~/mine", "~/.local/share/modular_tf/plugins"]
    for place in homeless.values():
        assert place.hits == 0
        assert "there is no home directory" in place.ignored
    assert "~/mine cannot be found, named by argument" in result.problems[0].message


@pytest.mark.parametrize(
    "text", [None, "[project]\n", '[project]\nname = "another"\n', '[project]\nre = "modular_tf"\n']
)
def test_the_drop_in_folders_of_our_checkout_count_and_of_no_other(tmp_path, text):
    """This package may have been put into a project's folder, or beside a stray build file."""
    put(tmp_path / "plugin_dirs/b/libb.so", b"b")
    put(tmp_path / "plugin_dirs/a/liba.so", b"a")
    put(tmp_path / "plugin_dirs/libtop.so", b"top")
    put(tmp_path / "plugin_dirs/a/deeper/libc.so", b"c")
    paths = SearchPaths(package_directories=(str(tmp_path / "modular_tf"),))
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)

    assert discover(paths).candidates == ()

    (tmp_path / "pyproject.toml").write_text('[project]\nname = "modular_tf"\n')
    result = discover(paths)
    assert names(result) == ["top", "a", "b"]
    assert {candidate.source for candidate in result.candidates} == {Source.USER_DIRECTORY}
