"""The header's grammar of glob patterns, for one level: the reference, written to be read.

It shares nothing with the host's own matcher, which it is to judge.
"""

from __future__ import annotations


def level_matches(pattern: str, name: str) -> bool:
    r"""Return whether a whole name matches.

    `*` any letters, `?` one letter, `[abc]`, `[a-c]`, `[^abc]` one of a set or none of it, `\` the
    letter behind it. A `[` that nothing ends matches nothing.

    Args:
        pattern: Without slashes.
        name: Likewise.
    """
    if not pattern:
        return not name
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        return any(level_matches(rest, name[skipped:]) for skipped in range(len(name) + 1))
    if not name:
        return False
    if head == "[":
        members, end, rest = _cut_set(rest)
        fits = bool(end) and _set_holds(members, name[0])
    elif head == "\\" and rest:
        fits, rest = rest[0] == name[0], rest[1:]
    else:
        fits = head in {"?", name[0]}
    return fits and level_matches(rest, name[1:])


def _cut_set(text: str) -> tuple[str, str, str]:
    """Return a set's members, its `]` ("" where none ends it), and what follows."""
    # The first letter belongs to the set even if it is a bracket.
    first = 2 if text[:1] in {"^", "!"} else 1
    members, end, rest = text[first:].partition("]")
    return text[:first] + members, end, rest


def _set_holds(members: str, letter: str) -> bool:
    negated = members[:1] in {"^", "!"}
    waiting = members[1:] if negated else members
    held = False
    while waiting:
        if waiting[1:2] == "-" and len(waiting) > 2:  # noqa: PLR2004  (a, -, z)
            held |= waiting[0] <= letter <= waiting[2]
            waiting = waiting[3:]
        else:
            held |= waiting[0] == letter
            waiting = waiting[1:]
    return held != negated
