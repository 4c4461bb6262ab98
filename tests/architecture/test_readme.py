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
    "scripts/demo": ".ci/run",
    "scripts/test": ".ci/run",
    'pip install ".[fsspec,cli]"': "scripts/make_environment",
    "pip install --no-deps tensorflow-io tensorflow-io-gcs-filesystem": "tests/fixtures/wild.py",
}


def test_it_has_at_most_200_lines():
    assert README.count("\n") <= 200


def test_every_block_is_of_a_kind_that_is_checked():
    kinds = {block.language for block in blocks(README)}

    assert kinds == {"console", "python", "sh", "text"}


def test_what_is_only_told_is_run_elsewhere():
    told = [
        line
        for block in blocks(README)
        if block.language == "sh"
        for line in block.text.split("\n")
    ]

    assert {line for line in told if line} == RUN_ELSEWHERE.keys()
    for command in ("scripts/demo", "scripts/test"):
        assert f"\n{command}\n" in (CHECKOUT / RUN_ELSEWHERE[command]).read_text(encoding="utf-8")
        assert os.access(CHECKOUT / command, os.X_OK)


def test_the_extras_that_are_told_exist():
    project = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.search(r"pip install \"\.\[(.*)\]\"", README)[1].split(",")

    for extra in extras:
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)


@pytest.mark.wild
@pytest.mark.emulator
def test_samples_run_and_print_what_is_said(tmp_path, wild_plugins, s3_store):
    run_samples(README, tmp_path, wild_plugins, s3_store)
