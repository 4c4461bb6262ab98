"""A slot of a filesystem is one row: all layers have it, and none forgets it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_program
from tests.fixtures.machine import CACHE_ROOT
from tests.isolation.protocol_fuzzer import HOST_SOURCES

_PACKAGE = Path(__file__).parents[2] / "modular_tf"
_COPIED = ("native/core", "native/host_runtime", "include")
_SOURCES = (
    *HOST_SOURCES,
    "bridge",
    "worker_server",
)
_END_OF_ROWS = "#undef MTF_SLOT"
_ROW = "MTF_SLOT(count_links, kPaths, kUnimplemented, kCalled, kAsked)\n"
_END_OF_TABLE = "} TF_FilesystemOps_V221;"
_MEMBER = "  int64_t (*count_links)(const TF_Filesystem* fs, const char* path, TF_Status*);\n"
_UNIMPLEMENTED = -12


def _put_before(text, place, added):
    assert text.count(place) == 1
    return text.replace(place, added + place)


def _core_with_a_slot(row):
    """Return a copy of the native sources, whose path is the same for the same content."""
    files = [
        path
        for folder in _COPIED
        for path in sorted((_PACKAGE / folder).rglob("*"))
        if path.is_file()
    ]
    content = hashlib.sha256(b"".join(map(Path.read_bytes, files)) + row.encode()).hexdigest()
    copy = CACHE_ROOT / f"slots-{content[:24]}"
    if not copy.exists():
        CACHE_ROOT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE_ROOT) as folder:
            _write_copy(Path(folder) / "made", files, row)
            with suppress(OSError):  # another process was faster
                (Path(folder) / "made").rename(copy)
    return copy


def _write_copy(copy, files, row):
    for path in files:
        target = copy / path.relative_to(_PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    rows = copy / "native" / "core" / "filesystem_slots.def"
    rows.write_text(_put_before(rows.read_text(), _END_OF_ROWS, row))
    table = copy / "include" / "modular_tf" / "filesystem_ops.h"
    table.write_text(_put_before(table.read_text(), _END_OF_TABLE, _MEMBER))


def _compiled(copy, source):
    folders = [copy / "native" / "core", copy / "native" / "host_runtime", copy / "include"]
    return compile_object(source, ["_GNU_SOURCE=1"], folders, ["-O0"])


def test_a_row_gives_a_slot_to_every_layer():
    copy = _core_with_a_slot(_ROW)
    sources = [copy / "native" / "core" / f"{name}.cc" for name in _SOURCES]
    sources += [copy / "native" / "host_runtime" / "status.c"]
    sources += [Path(__file__).with_name("added_slot.cc")]
    objects = [_compiled(copy, source) for source in sources]
    program = link_program("added_slot", objects, ["-rdynamic", "-ldl", "-lpthread"])

    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)

    path = len("/abc")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{_UNIMPLEMENTED} {path} {path} 42\n"


def test_a_slot_without_a_row_does_not_compile():
    copy = _core_with_a_slot("")
    with pytest.raises(pytest.fail.Exception, match="each slot has a row"):
        _compiled(copy, copy / "native" / "core" / "filesystem_operations.cc")
