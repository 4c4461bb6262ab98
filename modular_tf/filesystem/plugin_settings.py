"""Transactions and configuration of a C plugin's filesystem."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import FILESYSTEM_OPS
from modular_tf.abi.status_codes import Code
from modular_tf.errors import InvalidArgumentError, UnimplementedError
from modular_tf.filesystem.configuration import Option, OptionsForC, option_from_c
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.transactions import Transaction
from modular_tf.filesystem.worker_limits import with_limits
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.readonly_memory import try_read
from modular_tf.native.status import check, failure_unless, take_error
from modular_tf.native.strings import decode_pointer, encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.errors import ModularTFError
    from modular_tf.loading.filesystem_tables import FilesystemTables

_TOKEN = struct.Struct("=2Q")  # TF_TransactionToken


class PluginSettings(Filesystem):
    """The transactions and options of a plugin's filesystem; few plugins have any. [any thread]"""

    _handle: Any
    tables: FilesystemTables

    def _failed(self, error: Any, operation: str, path: str | None = None) -> ModularTFError:
        failure = take_error(error, plugin=self.plugin, path=path, operation=operation)
        return with_limits(failure, self.tables)

    def _failure_unless(
        self, expected: int, error: Any, operation: str, path: str
    ) -> ModularTFError | None:
        failure = failure_unless(
            error, expected, plugin=self.plugin, path=path, operation=operation
        )
        return None if failure is None else with_limits(failure, self.tables)

    def _check(self, error: Any, operation: str, path: str | None = None) -> None:
        check(error, plugin=self.plugin, path=path, operation=operation)

    def _require_here(self, operation: str) -> None:
        """Refuse what the plugin offers, but no worker process serves."""
        offered = self.tables.tables[FILESYSTEM_OPS.name]
        if self.tables.place is not None and offered.has(operation):
            raise UnimplementedError(
                f"{operation}: {self.plugin} offers it, but not from a worker process; "
                'isolation = "none" has it in this process',
                plugin=self.plugin,
                operation=operation,
            )

    def _is_implemented(self, error: Any, operation: str) -> bool:
        """Return whether the plugin has the operation; raise any other failure."""
        if not error:
            return True
        failure = failure_unless(error, Code.UNIMPLEMENTED, plugin=self.plugin, operation=operation)
        if failure:
            raise failure
        return False

    # -- transactions -------------------------------------------------------------------------

    def start_transaction(self) -> Transaction:
        """Start a transaction."""
        self._require_here("start_transaction")
        token = ffi.new("void **")
        self._check(lib.mtf_start_transaction(self._handle, token), "start_transaction")
        return Transaction(self, token[0])

    def end_transaction(self, transaction: Transaction) -> None:
        """End a transaction."""
        self._require_here("end_transaction")
        token, transaction.token = self._token(transaction), None
        self._check(lib.mtf_end_transaction(self._handle, token), "end_transaction")

    def add_to_transaction(self, uri: str, transaction: Transaction) -> None:
        """Add a path to a transaction."""
        self._require_here("add_to_transaction")
        token = self._token(transaction)
        error = lib.mtf_add_to_transaction(self._handle, encode(uri), token)
        self._check(error, "add_to_transaction", uri)

    def get_transaction_for_path(self, uri: str) -> Transaction:
        """Return the transaction that a path is part of."""
        self._require_here("get_transaction_for_path")
        token = ffi.new("void **")
        error = lib.mtf_get_transaction_for_path(self._handle, encode(uri), token)
        self._check(error, "get_transaction_for_path", uri)
        return Transaction(self, token[0])

    def get_or_start_transaction_for_path(self, uri: str) -> Transaction:
        """Return the transaction that a path is part of, a new one where there is none."""
        self._require_here("get_or_start_transaction_for_path")
        token = ffi.new("void **")
        error = lib.mtf_get_or_start_transaction_for_path(self._handle, encode(uri), token)
        self._check(error, "get_or_start_transaction_for_path", uri)
        return Transaction(self, token[0])

    def decode_transaction_token(self, transaction: Transaction) -> str:
        """Return a description of a transaction; by default its token and its owner."""
        self._require_here("decode_transaction_token")
        token, text = self._token(transaction), ffi.new("char **")
        error = lib.mtf_decode_transaction_token(self._handle, token, text)
        if not self._is_implemented(error, "decode_transaction_token"):
            return _addresses_in(token)
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
        self._require_here("get_filesystem_configuration")
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
        self._require_here("set_filesystem_configuration")
        listed = list(options)
        given = OptionsForC(listed)
        error = lib.mtf_set_configuration(self._handle, given.array, given.count)
        if not self._is_implemented(error, "set_filesystem_configuration"):
            super().set_filesystem_configuration(listed)

    def get_filesystem_configuration_option(self, key: str) -> Option:
        """Return the option with a key."""
        self._require_here("get_filesystem_configuration_option")
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
        self._require_here("set_filesystem_configuration_option")
        given = OptionsForC([option])
        error = lib.mtf_set_configuration_option(self._handle, given.array)
        if not self._is_implemented(error, "set_filesystem_configuration_option"):
            super().set_filesystem_configuration_option(option)


def _addresses_in(token: Any) -> str:
    """Return what a TF_TransactionToken holds; it is the plugin's, so it may lie anywhere."""
    content = try_read(int(ffi.cast("uintptr_t", token)), _TOKEN.size)
    if content is None:
        return f"token at {token}, which cannot be read"
    return "token {:#x}, owner {:#x}".format(*_TOKEN.unpack(content))
