"""Transactions and configuration of a C plugin's filesystem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import InvalidArgumentError
from modular_tf.filesystem.configuration import Option, OptionsForC, option_from_c
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.transactions import Transaction
from modular_tf.filesystem.worker_limits import with_limits
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import failure_unless, take_error
from modular_tf.native.strings import decode_pointer, encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.errors import ModularTFError
    from modular_tf.loading.filesystem_tables import FilesystemTables


class PluginSettings(Filesystem):
    """The transactions and options of a plugin's filesystem; few plugins have any. [any thread]"""

    _handle: Any
    tables: FilesystemTables

    def __init__(self, scheme: str, plugin: str) -> None:
        super().__init__(scheme, plugin)
        self._setting = ForkLock()  # what is kept is what the plugin was told last

    def _failed(self, error: Any, operation: str, path: str | None = None) -> ModularTFError:
        failure = take_error(error, plugin=self.plugin, path=path, operation=operation)
        return with_limits(failure, self.tables)

    def _failure_unless(
        self, expected: int, error: Any, operation: str, path: str | None = None
    ) -> ModularTFError | None:
        failure = failure_unless(
            error, expected, plugin=self.plugin, path=path, operation=operation
        )
        return None if failure is None else with_limits(failure, self.tables)

    def _check(self, error: Any, operation: str, path: str | None = None) -> None:
        if error:
            raise self._failed(error, operation, path)

    def _is_implemented(self, error: Any, operation: str) -> bool:
        """Return whether the plugin has the operation; raise any other failure."""
        if not error:
            return True
        if failure := self._failure_unless(Code.UNIMPLEMENTED, error, operation):
            raise failure
        return False

    # -- transactions -------------------------------------------------------------------------

    def start_transaction(self) -> Transaction:
        """Start a transaction."""
        token = ffi.new("void **")
        self._check(lib.mtf_start_transaction(self._handle, token), "start_transaction")
        return Transaction(self, token[0])

    def end_transaction(self, transaction: Transaction) -> None:
        """End a transaction."""
        token, transaction.token = self._token(transaction), None
        self._check(lib.mtf_end_transaction(self._handle, token), "end_transaction")

    def add_to_transaction(self, uri: str, transaction: Transaction) -> None:
        """Add a path to a transaction."""
        token = self._token(transaction)
        error = lib.mtf_add_to_transaction(self._handle, encode(uri), token)
        self._check(error, "add_to_transaction", uri)

    def get_transaction_for_path(self, uri: str) -> Transaction:
        """Return the transaction that a path is part of."""
        token = ffi.new("void **")
        error = lib.mtf_get_transaction_for_path(self._handle, encode(uri), token)
        self._check(error, "get_transaction_for_path", uri)
        return Transaction(self, token[0])

    def get_or_start_transaction_for_path(self, uri: str) -> Transaction:
        """Return the transaction that a path is part of, a new one where there is none."""
        token = ffi.new("void **")
        error = lib.mtf_get_or_start_transaction_for_path(self._handle, encode(uri), token)
        self._check(error, "get_or_start_transaction_for_path", uri)
        return Transaction(self, token[0])

    def decode_transaction_token(self, transaction: Transaction) -> str:
        """Return a description of a transaction; by default its token and its owner."""
        token, text = self._token(transaction), ffi.new("char **")
        error = lib.mtf_decode_transaction_token(self._handle, token, text)
        self._check(error, "decode_transaction_token")
        try:
            return decode_pointer(text[0]) or ""
        finally:
            lib.mtf_string_free(text[0])

    def _token(self, transaction: Transaction) -> Any:
        if transaction.filesystem is not self or transaction.token is None:
            raise InvalidArgumentError(
                f"the transaction has ended or is not of {self.scheme!r}", plugin=self.plugin
            )
        return transaction.token

    # -- configuration ------------------------------------------------------------------------

    def get_filesystem_configuration(self) -> list[Option]:
        """Return the options that can be set; none where the plugin has none."""
        options, count = ffi.new("mtf_option **"), ffi.new("int *")
        error = lib.mtf_get_configuration(self._handle, options, count)
        if not self._is_implemented(error, "get_filesystem_configuration"):
            return []
        try:
            return [option_from_c(options[0][i], self.plugin) for i in range(count[0])]
        finally:
            lib.mtf_options_free(self._handle, options[0], count[0])

    def set_filesystem_configuration(self, options: Iterable[Option]) -> None:
        """Set the given options; `NotFoundError` where the plugin has none that can be set."""
        listed = list(options)
        given = OptionsForC(listed)
        with self._setting:
            error = lib.mtf_set_configuration(self._handle, given.array, given.count)
            if not self._is_implemented(error, "set_filesystem_configuration"):
                super().set_filesystem_configuration(listed)
            self._keep(listed, is_single=False)

    def get_filesystem_configuration_option(self, key: str) -> Option:
        """Return the option with a key."""
        option = ffi.new("mtf_option **")
        error = lib.mtf_get_configuration_option(self._handle, encode(key), option)
        if not self._is_implemented(error, "get_filesystem_configuration_option"):
            return super().get_filesystem_configuration_option(key)
        try:
            return option_from_c(option[0][0], self.plugin)
        finally:
            lib.mtf_options_free(self._handle, option[0], 1)

    def set_filesystem_configuration_option(self, option: Option) -> None:
        """Set the given option; `NotFoundError` where the plugin has none that can be set."""
        given = OptionsForC([option])
        with self._setting:
            error = lib.mtf_set_configuration_option(self._handle, given.array)
            if not self._is_implemented(error, "set_filesystem_configuration_option"):
                super().set_filesystem_configuration_option(option)
            self._keep([option], is_single=True)

    def _keep(self, options: list[Option], *, is_single: bool) -> None:
        place = self.tables.place
        if place is not None:
            place.worker.keep_options(place.number, options, is_single=is_single)
