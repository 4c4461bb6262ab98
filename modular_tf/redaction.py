"""Secrets, which no message and no log may show: those in URIs, and those that were given to us.

Some stores take keys within the URI: as parameters after control characters, as the password of a
user or in the user's place, or in a query that signs it. What an environment of its own was given
for a plugin is hidden wherever it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

HIDDEN = "***"

# What the name of a variable or of an option says of its value. Compiled at its first use.
_NAMES_SECRET = (
    r"(?i)KEY|SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|SAS|SIGNATURE"  # noqa: S105
    r"|CONNECTION_STRING|AUTHORIZATION|COOKIE|(?<![A-Z])AUTH(?![A-Z])"
)

# A control character, as it is or as `repr` writes it.
_SEPARATOR = r"(?:[\x01-\x08]|\\x0[1-8])"
_PATTERNS = (  # compiled at their first use: most texts have no URI
    # Parameters of the host: all are hidden but the address of the server.
    rf"(?P<kept>{_SEPARATOR}(?!host=)\w+=)(?:(?!{_SEPARATOR})[^/\s'\"])+",
    # Up to the last @ before the path: a password may have others.
    r"(?P<kept>://[^\s/:@?#'\"]*:)[^\s/'\"]+(?=@)",
    # A token in place of a user; what is short, or has no digit, is a name.
    r"(?P<kept>://)(?=[^\s/:@?#'\"]*\d)[^\s/:@?#'\"]{20,}(?=@)",
    (
        r"(?i)(?P<kept>[?&](?:sig|[\w-]*(?:signature|token|secret|password|credential|key))=)"
        r"[^&#\s'\"]+"
    ),
)


_SHORTEST = 4  # a shorter value stands in too many texts
_given: dict[object, tuple[re.Pattern[str], ...]] = {}


def hide(owner: object, secrets: Iterable[str]) -> None:
    """Show none of these values in any text until `show_again`. [any thread]

    Args:
        owner: Names them, hashable.
        secrets: The values; those of less than 4 characters are ignored.
    """
    texts = {text for s in secrets if len(s) >= _SHORTEST for text in (s, repr(s)[1:-1])}
    long_enough = sorted(texts, key=len, reverse=True)
    _given[owner] = tuple(
        re.compile(rf"(?<![A-Za-z0-9]){re.escape(s)}(?![A-Za-z0-9])") for s in long_enough
    )


def show_again(owner: object) -> None:
    """Forget what `hide` was given under this name. [any thread]"""
    _given.pop(owner, None)


def names_secret(name: str) -> bool:
    """Return whether a variable or an option of this name holds a secret. [any thread]"""
    return re.search(_NAMES_SECRET, name) is not None


def redacted(text: str) -> str:
    """Return a text that shows no secret of a URI, and none that was given to us. [any thread]"""
    for patterns in tuple(_given.values()):
        for pattern in patterns:
            text = pattern.sub(HIDDEN, text)
    if "://" not in text and "\\x0" not in text and text.isprintable():
        return text  # no URI, and no parameters of a host, which plugins show without their scheme
    for uri_pattern in _PATTERNS:
        text = re.sub(uri_pattern, rf"\g<kept>{HIDDEN}", text)
    return text


def without_secrets(error: BaseException | None) -> BaseException | None:
    """Return an error as the cause of another; None if its traceback would show a secret.

    Errors of this package show none; those of clients may show their options. [any thread]
    """
    seen: set[int] = set()
    unread = [error]
    while unread:
        one = unread.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            text = _text_of(one)
            if redacted(text) != text:
                return None
            unread += [one.__cause__, one.__context__]
    return error


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (of a stranger's class; a traceback does the same)
        return ""
