"""Ids of checks in texts for authors: each exists, and is what the words beside it say."""

from __future__ import annotations

import re

from modular_tf.check.catalogue import all_checks
from modular_tf.rules import Severity

_ID = re.compile(r"\b(?:FS|SE|KN|LD)-\d{3}\b")


def ids_in(text):
    return {*_ID.findall(text)}


def assert_tells_what_it_means(known, text):
    """Demand of a sample that its known deviation is one, and that its comment is the rule.

    Args:
        known: As the kit reads it.
        text: The sample. The line with the id must end in a comment with the rule's requirement.
    """
    rule = all_checks()[known.check_id].rule
    (line,) = (each for each in text.splitlines() if f'check = "{known.check_id}"' in each)

    assert line.partition(f'"{known.check_id}"')[2].strip() == f"# {rule.requirement}"
    assert rule.severity is not Severity.NOTE, "nobody needs to know a note beforehand"
