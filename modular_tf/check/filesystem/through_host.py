"""A filesystem plugin as an application reaches it: through a `PluginService` of this package."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.calls import CallJournal, outcome_of
from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.operations import (
    OPENED,
    OPERATIONS,
    TABLES,
    OpenFile,
    Operations,
    Stat,
    has_slot,
    host_offers,
    shown_arguments,
)
from modular_tf.check.memory_watch import MEMORY_RULES, raise_harm_to_heap
from modular_tf.errors import ModularTFError, NotFoundError
from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.filesystem.files import ReadOnlyMemoryRegion
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.loading.filesystem_tables import FilesystemTables


class HostFilesystem(Operations):
    """One scheme of a service. [any thread]

    What differs from the slots is what the host promises: the end of a file is a short read with
    code OUT_OF_RANGE here, so that checks see both alike; counts that C functions return are None.

    Args:
        filesystem: As the service has it.
        tables: The plugin's.
        journal: Records each call; None for a new one.

    Attributes:
        filesystem: The filesystem.
        journal: Records each call.
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
        self._numbers = count(1)

    def has(self, slot: str) -> bool:
        """Return whether the plugin itself has a slot."""
        return has_slot(self._tables, slot)

    def offers(self, slot: str) -> bool:
        """Return whether the plugin has a slot, or the host a default that can work."""
        return host_offers(self.has, slot)

    def is_in_worker(self) -> bool:
        """Return whether the service has it in a worker process."""
        return self._tables.place is not None

    def call(self, slot: str, *arguments: Any) -> Answer:
        """Call the operation of a slot's name."""
        op = OPERATIONS[slot]
        name = f"{op.opens[1:]}{next(self._numbers)}" if op.opens else ""
        operation: Callable[[], Any] = partial(getattr(self.filesystem, slot), *arguments)
        if slot == "path_exists":
            operation = partial(self._expect_there, *arguments)
        elif slot == "paths_exist":
            operation = partial(self.filesystem.paths_exist, arguments[0])
        answer = self._ask(slot, shown_arguments(op, arguments, name), operation)
        match slot:
            case "paths_exist":
                return self._code_of_each(answer, *arguments)
            case "delete_recursively":
                files, directories = answer.value or (0, 0)
                return replace(answer, value=(int(files), int(directories)))
            case "is_directory":
                return replace(answer, value=bool(answer.value))
            case "stat" if answer.ok:
                length, mtime_ns, is_directory = answer.value
                found = Stat(length, mtime_ns, is_directory, int(is_directory))
                return replace(answer, value=found)
        if answer.ok and name:
            return replace(answer, value=OPENED[op.opens](self.call_file, answer.value, name))
        return answer

    def _expect_there(self, uri: str) -> None:
        if not self.filesystem.path_exists(uri):
            raise NotFoundError(f"{uri} does not exist")

    def _code_of_each(self, answer: Answer, uris: Sequence[str], with_statuses: object) -> Answer:
        """Return an answer with a code for each path.

        The host fails as a whole where one path fails by another code than NOT_FOUND; each is
        then asked for its own.
        """
        if answer.ok:
            codes = [0 if there else int(Code.NOT_FOUND) for there in answer.value]
        else:
            codes = [self.path_exists(uri).code for uri in uris]
        value = codes if with_statuses else None
        return Answer(0, value=value, returned=not any(codes), call=answer.call)

    def call_file(self, file: OpenFile, slot: str, *arguments: Any) -> Answer:
        """Call the operation of a slot of an open file."""
        op = TABLES[file.table][slot]
        opened = file.opened
        operation: Callable[[], Any]
        if slot == "cleanup":
            operation = opened.close
        elif slot == "length":
            operation = partial(len, opened)
        elif slot == "data":
            operation = partial(_address_of, opened)
        else:
            operation = partial(getattr(opened, slot), *arguments)
        text = ", ".join(filter(None, (file.name, shown_arguments(op, arguments))))
        answer = self._ask(slot, text, operation)
        if slot != "read":
            return answer
        answer = replace(answer, value=answer.value or b"")
        if answer.ok and len(answer.value) < arguments[1]:
            message = f"{len(answer.value)} bytes up to the end of the file"
            return replace(answer, code=int(Code.OUT_OF_RANGE), message=message)
        return answer

    def _ask(self, slot: str, arguments: str, operation: Callable[[], Any]) -> Answer:
        """Call an operation and turn what it raises into an answer.

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
        raise_harm_to_heap(call, MEMORY_RULES["filesystem"])
        return answer


def _address_of(region: ReadOnlyMemoryRegion) -> int:
    """Return where the memory lies, 0 for an empty region."""
    if not len(region):
        return 0
    return int(ffi.cast("uintptr_t", ffi.from_buffer("char[]", region.view())))
