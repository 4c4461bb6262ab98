"""What a thread does with its folder of a store; each checks what it got as far as it can."""

import threading
from contextlib import suppress
from functools import wraps

from modular_tf.errors import ModularTFError
from tests.faults.shelf import ABSENT, WrongResultError

_NAMES = [f"file{number}" for number in range(6)]


def _some_name(shelf, dice):
    return dice.choice(shelf.names() or _NAMES)


def read_whole(fs, shelf, dice):
    name = _some_name(shelf, dice)
    try:
        found = fs.cat_file(shelf.path(name))
    except FileNotFoundError:
        found = None
    shelf.check_content(name, found)


def read_by_blocks(fs, shelf, dice):
    name = _some_name(shelf, dice)
    step = dice.choice([1000, 20_000, 100_000])
    pieces = []
    try:
        with fs.open(shelf.path(name), "rb", block_size=dice.choice([1024, 1 << 16])) as file:
            while piece := file.read(step):
                pieces.append(piece)
        found = b"".join(pieces)
    except FileNotFoundError:
        found = None
    shelf.check_content(name, found)


def read_ranges(fs, shelf, dice):
    """Read some ranges of files whose content is known."""
    wanted = []
    for name, content in shelf.certain():
        first = dice.randrange(len(content) + 1)
        wanted.append((name, content, first, dice.randint(first, len(content))))
    if not wanted:
        return
    names, contents, starts, ends = zip(*wanted, strict=True)
    found = fs.cat_ranges([shelf.path(name) for name in names], list(starts), list(ends))
    for name, content, first, last, data in zip(names, contents, starts, ends, found, strict=True):
        if isinstance(data, Exception):
            if not isinstance(data, ModularTFError):
                raise WrongResultError(f"an error of no type of ours: {data!r}")
        elif data != content[first:last]:
            raise WrongResultError(
                f"{shelf.path(name)}[{first}:{last}] of {len(content)} gave {len(data)} bytes:"
                f" {data[:60]!r}"
            )


def exists(fs, shelf, dice):
    name = _some_name(shelf, dice)
    found = fs.exists(shelf.path(name))
    possible = shelf.possible(name)
    if (possible == ABSENT) if found else (None not in possible):
        raise WrongResultError(f"{shelf.path(name)} exists: {found}")


def list_names(fs, shelf, dice):
    """List the folder, with and without sizes."""
    call = dice.choice(
        [
            lambda: fs.ls(shelf.folder, detail=False),
            lambda: [entry["name"] for entry in fs.ls(shelf.folder, detail=True)],
            lambda: fs.find(shelf.folder),
        ]
    )
    try:
        found = [path.rpartition("/")[2] for path in call()]
    except FileNotFoundError:
        found = []
    shelf.check_names([name for name in found if name])


def write_whole(fs, shelf, dice):
    name = dice.choice(_NAMES)
    content = shelf.new_content(name, dice)
    shelf.may_be(name, content)
    fs.pipe_file(shelf.path(name), content)
    shelf.is_now(name, content)


def write_by_pieces(fs, shelf, dice):
    name = dice.choice(_NAMES)
    content = shelf.new_content(name, dice)
    shelf.may_be(name, content)
    with fs.open(shelf.path(name), "wb", block_size=1 << 16) as file:
        for start in range(0, len(content), 30_000):
            file.write(content[start : start + 30_000])
    shelf.is_now(name, content)


def of_known_file(operation):
    """Give an operation the name and content of a file of which both are certain, if any is."""

    @wraps(operation)
    def perform(fs, shelf, dice):
        if known := list(shelf.certain()):
            operation(fs, shelf, dice, *dice.choice(known))

    return perform


@of_known_file
def append(fs, shelf, dice, name, content):
    longer = content + shelf.new_content(name, dice)[:1000]
    shelf.may_be(name, longer)
    with fs.open(shelf.path(name), "ab") as file:
        file.write(longer[len(content) :])
    shelf.is_now(name, longer)


@of_known_file
def copy(fs, shelf, dice, name, content):
    target = dice.choice([other for other in _NAMES if other != name])
    shelf.may_be(target, content)
    fs.cp_file(shelf.path(name), shelf.path(target))
    shelf.is_now(target, content)


@of_known_file
def move(fs, shelf, dice, name, content):
    """Move a file: it is never lost."""
    target = dice.choice([other for other in _NAMES if other != name])
    shelf.may_be(name, None)
    shelf.may_be(target, content)
    fs.mv(shelf.path(name), shelf.path(target))
    shelf.is_now(name, None)
    shelf.is_now(target, content)


def remove(fs, shelf, dice):
    name = _some_name(shelf, dice)
    was = shelf.possible(name)
    shelf.may_be(name, None)
    try:
        fs.rm_file(shelf.path(name))
    except FileNotFoundError:
        if None not in was and shelf.possible(name) != ABSENT:
            raise WrongResultError(f"{shelf.path(name)} could not be removed: not found") from None
    shelf.is_now(name, None)


@of_known_file
def read_while_it_changes(fs, shelf, dice, name, _):
    """Read a file whole while another thread writes it anew: it is the old or the new one."""
    content = shelf.new_content(name, dice)
    shelf.may_be(name, content)

    def write():
        with suppress(ModularTFError):
            fs.pipe_file(shelf.path(name), content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = fs.cat_file(shelf.path(name))
    finally:
        writer.join()
    if found not in shelf.possible(name):
        raise WrongResultError(
            f"{shelf.path(name)} gave {len(found)} bytes, {found[:60]!r} … {found[-60:]!r}, while"
            f" it changed between {[len(one or b'') for one in shelf.possible(name)]} bytes"
        )


READS_OF_FILES = (read_whole, read_by_blocks, read_ranges, exists)
READS = (*READS_OF_FILES, list_names)
CHANGES = (write_whole, write_by_pieces, append, copy, move, remove, read_while_it_changes)
