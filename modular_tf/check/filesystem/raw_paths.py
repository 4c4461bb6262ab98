"""How a URI becomes what a plugin's slot is given: by its own `translate_name`, or the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.check.answers import Answer
from modular_tf.check.call_journal import shown
from modular_tf.check.expectation import Blocked
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_filesystem import as_address
from modular_tf.filesystem.uri import clean_path, parse_uri
from modular_tf.native.strings import decode, encode, read_bytes

if TYPE_CHECKING:
    from modular_tf.check.filesystem.raw_call import RawCaller


class RawPaths:
    """The part of a raw filesystem that calls slots on paths. [any thread]

    Args:
        caller: Calls the slots.
        filesystem: The `TF_Filesystem`.
    """

    def __init__(self, caller: RawCaller, filesystem: GuardedMemory) -> None:
        self._caller = caller
        self._filesystem = filesystem

    def translate_name(self, uri: str) -> Answer:
        """Call it; value: the name, None where it returned NULL.

        Raises:
            Unsupported: The slot is NULL.
        """
        name = self._translate(uri, quietly=True)
        call = f"translate_name({shown(uri)})"
        self._caller.journal.leave(call, shown(name))
        return Answer(0, value=name, returned=name, call=call)

    def _on_path(self, slot: str, uri: str, *outputs: GuardedMemory, more: str = "") -> Answer:
        """Call a slot that takes the filesystem, a path, outputs and a status."""
        self._caller.function(slot)
        name = self._lend_name(uri)
        return self._caller.ask(
            slot,
            f"{shown(uri)}{more}",
            self._filesystem.pointer,
            name.pointer,
            *(output.pointer for output in outputs),
            lent=(self._filesystem, *outputs),
            constant=(name,),
        )

    def _lend_name(self, uri: str) -> GuardedMemory:
        """Return the translated name as the plugin is given it.

        Raises:
            Blocked: `translate_name` returned NULL.
        """
        if not self._caller.slots.has("translate_name"):
            return GuardedMemory.string(encode(default_name(uri)))
        name = self._translate(uri, quietly=True)
        if name is None:
            raise Blocked(f"translate_name({shown(uri)}) returned NULL")
        return GuardedMemory.string(encode(name))

    def _translate(self, uri: str, *, quietly: bool) -> str | None:
        given = GuardedMemory.string(encode(uri))
        pointer: Any = self._caller.ask_plainly(
            "translate_name",
            shown(uri),
            self._filesystem.pointer,
            given.pointer,
            constant=(given,),
            quietly=quietly,
        )
        return self._take_string(as_address(pointer))

    def _take_string(self, address: int) -> str | None:
        """Copy a string that the plugin returned and give it back; None for NULL."""
        raw = read_bytes(address)
        self._caller.free(address)
        return None if raw is None else decode(raw)


def default_name(uri: str) -> str:
    """Return what TensorFlow gives to a plugin that has no `translate_name`."""
    if not uri:
        return ""
    path = parse_uri(uri).path
    return clean_path(path) if path else "/"
