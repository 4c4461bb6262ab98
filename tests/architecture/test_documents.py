"""What the documents point to is there, and the README works."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.architecture.document import blocks
from tests.architecture.samples import run_samples
from tests.architecture.test_floors import FLOORS

CHECKOUT = Path(__file__).parents[2]
# In the site, links to sources lead to the pages that are made of these; tests/site checks that.
DOCUMENTS = sorted(
    path.relative_to(CHECKOUT)
    for pattern in ("*.md", "benchmarks/*.md", "contrib/*/*.md", "plugin_dirs/*.md", "docs/**/*.md")
    for path in CHECKOUT.glob(pattern)
)
ROOMS = {room for floor in FLOORS["floor"] for room in floor["rooms"]}
FOLDERS = ("modular_tf", "tests", "scripts", "contrib", "benchmarks", "plugin_dirs")
INCLUDE = CHECKOUT / "modular_tf" / "include"  # C files name headers from here
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
_QUOTED = re.compile(r"`([^`\s]+/[^`\s]*)`")
_PLACEHOLDER = re.compile(r"[<*…]")

# What a reader types but no test can, because it is what runs the tests or installs the package;
# each with the file that does run it.
RUN_ELSEWHERE = {
    "git clone https://github.com/modular-tf/modular_tf": "pyproject.toml",
    'pip install "./modular_tf[fsspec,cli]"': "scripts/make_environment",
    "modular-tf fetch tensorflow-io": "scripts/try_pythons",
}


def text_of(name) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


README = text_of("README.md")


def test_links_lead_somewhere_in_a_checkout():
    missing = [
        f"{document}: {link}"
        for document in DOCUMENTS
        for link in _LINK.findall(text_of(document))
        if not ((CHECKOUT / document).parent / link).exists()
    ]

    assert missing == [], "\n".join(missing)
    assert {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"} <= {
        str(document) for document in DOCUMENTS
    }


def test_files_that_are_named_exist():
    """A quoted name that starts with a folder of the checkout, or of the package, is a file."""
    starts = [(CHECKOUT, FOLDERS), (CHECKOUT / "modular_tf", ROOMS)]
    missing = [
        f"{document}: {name}"
        for document in DOCUMENTS
        for name in _QUOTED.findall(text_of(document))
        if not _PLACEHOLDER.search(name)
        for base, tops in starts
        if name.partition("/")[0] in tops
        and not (base / name).exists()
        and not (INCLUDE / name).exists()
    ]

    assert missing == [], "\n".join(missing)


def test_the_architecture_draws_every_room():
    drawn = text_of("ARCHITECTURE.md")

    assert {room for room in ROOMS - {"__main__"} if not re.search(rf"\b{room}\b", drawn)} == set()


def test_the_readme_is_short_and_all_in_it_is_checked():
    commands = [
        line
        for block in blocks(README)
        if block.language == "sh"
        for line in block.text.split("\n")
    ]

    assert README.count("\n") <= 150
    # `scripts/try_pythons` runs programs with TensorFlow, which are `py`.
    assert {block.language for block in blocks(README)} == {"console", "py", "python", "sh", "text"}
    assert {line for line in commands if line} == RUN_ELSEWHERE.keys()
    assert all((CHECKOUT / name).exists() for name in RUN_ELSEWHERE.values())
    clone = next(line for line in commands if line.startswith("git clone "))
    assert f'Homepage = "{clone.split()[-1]}"' in text_of("pyproject.toml")
    for command in ("scripts/demo", "scripts/test"):
        assert f"`{command}`" in README
        assert f"\n{command}\n" in text_of(".ci/run")
        assert os.access(CHECKOUT / command, os.X_OK)
    for extra in re.search(r"pip install \"\S*\[(.*)\]\"", README)[1].split(","):
        assert re.search(rf"^{extra} = \[", text_of("pyproject.toml"), re.MULTILINE)


@pytest.mark.wild
@pytest.mark.emulator
def test_the_samples_of_the_readme_run_and_print_what_it_says(tmp_path, wild_plugins, s3_store):
    run_samples(README, tmp_path, wild_plugins, s3_store)
