"""Transactions: part of the C interface, offered by no plugin that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem


class Transaction:
    """A plugin's transaction token, which only its own filesystem understands.

    The token belongs to the plugin and ends with `end_transaction`, or with the worker process
    in which that runs.

    Attributes:
        filesystem: Where it came from.
    """

    __slots__ = ("filesystem", "token")

    def __init__(self, filesystem: Filesystem, token: Any) -> None:
        self.filesystem = filesystem
        self.token = token
