"""The README works: its samples run, top to bottom, and print what it says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.architecture.document import blocks
from tests.architecture.samples import run_samples

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")

# What a reader types but no test can, because it is what runs the tests or installs the package;
# each with the file that does run it.
RUN_ELSEWHERE = {
    "git clone https://github.com/modular-tf/modular_tf": "pyproject.toml",
    'pip install "./modular_tf[fsspec,cli]"': "scripts/make_environment",
    "modular-tf fetch tensorflow-io": "scripts/try_pythons",
}


def test_it_has_at_most_150_lines():
    assert README.count("\n") <= 150


def test_every_block_is_of_a_kind_that_is_checked():
    kinds = {block.language for block in blocks(README)}

    # `scripts/try_pythons` runs programs with TensorFlow, which are `py`.
    assert kinds == {"console", "py", "python", "sh", "text"}


def test_what_is_only_told_is_run_elsewhere():
    told = [
        line
        for block in blocks(README)
        if block.language == "sh"
        for line in block.text.split("\n")
    ]

    assert {line for line in told if line} == RUN_ELSEWHERE.keys()
    for name in RUN_ELSEWHERE.values():
        assert (CHECKOUT / name).exists()
    clone = next(line for line in told if line.startswith("git clone "))
    assert f'Homepage = "{clone.split()[-1]}"' in (CHECKOUT / "pyproject.toml").read_text("utf-8")


def test_the_scripts_that_are_told_run_in_continuous_integration():
    for command in ("scripts/demo", "scripts/test"):
        assert f"`{command}`" in README
        assert f"\n{command}\n" in (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")
        assert os.access(CHECKOUT / command, os.X_OK)


def test_the_extras_that_are_told_exist():
    project = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.search(r"pip install \"\S*\[(.*)\]\"", README)[1].split(",")

    for extra in extras:
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)


@pytest.mark.wild
@pytest.mark.emulator
def test_samples_run_and_print_what_is_said(tmp_path, wild_plugins, s3_store):
    run_samples(README, tmp_path, wild_plugins, s3_store)
