"""The page on what the documents say that this package is built after, and where it is kept."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from site_pages.documents import CHECKOUT
from site_pages.markdown import code, plain, table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

    Statement = dict[str, Any]

_VERDICTS = ("kept", "changed", "refused")
_HEAD = """\
# Statements of the source documents

The package is built after published documents of TensorFlow and DLPack. Each table has what one of
them demands or promises, in our words, the code that keeps it and a test that shows it. What is
*changed* or *refused* has a reason. A test compares the tables with the code.
"""


def page() -> str:
    """Return the page with every statement."""
    documents = [
        tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted((CHECKOUT / "docs" / "seeds").glob("*.toml"))
    ]
    statements = [statement for document in documents for statement in document["statement"]]
    tables = [
        f"## {document['title']}\n\n{_counts(document['statement'])}\n{_table(document)}"
        for document in documents
    ]
    return "\n".join([_HEAD, f"Of all documents: {_counts(statements)}", *tables])


def _counts(statements: list[Statement]) -> str:
    found = Counter(statement["verdict"] for statement in statements)
    counts = ", ".join(f"{found[verdict]} {verdict}" for verdict in _VERDICTS)
    return f"{len(statements)} statements: {counts}.\n"


def _table(document: dict[str, Any]) -> str:
    rows = [
        (
            row["id"],
            plain(row["section"]),
            "<br>".join(_texts(row)),
            _names(row, "code"),
            _names(row, "tests"),
        )
        for row in document["statement"]
    ]
    return table(("id", "where", "statement", "code", "tests"), rows)


def _texts(row: Statement) -> Iterator[str]:
    yield plain(row["statement"])
    if row["verdict"] != "kept":
        yield f"*{row['verdict']}*: {plain(row['reason'])}"


def _names(row: Statement, key: str) -> str:
    return "<br>".join(map(code, row.get(key, ())))
