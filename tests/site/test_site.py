"""The documentation site is built without a warning, and its generated pages list everything."""

import html
import inspect
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import modular_tf
from modular_tf.check.catalogue import all_checks, all_rules
from modular_tf.check.options import OPTIONS
from modular_tf.check.settings import KEYS as CHECK_KEYS
from modular_tf.cli.main import VERBS
from modular_tf.cli.process import Exit
from modular_tf.events.catalogue import EVENTS
from modular_tf.headers import include_directory
from modular_tf.service.configuration import KEYS, Config

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "modular_tf"
START_PAGES = ("data-engineers", "tensorflow-users", "plugin-authors", "runtime-builders")
_VARIABLE = re.compile(
    r'"((?:MODULAR_TF|TF|XDG|LD|GLIBC|NO|[AUT]+SAN)_[A-Z_]+|COLUMNS|HOME|(?:TEST_)?TMP(?:DIR)?)"'
)
# Literals of that shape that are no variables of the environment.
NO_VARIABLES = {
    "GLIBC_", "GLIBC_NEW_ENOUGH", "LD_TRACE_LOADED_OBJECTS", "MODULAR_TF_", "NO_WORKAROUNDS",
    "NO_HOME", "TF_", "TF_LIBRARY_PATH_VARIABLE",
}  # fmt: skip

pytestmark = pytest.mark.xdist_group("documentation site")  # it is built once


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, CHECKOUT / "scripts" / "build_docs", folder],
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    return folder


def text_of(page):
    """Return a page's text without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def codes_of(page):
    """Return what a page shows as code."""
    return set(map(html.unescape, re.findall(r"<code>([^<]+)</code>", page.read_text("utf-8"))))


def ids_of(page):
    return set(re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8")))


def test_every_kind_of_reader_has_a_start_page_and_links_lead_to_generated_ones(site):
    index = (site / "index.html").read_text(encoding="utf-8")
    page = (site / "how-to" / "find-plugins.html").read_text(encoding="utf-8")

    for name in START_PAGES:
        assert f'href="start/{name}.html"' in index
    assert 'href="../reference/configuration.html#scheme_pins"' in page


def test_no_page_loads_anything_from_another_host(site):
    loaded = [
        (page.name, found)
        for page in site.rglob("*.html")
        for found in re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8")
        )
        if "canonical" not in found
    ]

    assert loaded == []


def test_every_key_of_the_configuration_is_there_with_what_it_expects(site):
    text = text_of(site / "reference" / "configuration.html")

    assert {name.partition(".")[0] for name in KEYS} == {*Config.__dataclass_fields__} - {"path"}
    for key in KEYS.values():
        assert key.expected in text
    assert len(re.findall("default: ", text)) == len(KEYS)


def variables_of_the_code():
    named = {
        name
        for path in PACKAGE.rglob("*")
        if path.suffix in {".py", ".c", ".cc"}
        and "workarounds" not in path.parts  # variables of plugins, which the data page has
        for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))
    }
    assert {"MODULAR_TF_CONFIG", "MODULAR_TF_FROZEN", "TF_CPP_VMODULE"} <= named
    return named - NO_VARIABLES


def statements_of_the_source_documents():
    written = {
        found
        for path in (CHECKOUT / "docs" / "seeds").glob("*.toml")
        for found in re.findall(r'^id = "([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
    }
    assert written
    return {*written, f"{len(written)} statements: "}


def commands():
    return {
        f"modular-tf-{name}{'-' if verb.commands else ''}{member}"
        for name, verb in VERBS.items()
        for member in verb.commands or [""]
    }


def options_of_check():
    done = subprocess.run(
        [sys.executable, "-m", "modular_tf", "check", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"--[a-z-]+", done.stdout)) - {"--help"}


def headers():
    return {f"modular_tf/{header.name}" for header in Path(include_directory()).rglob("*.h")}


@pytest.mark.parametrize(
    ("page", "shown_as", "expected"),
    [
        ("configuration", ids_of, lambda: {*KEYS}),
        ("check-settings", ids_of, lambda: {*CHECK_KEYS, *(f"options.{name}" for name in OPTIONS)}),
        ("environment-variables", codes_of, variables_of_the_code),
        ("exit-statuses", codes_of, lambda: {str(int(status)) for status in Exit}),
        ("exit-statuses", text_of, lambda: {status.name for status in Exit}),
        ("events", codes_of, lambda: {event.name for event in EVENTS}),
        ("source-statements", text_of, statements_of_the_source_documents),
        ("commands", ids_of, commands),
        ("commands", text_of, options_of_check),
        ("headers", text_of, headers),
    ],
    ids=["keys", "settings of checks", "variables", "statuses", "names of statuses", "events",
         "statements", "commands", "options", "headers"],
)  # fmt: skip
def test_a_page_of_the_reference_has_everything(site, page, shown_as, expected):
    shown, names = shown_as(site / "reference" / f"{page}.html"), expected()

    assert names
    assert {name for name in names if name not in shown} == set()


def test_every_rule_is_in_the_index_and_on_the_page_that_it_links_to(site):
    index = site / "rules" / "index.html"
    links = dict(re.findall(r'<a href="([^"]+)">([A-Z]{2}-[0-9]{3})</a>', index.read_text("utf-8")))

    assert sorted(links.values()) == list(all_rules())
    for link, rule_id in links.items():
        page = (index.parent / link.partition("#")[0]).resolve()
        shown = text_by_heading(page)[rule_id.lower()].partition("If not: ")[0]
        assert link.endswith(f"#{rule_id.lower()}")
        assert letters_of(all_rules()[rule_id].requirement) in letters_of(shown), rule_id


@cache
def text_by_heading(page):
    """Return what stands below each heading of the third level, by the heading's id."""
    parts = re.split(r'<h3 id="([^"]+)"', page.read_text(encoding="utf-8"))
    texts = (" ".join(html.unescape(re.sub(r"<[^>]+>", "", part)).split()) for part in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


def letters_of(text):
    """Return a text without what Markdown and browsers do not show."""
    return re.sub(r"[\s`]", "", text)


def test_every_check_is_on_the_page_of_its_kind_with_what_it_needs(site):
    for check in all_checks().values():
        text = text_by_heading(site / "checks" / f"{check.kind}.html")[check.id.lower()]
        assert f"level {check.level:d}" in text
        assert all(slot in text for slot in (*check.needs, *check.traits))


@pytest.fixture(scope="module")
def api_entries():
    """Return the text below the heading of each name, on the pages about the Python API."""
    text = "".join(page.read_text("utf-8") for page in sorted((CHECKOUT / "docs/api").glob("*.md")))
    found = re.split(r"^## .* \{#(\w+)\}$", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_every_public_name_has_an_entry_and_an_example(api_entries):
    assert sorted(api_entries) == sorted(modular_tf.__all__)
    for name, entry in api_entries.items():
        assert f"::: modular_tf.{name}\n" in entry or name == "__version__"
        assert "```python\n" in entry, name


def test_docstrings_are_on_the_pages_of_public_names(site, api_entries):
    shown = " ".join(
        " ".join(text_of(page).split()) for page in sorted((site / "api").glob("*.html"))
    )
    for name in api_entries:
        value = getattr(modular_tf, name)
        if isinstance(value, type):
            first = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
            assert first.replace("`", "") in shown, name
