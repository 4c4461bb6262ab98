"""Sources 1 to 4: arguments, environment, configuration."""

import os
from pathlib import Path

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources import search_log
from modular_tf.discovery.sources.search_paths import SearchPaths
from tests.discovery.conftest import found

VARIABLE, TENSORFLOWS = "MODULAR_TF_PLUGIN_PATH", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(path.name.encode())
    return path


def search(*arguments, **more):
    return discover(SearchPaths(arguments=tuple(map(str, arguments)), **more))


PLUGINS = ("libx.so", "x.so", "libx.so.2", "libx.so.2.1.0", "a.so.b.so.1")
PLUGINS += ("libx.so.2abc",)  # TensorFlow looks at one character
OTHERS = ("libx.so.x", "libx.so.", "libx.so.1.so.x", "libx.so_2", "libx.soo", "libx.so.²")
OTHERS += ("libx.a", "so")


def test_file_names_that_count(tmp_path):
    for name in (*PLUGINS, *OTHERS):
        touch(tmp_path / name)

    found_names = {Path(candidate.path).name for candidate in search(tmp_path).candidates}
    assert found_names == set(PLUGINS)


def test_a_directory_is_listed_in_order_and_not_searched_below(tmp_path):
    """The probe names what is broken."""
    for name in ("b.so", "a.so.2", "lib.so", "c.txt", "below/d.so", "B.so"):
        touch(tmp_path / name)
    (tmp_path / "libdirectory.so").mkdir()
    (tmp_path / "liblink.so").symlink_to("nowhere")
    os.mkfifo(tmp_path / "libpipe.so")

    result = search(tmp_path)

    names = [Path(candidate.path).name for candidate in result.candidates]
    links = ["libdirectory.so", "liblink.so", "libpipe.so"]
    assert names == ["B.so", "a.so.2", "b.so", "lib.so", *links]
    expected = ["B", "a", "b", "lib.so", "directory", "link", "pipe"]
    assert [candidate.name for candidate in result.candidates] == expected
    assert result.problems == ()
    (place,) = result.searched
    assert (place.path, place.exists, place.hits) == (str(tmp_path), True, 7)


def test_a_named_file_counts_whatever_it_is_called(tmp_path, monkeypatch):
    file = touch(tmp_path / "plugin.bin")
    monkeypatch.chdir(tmp_path)
    for argument in (file, "plugin.bin"):
        result = search(argument)

        assert found(result) == [(str(file), Source.ARGUMENT)]
        assert result.candidates[0].origin == "argument"
        assert result.candidates[0].name == "plugin.bin"


def test_a_missing_path_is_a_problem_and_the_rest_is_found(tmp_path):
    file, gone = touch(tmp_path / "libx.so"), tmp_path / "gone"

    result = search(gone, file / "below", "nul\0byte", file, environment={VARIABLE: str(gone)})

    assert found(result) == [(str(file), Source.ARGUMENT)]
    rules = [(problem.rule, problem.origin) for problem in result.problems]
    missing = ("LD-001", "argument")
    assert rules == [missing, missing, ("LD-003", "argument"), ("LD-001", VARIABLE)]
    assert result.problems[0].message == f"{gone} does not exist, named by argument"
    assert [place.exists for place in result.searched] == [False, False, False, True, False]


def test_both_variables_and_the_configuration(tmp_path, isolated_machine):
    """TensorFlow's names one path, colons and all; the home may be written short."""
    home = isolated_machine / "home"
    files = [touch(tmp_path / name / "libx.so") for name in ("one", "two", "three:3")]
    files.append(touch(home / "plugins" / "libx.so"))
    first = f"{files[0]}{os.pathsep}{os.pathsep}{files[1].parent}"

    result = search(
        environment={VARIABLE: first, TENSORFLOWS: str(files[2].parent)},
        config_directories=("~/plugins",),
        config_origin="the.toml",
    )

    sources = (Source.ENVIRONMENT, Source.ENVIRONMENT, Source.TF_ENVIRONMENT, Source.CONFIG)
    assert found(result) == list(zip(map(str, files), sources, strict=True))
    origins = [candidate.origin for candidate in result.candidates]
    assert origins == [VARIABLE, VARIABLE, TENSORFLOWS, "the.toml"]


def test_a_directory_that_cannot_be_listed_and_sources_that_are_not_asked(tmp_path, monkeypatch):
    file = touch(tmp_path / "libx.so")
    environment = {VARIABLE: str(file)}
    result = search(file, environment=environment, sources=frozenset({Source.ENVIRONMENT}))
    assert found(result) == [(str(file), Source.ENVIRONMENT)]
    assert result.candidates[0].twins == ()

    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.listdir", refuse)  # the superuser may list everything
    (problem,) = search(tmp_path, sources=frozenset({Source.ARGUMENT})).problems
    assert problem.rule == "LD-022"
    assert problem.message.endswith("cannot be listed: Permission denied")


def test_of_a_directory_without_bound_the_beginning_is_searched(tmp_path, monkeypatch):
    crowded, good = tmp_path / "crowded", touch(tmp_path / "good" / "libx.so")
    monkeypatch.setattr(search_log, "MOST_LIBRARIES", 10)
    crowded.mkdir()
    for number in range(11):
        (crowded / f"lib{number:05}.so").touch()

    result = search(crowded, good.parent, sources=frozenset({Source.ARGUMENT}))

    (problem,) = result.problems
    assert (problem.rule, problem.path, problem.origin) == ("LD-145", str(crowded), "argument")
    assert "11 libraries" in problem.message
    assert [place.hits for place in result.searched] == [10, 1]
    assert found(result)[-1] == (str(good), Source.ARGUMENT)
