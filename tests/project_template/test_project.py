"""A new project is written whole or not at all, and its files fit each other."""

from __future__ import annotations

import ast
import errno
import re
import stat
import sys

import pytest

import modular_tf
from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.project_template import project
from modular_tf.check.project_template.project import (
    KINDS,
    project_names,
    render_project,
    write_project,
)
from modular_tf.check.settings import FILE_NAME, decided
from tests.check.named_checks import assert_tells_what_it_means, ids_in

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EVERY_PROJECT_HAS = {
    ".github/workflows/ci.yml",
    ".gitignore",
    "CMakeLists.txt",
    "README.md",
    "modular-tf-check.toml",
    "pyproject.toml",
    "src/exports.map",
    "src/plugin.cc",
    "tests/test_conformance.py",
}
ENTRY_POINTS = {"filesystem": "TF_InitPlugin", "device": "SE_InitPlugin"}


@pytest.fixture(params=KINDS)
def names(request):
    return project_names(request.param, "My-Sample")


@pytest.fixture
def files(names):
    return render_project(names)


def test_the_files_are_what_was_rendered(names, files, tmp_path):
    (tmp_path / "usual").mkdir()
    written = write_project(names, str(tmp_path / "made"))

    assert list(written) == sorted(files)
    assert set(written) >= EVERY_PROJECT_HAS
    assert files == {
        str(path.relative_to(tmp_path / "made")): path.read_text(encoding="utf-8")
        for path in (tmp_path / "made").rglob("*")
        if path.is_file()
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "usual"]
    folders = ("usual", "made", "made/src")  # with the permissions that others get
    modes = {stat.S_IMODE((tmp_path / folder).stat().st_mode) for folder in folders}
    assert len(modes) == 1


def test_the_files_fit_each_other(names, files):
    named = re.findall(r"^  (src/\S+\.cc)", files["CMakeLists.txt"], re.MULTILINE)
    assert sorted(named) == sorted(name for name in files if name.endswith(".cc"))

    assert re.findall(r"@\w+@", "\n".join(files.values())) == []  # each name is filled in
    entry_point = ENTRY_POINTS[names.kind]
    assert re.findall(r"global: (.*?);", files["src/exports.map"]) == [entry_point]
    assert f" {entry_point}(" in files["src/plugin.cc"]

    named = set(re.findall(r"`((?:src|tests)/[^`]+)`", files["README.md"]))
    sources = {name for name in files if name.startswith("src/")}
    assert named <= files.keys()
    assert sources - named <= {"src/exports.map", "src/slots.h"}
    assert ids_in("\n".join(files.values())) <= all_checks().keys()


def test_the_project_is_python_s_to_build(names, files):
    settings = tomllib.loads(files["pyproject.toml"])

    assert settings["project"]["name"] == names.project
    assert f"modular_tf>={modular_tf.__version__}" in settings["build-system"]["requires"]
    assert settings["tool"]["scikit-build"]["wheel"]["py-api"] == "py3"
    ast.parse(files["tests/test_conformance.py"])


def test_the_settings_of_the_checks_hold_with_and_without_their_examples(names, files, tmp_path):
    text = files["modular-tf-check.toml"]
    (tmp_path / FILE_NAME).write_text(text)
    assert decided(str(tmp_path)).level == Level.WORKS

    (tmp_path / FILE_NAME).write_text(text.replace("#   ", ""))
    settings = decided(str(tmp_path))
    (known,) = settings.known
    assert_tells_what_it_means(known, text)
    check = all_checks()[known.check_id]
    assert (check.kind, check.level <= settings.level) == (names.kind, True)


def test_a_place_that_is_taken_is_left_alone_and_a_missing_parent_is_named(names, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    for place in list(tmp_path.iterdir()):
        with pytest.raises(FileExistsError):
            write_project(names, str(place))
    with pytest.raises(FileNotFoundError) as raised:
        write_project(names, str(tmp_path / "missing" / "made"))

    assert raised.value.filename == str(tmp_path / "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "link"]
    assert list((tmp_path / "empty").iterdir()) == []


def test_nothing_is_left_of_a_project_that_could_not_be_written(names, tmp_path, monkeypatch):
    written = []

    def write_two(path, mode="r", **options):
        if mode == "x":
            if len(written) == 2:
                raise OSError(errno.ENOSPC, "no space left", path)
            written.append(path)
        return open(path, mode, **options)  # noqa: PTH123

    monkeypatch.setattr(project, "open", write_two, raising=False)
    with pytest.raises(OSError, match="no space left"):
        write_project(names, str(tmp_path / "made"))

    assert len(written) == 2
    assert list(tmp_path.iterdir()) == []
