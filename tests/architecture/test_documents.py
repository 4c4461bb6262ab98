"""What the documents point to is there, and the README works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
HOW_TOS = [page for page in DOCUMENTS if page.parent.name == "how-to"]
ROOMS = {room for floor in FLOORS["floor"] for room in floor["rooms"]}
FOLDERS = ("modular_tf", "tests", "scripts", "contrib", "benchmarks", "plugin_dirs")
INCLUDE = CHECKOUT / "modular_tf" / "include"  # C files name headers from here
SCRIPTS = (
    *("demo", "test", "make_environment", "fetch_system_libraries", "test_matrices"),
    *("build_plugins", "try_sdist", "try_aarch64", "../.ci/run"),
)
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


@pytest.mark.parametrize("page", HOW_TOS, ids=str)
def test_a_how_to_begins_with_the_recipe_and_ends_with_the_contract(page):
    first, *sections = re.split(r"^## ", text_of(page), flags=re.MULTILINE)

    assert sections[-1].startswith("Contract")
    assert re.search(r"^```|^\| ", first + sections[0], re.MULTILINE)


def test_the_architecture_draws_every_room():
    drawn = text_of("ARCHITECTURE.md")

    assert {room for room in ROOMS - {"__main__"} if not re.search(rf"\b{room}\b", drawn)} == set()


def test_scripts_are_valid_shell():
    for script in SCRIPTS:
        command = ["bash", "-n", CHECKOUT / "scripts" / script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (script, done.stderr)


def test_the_demo_shows_its_story(wild_plugins, tmp_path):
    """The story of scripts/demo, with the interpreter and the plugin of the tests."""
    command = [sys.executable, CHECKOUT / "scripts" / "demo_story.py", wild_plugins.io_library]
    done = subprocess.run(
        [*command, tmp_path / "world"], capture_output=True, text=True, check=False, timeout=200
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("1. No plugins", "s3 tensorflow_io_plugins", "Lima 5 12 60", "[LD-005]"):
        assert step in " ".join(done.stdout.split())


def test_hooks_before_a_commit_check_what_the_test_script_checks():
    steps = re.findall(r'^step "(style|layout|types)" (.*)$', text_of("scripts/test"), re.MULTILINE)

    assert len(steps) == 3
    assert re.findall(r"id: (\w+),.* entry: ([^,]+),", text_of(".pre-commit-config.yaml")) == steps


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
