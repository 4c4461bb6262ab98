"""A filesystem plugin by its own slots, with nothing of the host's in between."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from modular_tf.check.answers import Answer
from modular_tf.check.calls import CallJournal, SlotCaller, shown
from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.filesystem.operations import (
    FILESYSTEM,
    OPENED,
    OPERATIONS,
    TABLES,
    Op,
    OpenFile,
    Operations,
    Stat,
    has_slot,
    shown_arguments,
)
from modular_tf.check.memory_watch import (
    MEMORY_RULES,
    READ_BUFFER_RULE,
    Breach,
    Depth,
    raise_breach,
    raise_harm_to_heap,
    watched,
)
from modular_tf.check.native.checking_allocator import checking_allocator
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_status import RawStatus
from modular_tf.errors import InternalError
from modular_tf.filesystem.configuration import Option, OptionsForC, option_from_c
from modular_tf.filesystem.uri import clean_path, parse_uri
from modular_tf.native.ffi import ffi
from modular_tf.native.readonly_memory import try_read
from modular_tf.native.strings import decode, encode, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from modular_tf.loading.filesystem_tables import FilesystemTables

_MEMORY_RULE = MEMORY_RULES["filesystem"]
_STATISTICS = struct.Struct("=qqB7x")  # TF_FileStatistics
_POISON = b"\xa5" * _STATISTICS.size
_WRITTEN = 17
"""Bytes of a TF_FileStatistics that are not padding."""

_UNTOUCHED_COUNT = b"\xff" * 8
_MOST_ENTRIES = 1 << 24
_BUFFERS = 2  # the type of an option whose values are buffers
_POINTER = 8
_PRESET: Mapping[str, tuple[int, bytes]] = {
    "&stat": (_STATISTICS.size, _POISON),
    "&files": (8, _UNTOUCHED_COUNT),
    "&directories": (8, _UNTOUCHED_COUNT),
    "&num_options": (4, b""),
}
"""How large an output is and what it holds before the call; a pointer of NULL for all others."""


class _Marshalled:
    """The arguments of one call as C has them; they live as long as this.

    Attributes:
        pointers: The arguments after the struct, without the status.
        outputs: What the plugin fills, by its word.
        constant: What it may only read.
    """

    def __init__(self) -> None:
        self.pointers: list[Any] = []
        self.outputs: dict[str, GuardedMemory] = {}
        self.constant: list[GuardedMemory] = []
        self.options: list[OptionsForC] = []

    def lend(self, content: GuardedMemory) -> None:
        """Add an input that the plugin may only read."""
        self.constant.append(content)
        self.pointers.append(content.pointer)

    def scribble(self, op: Op) -> None:
        """Overwrite what a plugin must have copied."""
        if "bytes" in op.inputs:
            self.constant[0].scribble()
        for given in self.options:
            _scribble_over(given.array, given.count)


class SlotFilesystem(SlotCaller, Operations):
    """One `TF_Filesystem` of a plugin, by its slots. [any thread]

    Nothing is called before `init`.

    Args:
        tables: The accepted tables; the host's protected copy is used, in the plugin's layout.
        journal: Records each call; None for a new one.

    Attributes:
        tables: The tables.
    """

    def __init__(self, tables: FilesystemTables, journal: CallJournal | None = None) -> None:
        super().__init__(journal or CallJournal(), FILESYSTEM, _MEMORY_RULE)
        self.tables = tables
        # The plugin's free stands behind the tables in the protected block.
        (free,) = struct.unpack("=Q", tables.protected.view()[-8:])
        self._free = ffi.cast("void(*)(void *)", free)
        self._filesystem = GuardedMemory(_POINTER)
        self._numbers = {word: count(1) for word in OPENED}
        self._opened: list[OpenFile] = []

    # -- life -----------------------------------------------------------------------------------

    def init(self) -> Answer:
        """Call `init` on a zeroed struct; see `handle` for what it left there."""
        return self.call("init")

    def cleanup(self) -> None:
        """Clean up the filesystem by the slot `cleanup`."""
        self.call("cleanup")

    @property
    def handle(self) -> int:
        """The plugin's pointer in the struct."""
        return self._filesystem.word()

    def another(self) -> SlotFilesystem:
        """Return a further filesystem of the same tables and journal, before its `init`."""
        return SlotFilesystem(self.tables, self.journal)

    def close_left_open(self) -> None:
        """Call the `cleanup` of what was opened here and not cleaned up."""
        opened, self._opened = self._opened, []
        for file in opened:
            file.cleanup()

    def is_in_worker(self) -> bool:
        """Return whether the plugin runs in another process, with its own rights and memory."""
        return False

    def has(self, slot: str) -> bool:
        """Return whether the plugin has a slot."""
        return has_slot(self.tables, slot)

    def offers(self, slot: str) -> bool:
        """Return the same: nothing stands in for a slot here."""
        return self.has(slot)

    # -- calls ----------------------------------------------------------------------------------

    def call(self, slot: str, *arguments: Any) -> Answer:
        """Call a slot of `TF_FilesystemOps` with the inputs of its row."""
        if slot == "paths_exist":
            return self._paths_exist(*arguments)
        return self._called(FILESYSTEM, slot, "", self._filesystem, arguments)

    def call_file(self, file: OpenFile, slot: str, *arguments: Any) -> Answer:
        """Call a slot of a file's table."""
        return self._called(file.table, slot, file.name, file.opened, arguments)

    def _called(
        self, table: str, slot: str, name: str, of: GuardedMemory, arguments: Sequence[Any]
    ) -> Answer:
        """Call a slot of the struct `of`, which reports call `name`, and copy what it gave."""
        op = TABLES[table][slot]
        self.function(slot, table)
        opened = f"{op.opens[1:]}{next(self._numbers[op.opens])}" if op.opens else ""
        given = self._marshalled(op, arguments)
        parts = [name, shown_arguments(op, arguments, opened)]
        text = ", ".join(part for part in parts if part) or "filesystem"
        lent = (of, *given.outputs.values())
        if "status" in op.takes:
            answer = self.ask(
                slot, text, of.pointer, *given.pointers,
                table=table, lent=lent, constant=given.constant,
            )  # fmt: skip
            given.scribble(op)
            return self._with_value(op, answer, given, arguments, opened)
        is_text = op.returns == "char *"
        returned = self.ask_plainly(
            slot, text, of.pointer, *given.pointers,
            table=table, lent=lent, constant=given.constant, quietly=is_text,
        )  # fmt: skip
        call = f"{slot}({text})"
        if is_text:
            returned = self._take_string(_address(returned))
            self.journal.leave(call, shown(returned))
        elif op.returns == "void *":
            returned = _address(returned)
        return Answer(0, value=returned, returned=returned, call=call)

    def _marshalled(self, op: Op, arguments: Sequence[Any]) -> _Marshalled:
        given = _Marshalled()
        values = iter(arguments)
        for word in op.words:
            if word.startswith("&"):
                room = (arguments[1], b"") if word == "&buffer" else _PRESET.get(word)
                given.outputs[word] = GuardedMemory(*(room or (_POINTER, b"")))
                given.pointers.append(given.outputs[word].pointer)
                continue
            value = next(values)
            match word:
                case "path":
                    given.lend(self._lend_name(value))
                case "uri" | "pattern" | "key":
                    given.lend(GuardedMemory.string(encode(value)))
                case "bytes":
                    given.lend(GuardedMemory(len(value), value))
                    given.pointers.append(len(value))
                case "options":
                    given.options.append(OptionsForC(value))
                    given.pointers += [given.options[0].array, given.options[0].count]
                case "option":
                    given.options.append(OptionsForC([value]))
                    given.pointers.append(given.options[0].array)
                case "token":
                    given.pointers.append(_pointer(value))
                case _:
                    given.pointers.append(value)
        return given

    def _with_value(
        self, op: Op, answer: Answer, given: _Marshalled, arguments: Sequence[Any], opened: str
    ) -> Answer:
        """Return an answer with what the plugin filled; `opened` is the name of an open file."""
        match list(given.outputs.items()):
            case [(word, memory)] if word in OPENED:
                if not answer.ok and not memory.word():
                    return answer
                file = OPENED[word](self.call_file, memory, opened)
                if answer.ok:  # hosts clean up nothing that was not opened
                    self._opened.append(file)
                return replace(answer, value=file)
            case [("&stat", memory)]:
                raw = memory.raw()
                if raw[:_WRITTEN] == _POISON[:_WRITTEN]:
                    return answer
                length, mtime_ns, byte = _STATISTICS.unpack(raw)
                return replace(answer, value=Stat(length, mtime_ns, bool(byte), byte))
            case [("&names", memory)]:
                return self._listed(answer, memory.word())
            case [("&buffer", memory)]:
                came = max(0, min(int(answer.returned), arguments[1]))
                return replace(answer, value=memory.raw(came))
            case [("&token", memory)]:
                return replace(answer, value=memory.word())
            case [("&files", files), ("&directories", directories)]:
                return replace(answer, value=(files.word(), directories.word()))
            case [("&options", array), ("&num_options", memory)]:
                number = int.from_bytes(memory.raw(), "little", signed=True)
                there = max(number, 0) if answer.ok and array.word() else 0
                options = self._take_options(array.word(), there) if answer.ok else []
                return replace(answer, value=options, returned=number)
            case [("&option", memory)] if answer.ok and memory.word():
                return replace(answer, value=self._take_options(memory.word(), 1)[0])
        if op.returns == "uint8_t":
            flag = _flag(answer.returned)
            return replace(answer, value=flag, returned=flag)
        return replace(answer, value=answer.returned) if op.returns == "int64_t" else answer

    def _paths_exist(self, uris: Sequence[str], with_statuses: object) -> Answer:
        """Call it; the code is always OK, since each path has its own."""
        slot = "paths_exist"
        self.function(slot)
        names = [self._lend_name(uri) for uri in uris]
        paths = GuardedMemory.words(*(name.address for name in names))
        arguments = shown_arguments(OPERATIONS[slot], (uris, with_statuses))
        with ExitStack() as stack:
            made = [stack.enter_context(RawStatus(poisoned=self.is_poisoned)) for _ in uris]
            statuses = GuardedMemory.words(*(_address(status.pointer) for status in made))
            found = self.ask_plainly(
                slot, arguments, self._filesystem.pointer, paths.pointer, len(uris),
                statuses.pointer if with_statuses else ffi.NULL,
                constant=(paths, *names, *([statuses] if with_statuses else [])), quietly=True,
            )  # fmt: skip
            contents = [status.read() for status in made] if with_statuses else None
        codes = None if contents is None else [content.code for content in contents]
        touched = None if contents is None else all(content.touched for content in contents)
        call = f"{slot}({arguments})"
        self.journal.leave(call, f"{found}" if codes is None else f"{found}, {shown(codes)}")
        return Answer(0, value=codes, returned=_flag(found), touched=touched, call=call)

    def _function(self, table: str, slot: str) -> Any:
        found = self.tables.tables.get(table)
        address = found and found.slots.get(slot)
        return ffi.cast(TABLES[table][slot].type, address) if address else None

    def _raise_overrun(self, slot: str, memory: GuardedMemory, where: str) -> None:
        del memory
        rule_id = READ_BUFFER_RULE if slot == "read" else _MEMORY_RULE
        raise_breach(Breach(rule_id, f"{slot} wrote outside of its output", found=where))

    # -- what the plugin gives ------------------------------------------------------------------

    def free(self, address: int) -> None:
        """Give a block back by the plugin's own free; nothing for NULL."""
        if address:
            self.journal.enter("plugin_memory_free")
            watched(self._free, _pointer(address))
            raise_harm_to_heap("plugin_memory_free", _MEMORY_RULE, Depth.RECORDED)

    def _take_string(self, address: int) -> str | None:
        """Copy a string that the plugin returned and give it back; None for NULL."""
        raw = read_bytes(address)
        self.free(address)
        return None if raw is None else decode(raw)

    def _lend_name(self, uri: str) -> GuardedMemory:
        """Return the name that the plugin is given for a URI.

        Raises:
            Blocked: `translate_name` returned NULL.
        """
        if not self.has("translate_name"):
            return GuardedMemory.string(encode(default_name(uri)))
        given = GuardedMemory.string(encode(uri))
        pointer = self.ask_plainly(
            "translate_name", shown(uri), self._filesystem.pointer, given.pointer,
            constant=(given,), quietly=True,
        )  # fmt: skip
        name = self._take_string(_address(pointer))
        if name is None:
            raise Blocked(f"translate_name({shown(uri)}) returned NULL")
        return GuardedMemory.string(encode(name))

    def _listed(self, answer: Answer, array: int) -> Answer:
        """Copy what was listed, and give it back by the plugin's own free.

        The value is the list, with None for a NULL entry; [] where the count asks for an array
        that is not there. After an error it is None, but [] where an array was left all the
        same, which is not touched: what it holds is unknown.
        """
        number = int(answer.returned)
        if not answer.ok or number < 0:
            return replace(answer, value=[] if array else None)
        room = _block_size(array)
        if room is not None and room < _POINTER * number:
            found = f"{number} entries in a block of {room} bytes"
            raise_breach(Breach(_MEMORY_RULE, "a list is longer than its array", found=found))
        pointers = _addresses_at(array, number) if 0 < number <= _MOST_ENTRIES else ()
        texts = [read_bytes(pointer) for pointer in pointers or ()]
        for pointer in pointers or ():
            self.free(pointer)
        if pointers is not None:
            self.free(array)
        return replace(answer, value=[None if raw is None else decode(raw) for raw in texts])

    def _take_options(self, address: int, number: int) -> list[Option]:
        """Copy options that the plugin returned, and give all their blocks back."""
        try:
            options = [option_from_c(_option_at(address, i), "") for i in range(number)]
        except InternalError as error:
            raise Deviation(
                "an option that the plugin returned is malformed", found=error.message
            ) from None
        for block in _option_blocks(address, number):
            self.free(block)
        return options


def _block_size(address: int) -> int | None:
    """Return the bytes of the heap block that begins there, None where that is not known."""
    allocator = checking_allocator()
    return None if allocator is None else allocator.size_of(address)


def _flag(byte: int) -> bool | int:
    return bool(byte) if byte in {0, 1} else int(byte)


def open_raw(tables: FilesystemTables, journal: CallJournal | None = None) -> SlotFilesystem:
    """Return an initialised filesystem.

    Raises:
        Blocked: Its `init` failed.
    """
    made = SlotFilesystem(tables, journal)
    answer = made.init()
    if not answer.ok:
        raise Blocked(
            f"init of scheme {tables.scheme!r} failed with {answer.code}: {answer.message}"
        )
    return made


def default_name(uri: str) -> str:
    """Return what TensorFlow gives to a plugin that has no `translate_name`."""
    if not uri:
        return ""
    path = parse_uri(uri).path
    return clean_path(path) if path else "/"


def _pointer(address: int) -> Any:
    return ffi.cast("void *", address)


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _addresses_at(address: int, count: int) -> tuple[int, ...] | None:
    """Copy an array of pointers that a plugin gave; None where so much cannot be read."""
    raw = try_read(address, _POINTER * count) if address else None
    return None if raw is None else tuple(memoryview(raw).cast("Q"))


def _option_at(address: int, index: int) -> Any:
    """Return one option of an array that is trusted to be there."""
    return ffi.cast("mtf_option *", address)[index]


def _option_blocks(address: int, count: int) -> Iterator[int]:
    """Yield each block of such an array, the array last; none of them is read afterwards."""
    for index in range(count):
        option = _option_at(address, index)
        pointers = [*_buffers(option), option.value.values, option.value]
        yield from (_address(pointer) for pointer in (*pointers, option.name, option.description))
    yield address


def _scribble_over(array: Any, count: int) -> None:
    """Overwrite the strings, buffers, values and structs of an array of the host's."""
    for index in range(count):
        option = array[index]
        for text in (option.name, option.description):
            _scribble(text, len(ffi.string(text)))
        value = option.value
        for i in range(value.num_values if value.type_tag == _BUFFERS else 0):
            _scribble(value.values[i].buffer.bytes, value.values[i].buffer.length)
        _scribble(value.values, ffi.sizeof("mtf_option_item") * value.num_values)
        value.type_tag = value.num_values = 0
    _scribble(array, ffi.sizeof("mtf_option") * count)


def _buffers(option: Any) -> list[Any]:
    value = option.value
    count = value.num_values if value.type_tag == _BUFFERS else 0
    return [value.values[i].buffer.bytes for i in range(count)]


def _scribble(pointer: Any, size: int) -> None:
    ffi.buffer(ffi.cast("char *", pointer), size)[:] = b"\xdd" * size
