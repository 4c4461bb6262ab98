"""Transactions and configuration of a raw filesystem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.call_journal import shown
from modular_tf.check.expectation import Deviation
from modular_tf.check.filesystem.raw_paths import RawPaths
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_filesystem import (
    as_address,
    as_pointer,
    option_at,
    option_blocks,
    scribble_over,
)
from modular_tf.errors import InternalError
from modular_tf.filesystem.configuration import OptionsForC, option_from_c

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.filesystem.configuration import Option


class RawSettings(RawPaths):
    """The part of a raw filesystem that hardly any plugin has. [any thread]

    A token is the address of a plugin's `TF_TransactionToken`, which belongs to the plugin.
    """

    # -- transactions: returned is the int, -1 for a failure ------------------------------------

    def start_transaction(self) -> Answer:
        """Call it; value: the token, 0 where none was left."""
        token = GuardedMemory(8)
        answer = self._caller.ask(
            "start_transaction",
            "&token",
            self._filesystem.pointer,
            token.pointer,
            lent=(self._filesystem, token),
        )
        return replace(answer, value=token.word())

    def end_transaction(self, token: int) -> Answer:
        """Call the slot `end_transaction`, and return its answer."""
        return self._caller.ask(
            "end_transaction",
            f"token {token:#x}",
            self._filesystem.pointer,
            as_pointer(token),
            lent=(self._filesystem,),
        )

    def add_to_transaction(self, uri: str, token: int) -> Answer:
        """Call the slot `add_to_transaction`, and return its answer."""
        self._caller.function("add_to_transaction")
        name = self._lend_name(uri)
        return self._caller.ask(
            "add_to_transaction",
            f"{shown(uri)}, token {token:#x}",
            self._filesystem.pointer,
            name.pointer,
            as_pointer(token),
            lent=(self._filesystem,),
            constant=(name,),
        )

    def get_transaction_for_path(self, uri: str) -> Answer:
        """Call it; value: the token, 0 where none was left."""
        return self._token_for_path("get_transaction_for_path", uri)

    def get_or_start_transaction_for_path(self, uri: str) -> Answer:
        """Call it; value: the token, 0 where none was left."""
        return self._token_for_path("get_or_start_transaction_for_path", uri)

    def _token_for_path(self, slot: str, uri: str) -> Answer:
        token = GuardedMemory(8)
        return replace(self._on_path(slot, uri, token, more=", &token"), value=token.word())

    def decode_transaction_token(self, token: int) -> str | None:
        """Call it; None where it returned NULL."""
        pointer = self._caller.ask_plainly(
            "decode_transaction_token",
            f"token {token:#x}",
            self._filesystem.pointer,
            as_pointer(token),
        )
        return self._take_string(as_address(pointer))

    # -- configuration --------------------------------------------------------------------------

    def get_filesystem_configuration(self) -> Answer:
        """Call it; value: a list of `Option`. Returned: the count that was written.

        Raises:
            Deviation: An option is malformed.
        """
        array, count = GuardedMemory(8), GuardedMemory(4)
        answer = self._caller.ask(
            "get_filesystem_configuration",
            "&options, &num_options",
            self._filesystem.pointer,
            array.pointer,
            count.pointer,
            lent=(self._filesystem, array, count),
        )
        number = int.from_bytes(count.raw(), "little", signed=True)
        there = number if answer.ok and array.word() else 0
        options = self._take_options(array.word(), max(there, 0)) if answer.ok else []
        return replace(answer, value=options, returned=number)

    def get_filesystem_configuration_option(self, key: str) -> Answer:
        """Call it; value: an `Option`, None where none was left."""
        option, given = GuardedMemory(8), GuardedMemory.string(key.encode())
        answer = self._caller.ask(
            "get_filesystem_configuration_option",
            f"{shown(key)}, &option",
            self._filesystem.pointer,
            given.pointer,
            option.pointer,
            lent=(self._filesystem, option),
            constant=(given,),
        )
        if not answer.ok or not option.word():
            return answer
        return replace(answer, value=self._take_options(option.word(), 1)[0])

    def set_filesystem_configuration(self, options: Sequence[Option]) -> Answer:
        """Call it; all that was given is overwritten afterwards (the plugin keeps copies)."""
        given = OptionsForC(options)
        answer = self._caller.ask(
            "set_filesystem_configuration",
            f"{shown([option.name for option in options])}, {given.count}",
            self._filesystem.pointer,
            given.array,
            given.count,
            lent=(self._filesystem,),
        )
        scribble_over(given.array, given.count)
        return answer

    def set_filesystem_configuration_option(self, option: Option) -> Answer:
        """Call it; all that was given is overwritten afterwards."""
        given = OptionsForC([option])
        answer = self._caller.ask(
            "set_filesystem_configuration_option",
            shown(option.name),
            self._filesystem.pointer,
            given.array,
            lent=(self._filesystem,),
        )
        scribble_over(given.array, given.count)
        return answer

    def _take_options(self, address: int, count: int) -> list[Option]:
        """Copy options that the plugin returned, and give all their blocks back."""
        try:
            options = [option_from_c(option_at(address, i), "") for i in range(count)]
        except InternalError as error:
            raise Deviation(
                "an option that the plugin returned is malformed", found=error.message
            ) from None
        for block in option_blocks(address, count):
            self._caller.free(block)
        return options
