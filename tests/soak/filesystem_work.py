"""Jobs on filesystems; each leaves nothing behind and checks what it reads."""

from __future__ import annotations

import gc

import pytest

from modular_tf.errors import NotFoundError

MOST_BYTES = 1 << 18


def files(fs, folder, dice):
    """Write, append, read in pieces, copy, rename, list and remove."""
    fs.recursively_create_dir(folder)
    content = dice.randbytes(dice.randrange(1, MOST_BYTES))
    half = len(content) // 2
    with fs.new_writable_file(f"{folder}/f") as writer:
        writer.append(content[:half])
        writer.append(content[half:])
    with fs.new_random_access_file(f"{folder}/f") as reader:
        at = dice.randrange(len(content))
        assert reader.read(at, 4096) == content[at : at + 4096]
    fs.copy_file(f"{folder}/f", f"{folder}/g")
    fs.rename_file(f"{folder}/f", f"{folder}/h")
    assert sorted(fs.get_children(folder)) == ["g", "h"]
    assert [path[-1] for path in fs.get_matching_paths(f"{folder}/?")] == ["g", "h"]
    assert fs.stat(f"{folder}/g").length == len(content)
    with fs.open(f"{folder}/h", "rb") as stream:
        assert stream.read() == content
    counts = fs.delete_recursively(folder)
    assert (counts.undeleted_files, counts.undeleted_dirs) == (0, 0)


def region(fs, folder, dice):
    """View a file as memory, longer than the file is open."""
    fs.recursively_create_dir(folder)
    content = dice.randbytes(dice.randrange(1, 1 << 14))
    with fs.open(f"{folder}/r", "wb") as stream:
        stream.write(content)
    with fs.new_read_only_memory_region_from_file(f"{folder}/r") as whole:
        view = whole.view()
    assert bytes(view) == content
    del view
    gc.collect(0)
    fs.delete_recursively(folder)


def errors(fs, folder, dice):
    """Ask for what is not there."""
    missing = f"{folder}-{dice.randrange(1 << 30)}/none"
    for ask in (fs.stat, fs.new_random_access_file, fs.delete_file):
        with pytest.raises(NotFoundError, match="none"):
            ask(missing)
