"""What a new project builds is a plugin in order: alone, in a service, and to its own standards."""

from __future__ import annotations

import sys

import pytest

from modular_tf.check.project_template.project import project_names, render_project
from tests.architecture.document import blocks
from tests.fixtures.matrices import sampled
from tests.project_template.building import built_library, run_tool

NAMES = {
    "filesystem": project_names("filesystem", "New-Store"),
    "device": project_names("device", "class", device_type="NEW_CHIP"),
}
QUICKLY = ("large_bytes=65536", "many=20", "pressure_mib=32", "repeat=40")
ENTRY_POINTS = {"filesystem": ["TF_InitPlugin"], "device": ["SE_InitPlugin", "TF_InitKernel"]}


@pytest.mark.parametrize("level", sampled(["3", "4"], ["3"]))  # it promises the third
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_it_shows_entry_points_alone_and_conforms(names, level):
    library = built_library(names)
    listed = run_tool("nm", "-D", "--defined-only", "--format=posix", library, cwd=library.parent)
    assert [line.split()[0] for line in listed.splitlines()] == ENTRY_POINTS[names.kind]

    check = [sys.executable, "-m", "modular_tf", "check", library, "--level", level]
    run_tool(*check, *(f"--option={given}" for given in QUICKLY), cwd=library.parent)


@pytest.mark.parametrize(
    ("names", "shown"),
    [(NAMES["filesystem"], "7\n"), (NAMES["device"], " [0.0, 0.0, 2.0]\n")],
    ids=NAMES,
)
def test_the_program_in_its_readme_uses_it(names, shown, run_forked, tmp_path):
    (tmp_path / "build").symlink_to(built_library(names).parent)
    python = [
        each.text for each in blocks(render_project(names)["README.md"]) if "mtf." in each.text
    ]

    assert "".join(run_forked(text).stdout for text in python).endswith(shown)
