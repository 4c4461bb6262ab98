"""Sources 6 to 9: tensorflow-plugins, distributions, drop-in directories, bundled plugins."""

from __future__ import annotations

import pwd
from typing import TYPE_CHECKING

import platformdirs
import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.distributions import libraries_in_record
from modular_tf.discovery.sources.search_paths import SearchPaths
from tests.discovery.conftest import DEVICE
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.site_folder import install

if TYPE_CHECKING:
    from pathlib import Path

    from modular_tf.discovery.search import FoundCandidates
    from tests.discovery.conftest import LibraryCompiler

_PLUGIN = ElfBuilder().build()
_LIBRARY = ElfBuilder(exports=("something",)).build()


def found(result: FoundCandidates) -> list[tuple[str, Source]]:
    return [(candidate.path, candidate.source) for candidate in result.candidates]


def search_distributions(*python_path: Path) -> FoundCandidates:
    return discover(
        SearchPaths(
            python_path=tuple(map(str, python_path)), sources=frozenset({Source.DISTRIBUTION})
        )
    )


def test_tensorflow_plugins_in_each_site(tmp_path: Path) -> None:
    for name in ("two/tensorflow-plugins/libb.so", "one/tensorflow-plugins/liba.so.1"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(name.encode())
    sites = tuple(str(tmp_path / name) for name in ("two", "none", "one"))

    result = discover(SearchPaths(site_directories=sites))

    assert found(result) == [
        (str(tmp_path / "two/tensorflow-plugins/libb.so"), Source.TENSORFLOW_PLUGINS),
        (str(tmp_path / "one/tensorflow-plugins/liba.so.1"), Source.TENSORFLOW_PLUGINS),
    ]
    assert result.candidates[0].origin == str(tmp_path / "two/tensorflow-plugins")
    assert [place.exists for place in result.searched] == [True, False, True]
    assert result.problems == ()


def test_a_distribution_with_one_plugin_lends_it_its_name(tmp_path: Path) -> None:
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

    (candidate,) = result.candidates
    assert candidate.path == str(tmp_path / "spam/libspam_plugin.so")
    assert candidate.source is Source.DISTRIBUTION
    assert candidate.name == candidate.distribution == "spam-filesystem"
    assert candidate.origin == "spam-filesystem 0.2"
    assert result.problems == ()  # broken.so is nobody's plugin
    assert [(place.path, place.hits) for place in result.searched] == [(str(tmp_path), 1)]


def test_a_distribution_with_two_plugins_does_not(tmp_path: Path) -> None:
    install(tmp_path, "spam", files={"spam/libtwo.so": _PLUGIN, "spam/libone.so": _PLUGIN})

    assert [candidate.name for candidate in search_distributions(tmp_path).candidates] == [
        "two",
        "one",
    ]


def test_each_kind_of_plugin_is_found(tmp_path: Path) -> None:
    symbols = ["TF_InitPlugin", "SE_InitPlugin", "TF_InitKernel", "TF_InitGraph"]
    symbols += ["TF_InitProfiler", "TFNPD_InitPlugin", "GetPjrtApi"]
    files = {
        f"x/lib{at}.so": ElfBuilder(exports=(name,)).build() for at, name in enumerate(symbols)
    }
    install(tmp_path, "spam", files=files)

    assert len(search_distributions(tmp_path).candidates) == len(symbols)


def test_our_own_plugins_are_the_bundled_source(tmp_path: Path) -> None:
    install(tmp_path, "modular_tf", files={"modular_tf/plugins/libx.so": _PLUGIN})
    package = str(tmp_path / "modular_tf")

    assert search_distributions(tmp_path).candidates == ()
    result = discover(
        SearchPaths(python_path=(str(tmp_path),), package_directories=(package, "/nowhere"))
    )
    assert found(result) == [(f"{package}/plugins/libx.so", Source.BUNDLED)]
    assert result.candidates[0].origin == "modular_tf"


def test_a_record_may_say_anything(tmp_path: Path) -> None:
    odd = {"sp,am/lib,x.so": _PLUGIN, 'sp"am/lib"y".so.2': _PLUGIN}
    install(tmp_path, "quoted", files=odd)
    install(tmp_path, "garbage", record=b'\xff\xfe.so\n"unclosed.so\n,,.so,\n.so\x00.so,x,1\r\n.so')
    install(tmp_path, "gone", record=b"gone/libx.so,,\n/absolute/liby.so,,\n")
    install(tmp_path, "outside", record=b"../bin/libz.so,,\n")
    (tmp_path.parent / "bin").mkdir(exist_ok=True)
    (tmp_path.parent / "bin/libz.so").write_bytes(_PLUGIN)

    result = search_distributions(tmp_path)

    assert {path for path, _ in found(result)} == {
        *(str(tmp_path / path) for path in odd),
        str(tmp_path.parent / "bin/libz.so"),
    }
    assert result.problems == ()


def test_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    metadata = install(tmp_path, "spam")
    (metadata / "RECORD").unlink()
    (metadata / "RECORD").mkdir()
    install(tmp_path, "zzz", files={"zzz/libz.so": _PLUGIN})

    result = search_distributions(tmp_path)

    assert [candidate.name for candidate in result.candidates] == ["zzz"]
    (problem,) = result.problems
    assert problem.rule == "LD-023"
    assert "RECORD of distribution spam 1.0 cannot be read" in problem.message


@pytest.mark.parametrize(
    "record",
    [b"".join(b"spam/lib%d.so,,\n" % number for number in range(10_001)), bytes((64 << 20) + 1)],
    ids=["libraries", "length"],
)
def test_a_record_without_bound(record: bytes, tmp_path: Path) -> None:
    install(tmp_path, "spam", record=record)
    install(tmp_path, "zzz", files={"zzz/libz.so": _PLUGIN})

    result = search_distributions(tmp_path)

    assert [candidate.name for candidate in result.candidates] == ["zzz"]
    (problem,) = result.problems
    assert (problem.rule, problem.origin) == ("LD-145", "spam 1.0")


def test_lines_of_a_record() -> None:
    record = b"a/x.so,sha256=,1\r\na/y.so.3,,\nz.txt,sha256=.so,3\nso.py,,\n"

    assert list(libraries_in_record(record)) == ["a/x.so", "a/y.so.3"]
    assert list(libraries_in_record(b"")) == []


def test_the_users_directory(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_bytes(b"x")

    result = discover(SearchPaths(user_directory=str(tmp_path)))

    assert found(result) == [(str(tmp_path / "libx.so"), Source.USER_DIRECTORY)]


def test_the_users_directory_is_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, "", "  ", "/somewhere/else", "~/data"):
        if value is None:
            monkeypatch.delenv("XDG_DATA_HOME")
        else:
            monkeypatch.setenv("XDG_DATA_HOME", value)
        expected = platformdirs.user_data_dir("modular_tf", appauthor=False)

        assert SearchPaths.of_process().user_directory == f"{expected}/plugins"


@pytest.mark.parametrize("environment", [{"XDG_DATA_HOME": "data"}, {"HOME": "~"}, {"HOME": "."}])
def test_the_users_directory_is_never_below_the_working_directory(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for base in ("data", "~/.local/share", ".local/share"):
        library = tmp_path / base / "modular_tf" / "plugins" / "libx.so"
        library.parent.mkdir(parents=True)
        library.write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    for variable in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    result = discover(SearchPaths.of_process(environment=environment))

    assert not [path for path, source in found(result) if path.startswith(str(tmp_path))]
    assert [p.rule for p in result.problems if p.origin in environment] == ["LD-105"]
    (problem,) = (p for p in result.problems if p.origin in environment)
    ((name, value),) = environment.items()
    assert problem.message == f"{name} is ignored: expected an absolute path, found {value!r}"


def test_a_user_without_a_home_is_told_that_no_directory_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getpwuid(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(tmp_path)
    result = discover(SearchPaths.of_process(arguments=["~/mine"], environment={}))
    homeless = [place for place in result.searched if place.ignored]

    assert [(place.path, place.hits) for place in homeless] == [
        ("~/mine", 0),
        ("~/.local/share/modular_tf/plugins", 0),
    ]
    assert all("there is no home directory" in (place.ignored or "") for place in homeless)
    assert "~/mine cannot be found, named by argument" in result.problems[0].message


@pytest.mark.parametrize("text", ["", 'name = "another"\n', 'rename = "modular_tf"\n'])
def test_the_drop_in_folder_of_another_checkout_is_none_of_ours(tmp_path: Path, text: str) -> None:
    """This package may have been put into a project's folder, or beside a stray build file."""
    (tmp_path / "plugin_dirs").mkdir()
    (tmp_path / "plugin_dirs" / "libx.so").write_bytes(b"x")
    (tmp_path / "pyproject.toml").write_text(f"[project]\n{text}")

    paths = SearchPaths(package_directories=(str(tmp_path / "modular_tf"),))

    assert discover(paths).candidates == ()


def test_the_drop_in_folders_of_a_checkout(tmp_path: Path) -> None:
    for name in ("plugin_dirs/b/libb.so", "plugin_dirs/a/liba.so", "plugin_dirs/libtop.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "plugin_dirs/a/deeper").mkdir()
    (tmp_path / "plugin_dirs/a/deeper/libc.so").write_bytes(b"c")
    paths = SearchPaths(package_directories=(str(tmp_path / "modular_tf"),))

    assert discover(paths).candidates == ()  # not a checkout yet
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "modular_tf"\n')
    result = discover(paths)

    names = [candidate.name for candidate in result.candidates]
    assert names == ["top", "a", "b"]
    assert {candidate.source for candidate in result.candidates} == {Source.USER_DIRECTORY}


def test_the_running_process() -> None:
    paths = SearchPaths.of_process(arguments=["/a"], config_directories=["/b"], environment={})

    assert paths.arguments == ("/a",)
    assert paths.config_directories == ("/b",)
    assert paths.environment == {}
    assert any("site-packages" in path for path in paths.site_directories)
    assert len(set(paths.site_directories)) == len(paths.site_directories)
    assert not paths.privileged
    assert paths.sources == frozenset(Source)
    assert Source.BUNDLED not in SearchPaths.of_process(bundled=False).sources


def test_the_bundled_plugins_of_this_installation() -> None:
    result = discover(SearchPaths.of_process(environment={}))

    bundled = {found.name for found in result.candidates if found.source is Source.BUNDLED}
    assert {"posix_filesystem", "ram_filesystem"} <= bundled
    assert result.problems == ()


def test_privilege_is_read_from_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4711)

    assert SearchPaths.of_process().privileged


def test_a_compiled_plugin_of_a_distribution(
    compile_library: LibraryCompiler, tmp_path: Path
) -> None:
    content = compile_library("build/libx.so", DEVICE, "-s").read_bytes()
    install(tmp_path, "compiled", files={"compiled/libx.so": content})

    assert [found.name for found in search_distributions(tmp_path).candidates] == ["compiled"]
