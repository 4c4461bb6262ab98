"""The base of all stores: checks around every call of the plugin, and errors explained."""

from __future__ import annotations

import os
import re
import time
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from modular_tf.abi.status_codes import Code
from modular_tf.errors import (
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.filesystem.uri import parse_uri
from modular_tf.filesystem.workarounds.endpoints import Endpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from modular_tf.filesystem.workarounds.endpoints import Server
    from modular_tf.loading.filesystem_tables import FilesystemTables

_Operation = TypeVar("_Operation", bound="Callable[..., Any]")
_Result = TypeVar("_Result")


def _checked(operation: _Operation) -> _Operation:
    """Return an operation of the plugin with checks around it."""
    name = operation.__name__.replace("listed_names", "get_children")

    @wraps(operation)
    def checked(self: Store, uri: str, *others: Any) -> Any:
        return self.checked_call(name, uri, lambda: operation(self, uri, *others))

    return cast("_Operation", checked)


class Store(PluginFilesystem):
    """One scheme of a plugin that has known defects. [any thread]

    The methods of this class, such as `Store.stat(self, uri)`, are the plugin's own operations with
    checks. The plugin sees the variables of `environment`.

    Attributes:
        shares_init: The filesystems of several services share the result of one init.
        variables: The variables that the plugin reads to find and use its store.
        credential_variables: Those of them that hold the credentials.
        other_credentials: The source of the credentials if none of these is set.
        remedies: What to do about an error, by expressions for its message.
        not_found_message: Matches errors that mean NOT_FOUND, in spite of their status.
        denied_message: The same for PERMISSION_DENIED.
        is_in_worker: Whether the plugin runs in a worker process.
    """

    shares_init: ClassVar[bool] = False
    variables: ClassVar[tuple[str, ...]] = ()
    credential_variables: ClassVar[tuple[str, ...]] = ()
    other_credentials: ClassVar[str] = ""
    remedies: ClassVar[Mapping[str, str]] = {}
    not_found_message: ClassVar[str | None] = None
    denied_message: ClassVar[str | None] = None

    def __init__(
        self,
        tables: FilesystemTables,
        plugin: str,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__(tables, plugin, share_init=self.shares_init)
        self.is_in_worker = tables.place is not None
        self._environment = environment
        server_of = partial(self.server, environment=environment)
        self._endpoints = Endpoints(server_of, plugin, environment)

    # -- before a filesystem exists -----------------------------------------------------------

    @classmethod
    def prepare_environment(
        cls,
        environment: MutableMapping[str, str],  # noqa: ARG003
        *,
        guarded: bool,  # noqa: ARG003
    ) -> list[str]:
        """Change variables that the plugin reads; return a sentence for each that the user had set.

        `guarded`: the plugin was bound to all `guarded_functions` of `known_defects.toml`.
        """
        return []

    @classmethod
    def unread_setting(cls, environment: Mapping[str, str]) -> str:  # noqa: ARG003
        """Return a sentence on a setting in files of the user that the plugin ignores, or ""."""
        return ""

    @classmethod
    def server(cls, uri: str, environment: Mapping[str, str]) -> Server | None:  # noqa: ARG003
        """Return the server of a URI; None where it is not known."""
        return None

    @classmethod
    def missing_library(cls) -> str:
        """Return which library the plugin will miss, and what to do; "" for none."""
        return ""

    # -- checks around every operation --------------------------------------------------------

    def require(self, operation: str, uri: str) -> None:
        """Reject a call that would fail slowly, break the plugin for good, or harm the process."""
        self._endpoints.require(operation, uri)

    def checked_call(self, operation: str, uri: str, call: Callable[[], _Result]) -> _Result:
        """Return the result of a call of the plugin; correct and explain its errors."""
        self.require(operation, uri)
        begin = time.monotonic()
        try:
            result = call()
        except ModularTFError as error:
            self._endpoints.suspect(error.code, operation, uri, time.monotonic() - begin)
            explained = self._explained(self._with_true_status(error), operation, uri)
            if explained is error:
                raise
            raise explained from error
        if result is False:
            self._endpoints.suspect(Code.NOT_FOUND, operation, uri, time.monotonic() - begin)
        return result

    def _with_true_status(self, error: ModularTFError) -> ModularTFError:
        """Return an error with the status that its message means, where the plugin's differs."""
        for kind, message in (
            (NotFoundError, self.not_found_message),
            (PermissionDeniedError, self.denied_message),
        ):
            if message is None or error.code is kind.default_code:
                continue
            if re.search(message, error.message):
                return kind(
                    error.message, plugin=self.plugin, path=error.path, operation=error.operation
                )
        return error

    def _explained(self, error: ModularTFError, operation: str, uri: str) -> ModularTFError:
        """Return an error with its cause, the credentials that were used, and a remedy.

        No value of a variable but the address of the server is part of the message.
        """
        reasons = [text for key, text in self.remedies.items() if re.search(key, error.message)]
        is_refusal = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
        if is_refusal and self.credential_variables:
            used = [name for name in self.credential_variables if self._environment.get(name)]
            unset = f"{' and '.join(self.credential_variables)} not set: {self.other_credentials}"
            reasons.append(f"the request was signed by {' and '.join(used)}" if used else unset)
        if not reasons:
            return error
        server = self._endpoints.server_of(uri) or "the store"
        # Control characters separate parameters from the host, of which some are secret.
        bucket = re.split(r"[\x00-\x1f]", parse_uri(uri).host, maxsplit=1)[0]
        answer = f"{server} {'refused' if is_refusal else 'answered'} {operation} in {bucket!r} so"
        return type(error)(
            f"{error.message}: {'; '.join([answer, *reasons])}",
            code=error.code,
            plugin=error.plugin,
            path=uri,
            operation=operation,
        )

    create_dir = _checked(PluginFilesystem.create_dir)
    recursively_create_dir = _checked(PluginFilesystem.recursively_create_dir)
    delete_file = _checked(PluginFilesystem.delete_file)
    delete_dir = _checked(PluginFilesystem.delete_dir)
    delete_recursively = _checked(PluginFilesystem.delete_recursively)
    rename_file = _checked(PluginFilesystem.rename_file)
    copy_file = _checked(PluginFilesystem.copy_file)
    path_exists = _checked(PluginFilesystem.path_exists)
    stat = _checked(PluginFilesystem.stat)
    is_directory = _checked(PluginFilesystem.is_directory)
    get_file_size = _checked(PluginFilesystem.get_file_size)
    listed_names = _checked(PluginFilesystem.listed_names)
    new_random_access_file = _checked(PluginFilesystem.new_random_access_file)
    new_writable_file = _checked(PluginFilesystem.new_writable_file)
    new_appendable_file = _checked(PluginFilesystem.new_appendable_file)
    new_read_only_memory_region_from_file = _checked(
        PluginFilesystem.new_read_only_memory_region_from_file
    )
    # By the reader of the store's class; the plugin's own way is a native call without checks.
    read_file = Filesystem.read_file
