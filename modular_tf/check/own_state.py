"""What a service of a check keeps: nothing of the user's, and nothing for later."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATE = ("XDG_STATE_HOME", "XDG_CACHE_HOME")


@contextmanager
def nothing_remembered(scratch: str) -> Iterator[None]:
    """Have services within the block keep what they keep in a directory of this process.

    A process of checks may end at any call, and its mark would have the plugin in quarantine.

    Args:
        scratch: The directory; empty for none, and then the user's own counts.
    """
    before = {name: os.environ.get(name) for name in _STATE}
    os.environ.update({name: os.path.join(scratch, name) for name in _STATE} if scratch else {})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
