"""The tables of what the source documents say are well formed, and true of code and tests."""

import re
import sys
from pathlib import Path

import pytest

from tests.site.defined_names import defined_names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKOUT = Path(__file__).parents[2]
TABLES = sorted((CHECKOUT / "docs" / "seeds").glob("*.toml"))
REQUIRED = {"id", "section", "statement", "verdict"}
KEYS = REQUIRED | {"code", "tests", "reason"}
VERDICTS = {"kept", "changed", "refused"}


def load(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


def references(row, key):
    for reference in row.get(key, ()):
        path, _, name = reference.partition("::" if key == "tests" else ":")
        yield reference, CHECKOUT / path, name


def faults_of(row):
    """Yield what is wrong with the form of a row."""
    if not REQUIRED <= row.keys() <= KEYS:
        yield f"keys {sorted(row)}"
    for key, value in row.items():
        is_list = key in {"code", "tests"}
        if is_list and not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            yield f"{key} is no list of texts"
        if not is_list and not (isinstance(value, str) and value.strip() == value != ""):
            yield f"{key} is no text"
    if row.get("verdict") not in VERDICTS:
        yield f"verdict {row.get('verdict')!r}"
    if row.get("verdict") != "kept" and not row.get("reason"):
        yield "no reason"
    if row.get("verdict") == "kept" and "reason" in row:
        yield "a reason for what is kept"
    if row.get("verdict") != "refused" and not (row.get("code") and row.get("tests")):
        yield "no code or no tests"


# ---- What the tests below rely on ----

_GOOD = {
    "id": "000-001",
    "section": "s",
    "statement": "It is.",
    "verdict": "kept",
    "code": ["a.py:b"],
    "tests": ["t.py::test_b"],
}


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "perhaps"},
        {"verdict": "changed"},
        {"verdict": "refused"},
        {"code": []},
        {"tests": []},
        {"code": "a.py:b"},
        {"statement": ""},
        {"statement": " It is."},
        {"section": 1},
        {"reason": "none"},
        {"other": "x"},
    ],
)
def test_a_fault_of_a_row_is_found(change):
    assert list(faults_of(_GOOD)) == []
    assert list(faults_of({**_GOOD, "verdict": "refused", "reason": "r", "code": []})) == []
    assert list(faults_of({**_GOOD, **change}))


@pytest.mark.parametrize(
    ("name", "text", "defined", "used"),
    [
        (
            "a.py",
            "from x import y\nA = ('entry',)\ndef d(self): self.e = f(A, g.h, 'text')\n",
            "A d e entry self",
            "f g h text y",
        ),
        ("b.py", "class B:\n    c: int\n    def d(self): ...\n", "B B.c B.d c d", "int"),
        (
            "a.h",
            "#define A 1\ntypedef struct B {\n  int c; /* gone */\n  void (*d)(int);\n} E;\n",
            "A B E c d",
            "gone",
        ),
        ("b.h", "enum F {\n  G = 0,\n  H,\n};\nint i(int j);\n", "F G H i", "enum"),
        (
            "a.cc",
            "int A::b(int c) {\n  return d(c);\n  if (e(c)) f = g(h.i);\n}\nT j = {.k = l};\n",
            "b j k",
            "d e g i l",
        ),
        ("a.toml", "a = 1\n[[b]]\nid = 'c'\n", "a b c id", "d"),
    ],
)
def test_definitions_are_told_from_uses(name, text, defined, used, tmp_path):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    assert set(defined.split()) - defined_names(path) == set()
    assert set(used.split()) & defined_names(path) == set()


# ---- The tables ----


def test_each_table_has_a_title_and_statements():
    assert TABLES
    for path in TABLES:
        table = load(path)
        assert table.keys() == {"title", "statement"}, path
        assert isinstance(table["title"], str), path
        assert table["statement"], path


EACH_TABLE = pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)


@EACH_TABLE
def test_each_row_is_well_formed_and_ids_rise_and_begin_with_the_name_of_the_table(path):
    rows = load(path)["statement"]
    ids = [row["id"] for row in rows]

    assert {row["id"]: list(faults_of(row)) for row in rows if [*faults_of(row)]} == {}
    assert [name for name in ids if not re.fullmatch(rf"{path.stem}-\d{{3}}", name)] == []
    assert ids == sorted(set(ids))


def test_every_document_has_a_table_with_its_statements():
    counted = {path.stem: len(load(path)["statement"]) for path in TABLES}

    assert counted.keys() == {"000", "001", "002", "003"}
    assert sum(counted.values()) >= 350


def test_no_statement_stands_twice_in_its_section():
    seen = [
        (path.stem, row["section"], row["statement"])
        for path in TABLES
        for row in load(path)["statement"]
    ]

    assert sorted(row for row in set(seen) if seen.count(row) > 1) == []


@EACH_TABLE
def test_the_code_and_the_tests_that_are_named_are_there(path):
    rows = load(path)["statement"]
    missing = [
        f"{row['id']}: {reference}"
        for row in rows
        for reference, file, symbol in references(row, "code")
        if not file.is_file() or symbol.rpartition("::")[2] not in defined_names(file)
    ]
    missing += [
        f"{row['id']}: {reference}"
        for row in rows
        for reference, file, name in references(row, "tests")
        if not file.is_file()
        or not name.rpartition("::")[2].startswith("test_")
        or name.partition("[")[0].replace("::", ".") not in defined_names(file)
    ]

    assert missing == []
