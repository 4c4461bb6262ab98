"""What a plugin does to memory that is not its own, seen after each call of any check.

One process tries one plugin, so what is known of the damage is a fact of the process.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Deviation
from modular_tf.check.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MEMORY_RULES: Mapping[str, str] = {"filesystem": "FS-329", "device": "SE-329", "kernel": "KN-103"}
"""The rule of each kind that a plugin writes only where it may, and frees each block once."""

READ_BUFFER_RULE = "FS-163"
"""The rule on the buffer of `read`."""

_MOST_LOOKED_AT = 2048
"""Blocks of the heap: to look at all after each call must not take longer than the calls."""


class Breach(Deviation):
    """The plugin wrote where it must not, or freed what it must not.

    It is a failure of the check that saw it, however mild that one's own rule is: what comes after
    it in the same process cannot be trusted.

    Attributes:
        rule_id: The rule that it broke.
    """

    def __init__(self, rule_id: str, message: str, *, found: str = "") -> None:
        super().__init__(f"{message} (rule {rule_id})", found=found)
        self.rule_id = rule_id


class _Process:
    """What is known of this process."""

    is_damaged = False
    is_loading = False
    harm_at_loading: str | None = None
    reported = 0
    """How many violations of the heap were reported."""
    reporting = Lock()


def note_damage() -> None:
    """Note that memory is damaged: checks that are left need another process. [any thread]"""
    _Process.is_damaged = True


def is_damaged() -> bool:
    """Return whether memory is damaged."""
    return _Process.is_damaged


@contextmanager
def loading() -> Iterator[None]:
    """Load the plugin within the block. [one thread]

    Every process does, so every check would be blamed for what it does then: one is about that.
    """
    _Process.is_loading = True
    try:
        yield
    finally:
        _Process.is_loading = False


def raise_breach(breach: Breach) -> None:
    """Raise a breach, or store the first one for the check that is about it while loading."""
    if not _Process.is_loading:
        raise breach
    if _Process.harm_at_loading is None:
        _Process.harm_at_loading = f"{breach.message}: {breach.found}"


def raise_harm_at_loading(rule_id: str) -> None:
    """Raise a `Breach` where something was done to memory before the first check."""
    found = _Process.harm_at_loading
    if found is not None:
        raise Breach(rule_id, "memory was misused while the plugin was loaded", found=found)


class Depth(Enum):
    """How closely the heap is looked at."""

    RECORDED = "recorded"
    """Only what the allocator has recorded already."""
    LIVE = "live"
    """The blocks that the plugin has now, where they are not too many."""
    ALL = "all"
    """All of them, and memory that was freed."""


def watched(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the plugin; what it allocates is counted as its own. [any thread]"""
    allocator = checking_allocator()
    if allocator is None:
        return function(*arguments)
    allocator.enter()
    try:
        return function(*arguments)
    finally:
        allocator.leave()


def new_violation(depth: Depth = Depth.LIVE) -> str | None:
    """Return a sentence on misuse of the heap since the last time, None for none. [any thread]"""
    allocator = checking_allocator()
    if allocator is None:
        return None
    if depth is Depth.ALL:
        count = allocator.inspect(deep=True)
    else:
        use = allocator.use()
        looks = depth is Depth.LIVE and use.live_blocks <= _MOST_LOOKED_AT
        count = allocator.inspect() if looks else use.violations
    with _Process.reporting:  # each violation is one thread's to report
        first = _Process.reported
        if count <= first:
            return None
        _Process.reported = count
    sentences = (allocator.violation(index) for index in range(first, count))
    return "; ".join(text for text in sentences if text is not None) or "the heap was misused"


def raise_harm_to_heap(call: str, rule_id: str, depth: Depth = Depth.LIVE) -> None:
    """Raise a `Breach` of a rule where something happened to the heap up to a call."""
    found = new_violation(depth)
    if found is not None:
        raise_breach(Breach(rule_id, f"misuse of the heap was seen after {call}", found=found))
