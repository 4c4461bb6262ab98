"""What the documents point to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.test_floors import FLOORS

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(CHECKOUT)
    for pattern in ("*.md", "benchmarks/*.md", "contrib/*/*.md", "plugin_dirs/*.md")
    for path in CHECKOUT.glob(pattern)
)
# In the site, links to sources lead to the pages that are made of these; tests/site checks that.
PAGES = sorted(path.relative_to(CHECKOUT) for path in CHECKOUT.glob("docs/**/*.md"))
HOW_TOS = [page for page in PAGES if page.parent.name == "how-to"]
FOLDERS = ("modular_tf", "tests", "scripts", "contrib", "benchmarks", "plugin_dirs")
INCLUDE = CHECKOUT / "modular_tf" / "include"  # C files name headers from here
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
_QUOTED = re.compile(r"`([^`\s]+)`")
_PLACEHOLDER = re.compile(r"[<*…]")


def text_of(document: Path) -> str:
    return (CHECKOUT / document).read_text(encoding="utf-8")


def test_the_documents_are_there():
    assert {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"} <= {
        str(document) for document in DOCUMENTS
    }


@pytest.mark.parametrize("document", [*DOCUMENTS, *PAGES], ids=str)
def test_links_lead_somewhere_in_a_checkout(document):
    folder = (CHECKOUT / document).parent
    missing = [link for link in _LINK.findall(text_of(document)) if not (folder / link).exists()]

    assert missing == []


@pytest.mark.parametrize("document", [*DOCUMENTS, *PAGES], ids=str)
def test_files_that_are_named_exist(document):
    """A quoted name that starts with a folder of the checkout, or of the package, is a file."""
    named = [
        name.rstrip("/")
        for name in _QUOTED.findall(text_of(document))
        if "/" in name and not _PLACEHOLDER.search(name)
    ]
    rooms = {room for floor in FLOORS["floor"] for room in floor["rooms"]}
    starts = [(CHECKOUT, FOLDERS), (CHECKOUT / "modular_tf", rooms)]
    missing = [
        name
        for name in named
        for base, tops in starts
        if name.partition("/")[0] in tops
        and not (base / name).exists()
        and not (INCLUDE / name).exists()
    ]

    assert missing == []


@pytest.mark.parametrize("page", HOW_TOS, ids=str)
def test_a_how_to_begins_with_the_recipe_and_ends_with_the_contract(page):
    first, *sections = re.split(r"^## ", text_of(page), flags=re.MULTILINE)

    assert sections[-1].startswith("Contract")
    assert re.search(r"^```|^\| ", first + sections[0], re.MULTILINE)


def test_the_architecture_draws_every_room():
    drawn = text_of(Path("ARCHITECTURE.md"))
    rooms = {room for floor in FLOORS["floor"] for room in floor["rooms"]} - {"__main__"}

    assert {room for room in rooms if not re.search(rf"\b{room}\b", drawn)} == set()


@pytest.mark.parametrize("script", ["scripts/demo", "scripts/test", "scripts/make_environment",
                                    "scripts/test_matrices",
                                    "scripts/build_plugins", "scripts/try_sdist",
                                    "scripts/try_aarch64", ".ci/run"])  # fmt: skip
def test_scripts_are_valid_shell(script):
    done = subprocess.run(
        ["bash", "-n", CHECKOUT / script], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_the_demo_tells_its_story(wild_plugins, tmp_path):
    """The story of scripts/demo, with the interpreter and the plugin of the tests."""
    command = [sys.executable, CHECKOUT / "scripts" / "demo_story.py", wild_plugins.io_library]
    done = subprocess.run(
        [*command, tmp_path / "world"], capture_output=True, text=True, check=False, timeout=200
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("1. No plugins", "s3 tensorflow_io_plugins", "Lima 5 12 60", "[LD-005]"):
        assert step in " ".join(done.stdout.split())


def test_hooks_before_a_commit_check_what_the_test_script_checks():
    hooks = (CHECKOUT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    script = (CHECKOUT / "scripts" / "test").read_text(encoding="utf-8")
    steps = re.findall(r'^step "(style|layout|types)" (.*)$', script, re.MULTILINE)

    assert len(steps) == 3
    assert re.findall(r"id: (\w+),.* entry: ([^,]+),", hooks) == steps
