"""A filesystem plugin as an application reaches it: through a `PluginService` of this package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.breach import MEMORY_RULES, raise_harm_to_heap
from modular_tf.check.call_journal import CallJournal, outcome_of, shown
from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.host_files import HostReader, HostRegion, HostWriter
from modular_tf.check.filesystem.host_offer import has_slot, host_offers
from modular_tf.check.filesystem.subject import Stat
from modular_tf.check.heap_watch import HeapWatch
from modular_tf.errors import ModularTFError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.filesystem.configuration import Option, Transaction
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.loading.filesystem_tables import FilesystemTables


@dataclass(frozen=True, slots=True)
class HostCaller:
    """Calls the host's operations and turns what they raise into answers. [any thread]

    Attributes:
        journal: Records each call.
        heap: Sees what calls do to the heap.
        has: Tells whether the plugin has a slot.
    """

    journal: CallJournal
    heap: HeapWatch
    has: Callable[[str], bool]

    def ask(self, slot: str, arguments: str, operation: Callable[[], Any]) -> Answer:
        """Call an operation; the value is what it returned.

        Raises:
            Unsupported: It is UNIMPLEMENTED, and the plugin has no such slot.
            Breach: The plugin did harm.
        """
        call = f"{slot}({arguments})"
        self.journal.enter(call)
        try:
            answer = Answer(0, value=operation(), call=call)
        except ModularTFError as error:
            if error.code == Code.UNIMPLEMENTED and not self.has(slot):
                raise Unsupported(error.message) from None
            answer = Answer(int(error.code), error.message, value=error.undeleted, call=call)
        self.journal.leave(call, outcome_of(answer))
        raise_harm_to_heap(self.heap, call, MEMORY_RULES["filesystem"])
        return answer


class HostFilesystem:
    """One scheme of a service; it keeps the protocol `FilesystemSubject`. [any thread]

    What differs from the slots is what the host promises: the end of a file is a short read with
    code OUT_OF_RANGE here, so that checks see both alike; counts that C functions return are None.

    Args:
        filesystem: As the service has it.
        tables: The plugin's.
        journal: Records each call; None for a new one.

    Attributes:
        filesystem: The filesystem.
        journal: Records each call.
        heap: What sees the harm that calls do.
    """

    def __init__(
        self,
        filesystem: Filesystem,
        tables: FilesystemTables,
        journal: CallJournal | None = None,
    ) -> None:
        self.filesystem = filesystem
        self.journal = journal or CallJournal()
        self._tables = tables
        self.heap = HeapWatch()
        self._caller = HostCaller(self.journal, self.heap, self.has)
        self._numbers = count(1)

    # -- what is there --------------------------------------------------------------------------

    def has(self, slot: str) -> bool:
        """Return whether the plugin itself has a slot."""
        return has_slot(self._tables, slot)

    def offers(self, slot: str) -> bool:
        """Return whether the plugin has a slot, or the host a default that can work."""
        return host_offers(self.has, slot)

    def is_in_worker(self) -> bool:
        """Return whether the service has it in a worker process."""
        return self._tables.place is not None

    @property
    def calls(self) -> list[str]:
        """The calls so far."""
        return self.journal.calls

    def translate_name(self, uri: str) -> Answer:
        """Value: the name by which the plugin knows it."""
        return self._ask("translate_name", uri)

    def _ask(self, slot: str, *arguments: str) -> Answer:
        operation = getattr(self.filesystem, slot)
        text = ", ".join(shown(argument) for argument in arguments)
        return self._caller.ask(slot, text, lambda: operation(*arguments))

    # -- opening --------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> Answer:
        """Value: a `HostReader`."""
        return self._open("new_random_access_file", uri, HostReader, "file")

    def new_writable_file(self, uri: str) -> Answer:
        """Value: a `HostWriter`."""
        return self._open("new_writable_file", uri, HostWriter, "writer")

    def new_appendable_file(self, uri: str) -> Answer:
        """Value: a `HostWriter`."""
        return self._open("new_appendable_file", uri, HostWriter, "writer")

    def new_read_only_memory_region_from_file(self, uri: str) -> Answer:
        """Value: a `HostRegion`."""
        return self._open("new_read_only_memory_region_from_file", uri, HostRegion, "region")

    def _open(self, slot: str, uri: str, kind: Callable[..., Any], word: str) -> Answer:
        answer = self._ask(slot, uri)
        if not answer.ok:
            return answer
        name = f"{word}{next(self._numbers)}"
        return replace(answer, value=kind(self._caller, answer.value, name))

    # -- directories and files ------------------------------------------------------------------

    def create_dir(self, uri: str) -> Answer:
        """Create one directory."""
        return self._ask("create_dir", uri)

    def recursively_create_dir(self, uri: str) -> Answer:
        """Create a directory and its parents."""
        return self._ask("recursively_create_dir", uri)

    def delete_file(self, uri: str) -> Answer:
        """Delete one file."""
        return self._ask("delete_file", uri)

    def delete_dir(self, uri: str) -> Answer:
        """Delete one empty directory."""
        return self._ask("delete_dir", uri)

    def delete_recursively(self, uri: str) -> Answer:
        """Value: (files, directories) left; (0, 0) after an error that says nothing of them."""
        answer = self._ask("delete_recursively", uri)
        left = (0, 0) if answer.value is None else (int(answer.value[0]), int(answer.value[1]))
        return replace(answer, value=left)

    def rename_file(self, source: str, target: str) -> Answer:
        """Move a file."""
        return self._ask("rename_file", source, target)

    def copy_file(self, source: str, target: str) -> Answer:
        """Copy a file."""
        return self._ask("copy_file", source, target)

    # -- questions ------------------------------------------------------------------------------

    def path_exists(self, uri: str) -> Answer:
        """Code OK where it exists, NOT_FOUND where not."""

        def look() -> None:
            if not self.filesystem.path_exists(uri):
                raise NotFoundError(f"{uri} does not exist")

        return self._caller.ask("path_exists", shown(uri), look)

    def paths_exist(self, uris: Sequence[str], *, with_statuses: bool = True) -> Answer:
        """Value: a code per path, None without statuses. Returned: whether all exist.

        The host fails as a whole where one path fails by another code than NOT_FOUND; each is
        then asked for its own.
        """
        answer = self._caller.ask(
            "paths_exist", f"[{len(uris)} paths]", lambda: self.filesystem.paths_exist(uris)
        )
        if answer.ok:
            codes = [0 if there else int(Code.NOT_FOUND) for there in answer.value]
        else:
            codes = [self.path_exists(uri).code for uri in uris]
        value = codes if with_statuses else None
        return Answer(0, value=value, returned=not any(codes), call=answer.call)

    def stat(self, uri: str) -> Answer:
        """Value: a `Stat`, None after an error."""
        answer = self._ask("stat", uri)
        if not answer.ok:
            return answer
        length, mtime_ns, is_directory = answer.value
        return replace(answer, value=Stat(length, mtime_ns, is_directory, int(is_directory)))

    def is_directory(self, uri: str) -> Answer:
        """Value: the flag, False after an error."""
        answer = self._ask("is_directory", uri)
        return replace(answer, value=bool(answer.value))

    def get_file_size(self, uri: str) -> Answer:
        """Value: the size."""
        return self._ask("get_file_size", uri)

    def get_children(self, uri: str) -> Answer:
        """Value: the names, sorted."""
        return self._ask("get_children", uri)

    def get_matching_paths(self, pattern: str) -> Answer:
        """Value: the URIs, sorted."""
        return self._ask("get_matching_paths", pattern)

    def flush_caches(self) -> Answer:
        """Drop what is cached."""
        return self._ask("flush_caches")

    # -- transactions and configuration ---------------------------------------------------------

    def start_transaction(self) -> Answer:
        """Value: a `Transaction`."""
        return self._ask("start_transaction")

    def end_transaction(self, token: Transaction) -> Answer:
        """End a transaction."""
        return self._with_token("end_transaction", token)

    def add_to_transaction(self, uri: str, token: Transaction) -> Answer:
        """Make a path part of a transaction."""
        return self._caller.ask(
            "add_to_transaction",
            f"{shown(uri)}, token",
            lambda: self.filesystem.add_to_transaction(uri, token),
        )

    def get_transaction_for_path(self, uri: str) -> Answer:
        """Value: a `Transaction`."""
        return self._ask("get_transaction_for_path", uri)

    def get_or_start_transaction_for_path(self, uri: str) -> Answer:
        """Value: a `Transaction`."""
        return self._ask("get_or_start_transaction_for_path", uri)

    def decode_transaction_token(self, token: Transaction) -> str | None:
        """Return the description, None after an error."""
        text = self._with_token("decode_transaction_token", token).value
        return None if text is None else str(text)

    def _with_token(self, slot: str, token: Transaction) -> Answer:
        operation = getattr(self.filesystem, slot)
        return self._caller.ask(slot, "token", lambda: operation(token))

    def get_filesystem_configuration(self) -> Answer:
        """Value: a list of `Option`."""
        return self._ask("get_filesystem_configuration")

    def get_filesystem_configuration_option(self, key: str) -> Answer:
        """Value: an `Option`."""
        return self._ask("get_filesystem_configuration_option", key)

    def set_filesystem_configuration(self, options: Sequence[Option]) -> Answer:
        """Set options, and return the answer."""
        return self._caller.ask(
            "set_filesystem_configuration",
            shown([option.name for option in options]),
            lambda: self.filesystem.set_filesystem_configuration(options),
        )

    def set_filesystem_configuration_option(self, option: Option) -> Answer:
        """Set one option."""
        return self._caller.ask(
            "set_filesystem_configuration_option",
            shown(option.name),
            lambda: self.filesystem.set_filesystem_configuration_option(option),
        )
