"""The tables of what the source documents say are well formed, and name code and tests."""

import re
import sys
from functools import cache
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKOUT = Path(__file__).parents[2]
TABLES = sorted((CHECKOUT / "docs" / "seeds").glob("*.toml"))
KEYS = {"id", "section", "statement", "verdict", "code", "tests", "reason"}
EACH_TABLE = pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)


def load(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def text_of(path):
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def faults_of(row):
    """Yield what is wrong with a row."""
    verdict = row["verdict"]
    if not row.keys() <= KEYS or not row["section"] or not row["statement"]:
        yield f"keys {sorted(row)}"
    if verdict not in {"kept", "changed", "refused"} or (verdict == "kept") == ("reason" in row):
        yield f"verdict {verdict!r}, reason {row.get('reason')!r}"
    if verdict != "refused" and not (row.get("code") and row.get("tests")):
        yield "no code or no tests"
    for reference in row.get("code", ()):
        path, _, symbol = reference.partition(":")
        if any(not is_named(part, path) for part in re.split(r"::|\.", symbol)):
            yield reference
    for reference in row.get("tests", ()):
        path, _, name = reference.partition("[")[0].partition("::")
        defined = rf"^( *def {name.rpartition('::')[2]}\(|{name} = )"
        if not re.search(defined, text_of(CHECKOUT / path), re.MULTILINE):
            yield reference


def is_named(word, path):
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text_of(CHECKOUT / path)) is not None


@EACH_TABLE
def test_each_row_says_what_became_of_a_statement_and_names_code_and_tests_that_are_there(path):
    rows = load(path)["statement"]
    ids = [row["id"] for row in rows]

    assert {row["id"]: found for row in rows if (found := list(faults_of(row)))} == {}
    assert [name for name in ids if not re.fullmatch(rf"{path.stem}-\d{{3}}", name)] == []
    assert ids == sorted(set(ids))


def test_every_document_has_a_table_in_which_no_statement_stands_twice():
    tables = {path.stem: load(path) for path in TABLES}
    stated = [
        (name, row["section"], row["statement"])
        for name, table in tables.items()
        for row in table["statement"]
    ]

    assert tables.keys() == {"000", "001", "002", "003"}
    assert all(isinstance(table["title"], str) for table in tables.values())
    assert len(stated) == len(set(stated)) >= 350
