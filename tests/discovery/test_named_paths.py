"""Sources 1 to 4: arguments, environment, configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.discovery.sources.search_paths import SearchPaths

if TYPE_CHECKING:
    from modular_tf.discovery.search import FoundCandidates


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(path.name.encode())
    return path


def found(result: FoundCandidates) -> list[tuple[str, Source]]:
    return [(candidate.path, candidate.source) for candidate in result.candidates]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("libx.so", True),
        ("x.so", True),
        ("libx.so.2", True),
        ("libx.so.2.1.0", True),
        ("libx.so.2abc", True),  # TensorFlow tests one character
        ("a.so.b.so.1", True),
        ("libx.so.x", False),
        ("libx.so.", False),
        ("libx.so.1.so.x", False),
        ("libx.so_2", False),
        ("libx.soo", False),
        ("libx.so.²", False),
        ("libx.a", False),
        ("so", False),
        ("", False),
    ],
)
def test_file_names_that_count(name: str, counts: bool) -> None:
    assert is_plugin_file_name(name) is counts


def test_a_directory_is_listed_in_order_and_not_searched_below(tmp_path: Path) -> None:
    for name in ("b.so", "a.so.2", "c.txt", "below/d.so", "B.so"):
        touch(tmp_path / name)

    result = discover(SearchPaths(arguments=(str(tmp_path),)))

    names = [Path(candidate.path).name for candidate in result.candidates]
    assert names == ["B.so", "a.so.2", "b.so"]
    assert result.problems == ()
    (place,) = result.searched
    assert (place.path, place.exists, place.hits) == (str(tmp_path), True, 3)


def test_a_named_file_counts_whatever_it_is_called(tmp_path: Path) -> None:
    file = touch(tmp_path / "plugin.bin")

    result = discover(SearchPaths(arguments=(str(file),)))

    assert found(result) == [(str(file), Source.ARGUMENT)]
    assert result.candidates[0].origin == "argument"
    assert result.candidates[0].name == "plugin.bin"


def test_relative_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = touch(tmp_path / "libx.so")
    monkeypatch.chdir(tmp_path)

    result = discover(SearchPaths(arguments=("libx.so",)))

    assert result.candidates[0].path == str(file)


def test_a_missing_path_is_a_problem_and_the_rest_is_found(tmp_path: Path) -> None:
    file, gone = touch(tmp_path / "libx.so"), tmp_path / "gone"

    result = discover(
        SearchPaths(
            arguments=(str(gone), str(file / "below"), "nul\0byte", str(file)),
            environment={"MODULAR_TF_PLUGIN_PATH": str(gone)},
        )
    )

    assert found(result) == [(str(file), Source.ARGUMENT)]
    rules = [(problem.rule, problem.origin) for problem in result.problems]
    assert rules == [
        ("LD-001", "argument"),
        ("LD-001", "argument"),
        ("LD-003", "argument"),
        ("LD-001", "MODULAR_TF_PLUGIN_PATH"),
    ]
    assert result.problems[0].message == f"{gone} does not exist, named by argument"
    assert [place.exists for place in result.searched] == [False, False, False, True, False]


def test_both_variables_and_the_configuration(tmp_path: Path) -> None:
    files = [touch(tmp_path / name / "libx.so") for name in ("one", "two", "three", "four")]
    folder = str(tmp_path / "two")

    result = discover(
        SearchPaths(
            environment={
                "MODULAR_TF_PLUGIN_PATH": f"{files[0]}{os.pathsep}{os.pathsep}{folder}",
                "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(files[2]),
            },
            config_directories=(str(tmp_path / "four"),),
            config_origin="the.toml",
        )
    )

    assert found(result) == [
        (str(files[0]), Source.ENVIRONMENT),
        (str(files[1]), Source.ENVIRONMENT),
        (str(files[2]), Source.TF_ENVIRONMENT),
        (str(files[3]), Source.CONFIG),
    ]
    assert [candidate.origin for candidate in result.candidates] == [
        "MODULAR_TF_PLUGIN_PATH",
        "MODULAR_TF_PLUGIN_PATH",
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH",
        "the.toml",
    ]


def test_tensorflows_variable_names_one_path_colons_and_all(tmp_path: Path) -> None:
    file = touch(tmp_path / "with:colon" / "libx.so")

    result = discover(
        SearchPaths(environment={"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(file.parent)})
    )

    assert found(result) == [(str(file), Source.TF_ENVIRONMENT)]


def test_the_home_directory_may_be_written_short(isolated_machine: Path) -> None:
    file = touch(isolated_machine / "home" / "plugins" / "libx.so")

    result = discover(SearchPaths(config_directories=("~/plugins",)))

    assert found(result) == [(str(file), Source.CONFIG)]


def test_broken_entries_of_a_directory_are_candidates(tmp_path: Path) -> None:
    (tmp_path / "libdirectory.so").mkdir()
    (tmp_path / "liblink.so").symlink_to("nowhere")
    os.mkfifo(tmp_path / "libpipe.so")

    result = discover(SearchPaths(arguments=(str(tmp_path),)))

    assert [candidate.name for candidate in result.candidates] == ["directory", "link", "pipe"]
    assert result.problems == ()  # the probe names them


def test_a_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.listdir", refuse)  # the superuser may list everything
    result = discover(SearchPaths(arguments=(str(tmp_path),), sources=frozenset({Source.ARGUMENT})))

    assert [problem.rule for problem in result.problems] == ["LD-022"]
    assert result.problems[0].message.endswith("cannot be listed: Permission denied")


def test_of_a_directory_without_bound_the_beginning_is_searched(tmp_path: Path) -> None:
    crowded, good = tmp_path / "crowded", touch(tmp_path / "good" / "libx.so")
    crowded.mkdir()
    for number in range(10_001):
        (crowded / f"lib{number:05}.so").touch()

    result = discover(
        SearchPaths(
            arguments=(str(crowded), str(good.parent)), sources=frozenset({Source.ARGUMENT})
        )
    )

    (problem,) = result.problems
    assert (problem.rule, problem.path, problem.origin) == ("LD-145", str(crowded), "argument")
    assert "10001 libraries" in problem.message
    assert [place.hits for place in result.searched] == [10_000, 1]
    assert found(result)[-1] == (str(good), Source.ARGUMENT)


def test_a_privileged_process_ignores_what_its_user_controls(tmp_path: Path) -> None:
    names = ("argument", "environment", "tf", "config", "user")
    files = {name: touch(tmp_path / name / "libx.so") for name in names}
    paths = {name: str(file.parent) for name, file in files.items()}

    result = discover(
        SearchPaths(
            arguments=(paths["argument"],),
            environment={
                "MODULAR_TF_PLUGIN_PATH": paths["environment"],
                "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": paths["tf"],
            },
            config_directories=(paths["config"],),
            user_directory=paths["user"],
            privileged=True,
        )
    )

    assert found(result) == [(str(files["argument"]), Source.ARGUMENT)]
    ignored = {place.path for place in result.searched if place.ignored}
    assert ignored == {paths[name] for name in ("environment", "tf", "config", "user")}
    assert all("setuid" in place.ignored for place in result.searched if place.ignored)
    assert result.problems == ()


def test_only_the_sources_asked_for_are_searched(tmp_path: Path) -> None:
    file = touch(tmp_path / "libx.so")
    everything = SearchPaths(
        arguments=(str(file),),
        environment={"MODULAR_TF_PLUGIN_PATH": str(file)},
        sources=frozenset({Source.ENVIRONMENT}),
    )

    result = discover(everything)

    assert found(result) == [(str(file), Source.ENVIRONMENT)]
    assert result.candidates[0].twins == ()
