"""The samples on the pages of the site run, and print what the pages say."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from modular_tf.check.catalogue import all_checks
from tests.architecture.document import blocks
from tests.architecture.samples import NOT_OF_A_USER, run_samples
from tests.fixtures.matrices import sampled
from tests.fixtures.wild import KERNELS

DOCS = Path(__file__).parents[2] / "docs"
# What a page shows but no test types, each with the file that does run it.
RUN_ELSEWHERE = {
    "modular-tf fetch tensorflow-io": "scripts/try_pythons",
    "modular-tf fetch tensorflow-io-gcs-filesystem": "scripts/try_pythons",
    "MODULAR_TF_PLUGIN_PATH=/opt/plugins/libmy_store.so modular-tf list": (
        "tests/discovery/test_named_paths.py"
    ),
    "modular-tf paths": "tests/cli/test_lists.py",
    f"pip install --no-deps {KERNELS}": "tests/wild/test_intel_kernels.py",
    'pip install polars duckdb xarray zarr "dask[dataframe]" distributed': (
        "tests/fixtures/clients.py"
    ),
    "modular-tf new filesystem my_store": "tests/project_template/test_project.py",
    "modular-tf new device my_chip": "tests/project_template/test_project.py",
    "modular-tf lock --load": "tests/cli/test_lock.py",
    "modular-tf --frozen list": "tests/trust/test_frozen.py",
    "modular-tf quarantine list": "tests/quarantine/test_whole_way.py",
    "modular-tf quarantine retry NAME": "tests/quarantine/test_whole_way.py",
}
# A page whose sample takes minutes, with the script that runs it.
RUN_BY_SCRIPTS = {"how-to/use-ray.md": "scripts/try_ray"}
WITH_SAMPLES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if {"console", "python"} & {block.language for block in blocks(path.read_text("utf-8"))}
    and path.relative_to(DOCS).as_posix() not in RUN_BY_SCRIPTS
]
# Minutes of imports; what each of these libraries does by us is tried by tests/clients.
OF_MATRICES = {"use-with-data-libraries"}


def test_what_is_only_told_is_run_elsewhere():
    told = {
        line
        for path in DOCS.rglob("*.md")
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.language == "sh"
        for line in block.text.split("\n")
    }

    assert told - {""} == RUN_ELSEWHERE.keys()
    for name in (*RUN_ELSEWHERE.values(), *RUN_BY_SCRIPTS.values()):
        assert (DOCS.parent / name).exists()


def test_every_start_page_has_samples():
    assert {path.stem for path in WITH_SAMPLES if path.parent.name == "start"} == {
        "data-engineers",
        "tensorflow-users",
        "plugin-authors",
        "runtime-builders",
    }


def test_the_number_of_checks_is_right():
    text = (DOCS / "how-to" / "check-a-plugin.md").read_text(encoding="utf-8")

    assert re.findall(r"(\d+) numbered checks", text) == [str(len(all_checks()))]


@pytest.mark.wild
@pytest.mark.emulator
@pytest.mark.parametrize(
    "page",
    sampled(WITH_SAMPLES, [path for path in WITH_SAMPLES if path.stem not in OF_MATRICES]),
    ids=lambda path: path.relative_to(DOCS).as_posix(),
)
def test_samples_run_and_print_what_is_said(
    page, tmp_path, wild_plugins, s3_store, fork_server, monkeypatch
):
    for name in NOT_OF_A_USER:  # which forks would have
        monkeypatch.delenv(name, raising=False)
    server = fork_server("import numpy, modular_tf.service.default, modular_tf.fsspec", {})
    run_samples(page.read_text(encoding="utf-8"), tmp_path, wild_plugins, s3_store, server)


@pytest.mark.wild
def test_the_picture_of_a_terminal_shows_what_commands_print_now(tmp_path, wild_plugins):
    picture = tmp_path / "terminal.svg"
    before = os.environ.get("PYTHONPATH")
    places = [*([before] if before else []), str(wild_plugins.site_dir)]
    subprocess.run(
        [sys.executable, DOCS.parent / "scripts" / "draw_terminal", picture],
        env={name: value for name, value in os.environ.items() if name not in NOT_OF_A_USER}
        | {"PYTHONPATH": os.pathsep.join(places)},
        check=True,
    )

    assert _shown(picture) == _shown(DOCS / "terminal.svg"), "run scripts/draw_terminal"


def _shown(picture):
    """Return the lines of text in a picture."""
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    return [html.unescape(text).replace("\N{NO-BREAK SPACE}", " ") for text in drawn]
