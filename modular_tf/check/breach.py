"""What ends a check whatever it is about: the plugin touched memory that is not its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.damage import harm_at_loading, is_loading, note_harm_at_loading
from modular_tf.check.expectation import Deviation
from modular_tf.check.heap_watch import Depth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.heap_watch import HeapWatch

MEMORY_RULES: Mapping[str, str] = {"filesystem": "FS-329", "device": "SE-329", "kernel": "KN-103"}
"""The rule of each kind that a plugin writes only where it may, and frees each block once."""

READ_BUFFER_RULE = "FS-163"
"""The rule on the buffer of `read`."""


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


def raise_breach(breach: Breach) -> None:
    """Raise a breach, or keep it for the check that is about it while the plugin is loaded.

    Raises:
        Breach: This one.
    """
    if not is_loading():
        raise breach
    note_harm_at_loading(f"{breach.message}: {breach.found}")


def raise_harm_to_heap(heap: HeapWatch, call: str, rule_id: str, depth: Depth = Depth.LIVE) -> None:
    """Raise what happened to the heap since the last time.

    Args:
        heap: Sees it.
        call: The last call, as a report shows it.
        rule_id: The rule that is broken by it.
        depth: How closely to look.

    Raises:
        Breach: Something did.
    """
    found = heap.new_violation(depth)
    if found is not None:
        raise_breach(Breach(rule_id, f"misuse of the heap was seen after {call}", found=found))


def raise_harm_at_loading(rule_id: str) -> None:
    """Raise what was done to memory before the first check.

    Raises:
        Breach: Something was.
    """
    found = harm_at_loading()
    if found is not None:
        raise Breach(rule_id, "memory was misused while the plugin was loaded", found=found)
