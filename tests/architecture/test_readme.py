"""The README works: its samples run, top to bottom, and print what it says."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.document import Block, Reader, blocks

if TYPE_CHECKING:
    from tests.fixtures.emulators import Store
    from tests.fixtures.wild import WildPlugins

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
SALES = b"city,items\nOslo,3\nLima,5\n"

# What a reader types but no test can, because it is what runs the tests or installs the package;
# each with the file that does run it.
RUN_ELSEWHERE = {
    "scripts/demo": ".ci/run",
    "scripts/test": ".ci/run",
    'pip install ".[fsspec,cli]"': "scripts/make_environment",
    "pip install --no-deps tensorflow-io tensorflow-io-gcs-filesystem": "tests/fixtures/wild.py",
}


def test_every_block_is_of_a_kind_that_is_checked():
    kinds = {block.language for block in blocks(README)}

    assert kinds == {"c", "console", "python", "sh", "text"}


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
def test_samples_run_and_print_what_is_said(
    tmp_path: Path, wild_plugins: WildPlugins, s3_store: Store
):
    _create_bucket(s3_store.endpoint)
    environment = {
        **_of_a_user(tmp_path / "home"),
        **s3_store.environment,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    reader = Reader(tmp_path, environment)
    found = blocks(README)
    for block, following in zip(found, [*found[1:], Block("", "", 0)], strict=True):
        if "--no-deps" in block.text:  # the fixture has installed what is told here
            environment["PYTHONPATH"] = str(wild_plugins.site_dir)
        elif block.language == "console":
            reader.console(block)
        elif block.language == "c":
            reader.c(block)
        elif block.language == "python":
            reader.python(block, following.text if following.language == "text" else None)


def _of_a_user(home: Path) -> dict[str, str]:
    """Return the environment without what the tests have instead of first contact."""
    left_out = ("MODULAR_TF_FIRST_CONTACT", "MODULAR_TF_LOAD")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}


def _create_bucket(endpoint: str) -> None:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="nobody",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="my-bucket")
    client.put_object(Bucket="my-bucket", Key="sales/may.csv", Body=SALES)
    client.close()
