"""Rules of caches and transactions."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "filesystem.h"
_TOKEN = "Keep open transactions in a table, by token and by path."  # noqa: S105  (a sentence)

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-301",
        "flush_caches loses nothing, and can be called at any time.",
        "Files that were written are not there, or an old version of them is.",
        "Drop only what can be fetched again; write the rest out first.",
        _HEADER,
    ),
    Rule(
        "FS-302",
        "start_transaction gives a token, or says why not.",
        "There is nothing to add files to.",
        "Set *token on success; return -1 and a status otherwise.",
        _HEADER,
    ),
    Rule(
        "FS-303",
        "A path that was added to a transaction leads back to that transaction.",
        "Files of one transaction are written outside it.",
        _TOKEN,
        _HEADER,
    ),
    Rule(
        "FS-304",
        "A path that is in no transaction has none: NOT_FOUND.",
        "Files are written into transactions of others.",
        _TOKEN,
        _HEADER,
    ),
    Rule(
        "FS-305",
        "get_or_start_transaction_for_path gives one transaction per path.",
        "Parts of a file are in different transactions.",
        _TOKEN,
        _HEADER,
    ),
    Rule(
        "FS-306",
        "A transaction ends once; a second end, or that of an unknown one, is NOT_FOUND.",
        "What was committed is committed again, or memory is freed twice.",
        _TOKEN,
        _HEADER,
    ),
    Rule(
        "FS-307",
        "decode_transaction_token gives a string of plugin_memory_allocate.",
        "Logging a transaction crashes.",
        "Return a copy; never NULL, never a literal.",
        _HEADER,
    ),
    Rule(
        "FS-308",
        "Operations on transactions return -1 if and only if their status is not OK.",
        "Callers look at one or at the other.",
        "Return 0 with OK, and -1 with every other code.",
        _HEADER,
    ),
)
