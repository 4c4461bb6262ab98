"""Checks of `translate_name`.

A plugin that gives names as they are is judged by what its operations make of them.
"""

from __future__ import annotations

import gc
import os
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import LIBRARY, RAW, CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Deviation, Unsupported, expect, expect_equal
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.raw_subject import open_raw
from modular_tf.check.level import Level
from modular_tf.check.repetition import is_leak, looked_at, rounds_of
from modular_tf.filesystem.uri import clean_path, parse_uri
from modular_tf.native.sanitizers import sanitizer_of_process

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.library_stage import LibraryGround

CHECKS = CheckList("filesystem", "translation")

_SLOT = ("translate_name",)
_FILES = ("new_writable_file", "new_random_access_file")
_ANY = ("", "/", "/a", "/a/", "/a/b.c")
_SECONDS = 90.0
_LONG = 4096
_ODD_NAMES = ("a%2Fb", "a?b=c", "a#b", "a b", "a\\b", "naïve", "\udcff\udcfe", "a:b", "@", "~")
_THREADS, _CALLS = 8, 1000
_HEAVY = 8192
_NO_LEAK = 1 << 20  # of the 8 MiB in all
_PAGE = os.sysconf("SC_PAGE_SIZE")


@CHECKS.check("FS-139", Level.WORKS, passes=LIBRARY, rows=(39,), seconds=_SECONDS)
def translates_everything(ground: LibraryGround) -> None:
    """The root, and names below it; where that fails, no other check has a directory to work in."""
    asked = 0
    for tables in ground.tables():
        subject = open_raw(tables, ground.journal)
        front = f"{tables.scheme}://host" if tables.scheme else "/host"
        try:
            for uri in (front + path for path in _ANY if subject.has("translate_name")):
                asked += 1
                answer = subject.translate_name(uri)
                expect(answer.value is not None, f"translate_name({uri}) is NULL")
        finally:
            subject.cleanup()
    if not asked:
        raise Unsupported("TF_FilesystemOps.translate_name is NULL")


@CHECKS.check("FS-140", Level.WORKS, needs=_SLOT, rows=(40,))
def translates_nothing(ground: FilesystemGround) -> None:
    """A URI with nothing behind the scheme; "" for plain paths."""
    _name_of(ground, f"{ground.target.scheme}://" if ground.target.scheme else "")


@CHECKS.check("FS-141", Level.WORKS, needs=_SLOT, rows=(41,))
def knows_the_plain_root(ground: FilesystemGround) -> None:
    """Tried on `/` and `//`."""
    _require_plain_paths(ground)
    for path in ("/", "//"):
        expect_equal(_name_of(ground, path), "/", f"the translation of {path!r}")


@CHECKS.check("FS-142", Level.WORKS, needs=_SLOT, rows=(42,))
def knows_relative_paths(ground: FilesystemGround) -> None:
    """Tried on `a_file` and `a_dir/..`."""
    _require_plain_paths(ground)
    for path, expected in (("a_file", "a_file"), ("a_dir/..", ".")):
        expect_equal(_name_of(ground, path), expected, f"the translation of {path!r}")


@CHECKS.check("FS-143", Level.WORKS, needs=_SLOT, rows=(43,))
def knows_the_root(ground: FilesystemGround) -> None:
    """s://, s:///, s:////: the same name, or the same answer."""
    scheme = ground.target.scheme
    if not scheme:
        raise Unsupported("plain paths have no host")
    uris = [f"{scheme}:{slashes}" for slashes in ("//", "///", "////")]
    names = [_name_of(ground, uri) for uri in uris]
    if len(set(names)) > 1 and ground.subject.offers("path_exists"):
        answers = {uri: ground.subject.path_exists(uri).code for uri in uris}
        expect(
            len(set(answers.values())) == 1,
            "the root is not the same with more slashes",
            found=f"named {names}, path_exists returns {answers}",
        )


@CHECKS.check("FS-144", Level.WORKS, needs=_FILES, traits=("writes", "directories"), rows=(44,))
def cleans_paths(ground: FilesystemGround) -> None:
    """root/./a//b/../c, where root/a/c is a file."""
    if ground.subject.offers("create_dir"):
        ground.make_dir("a")
        ground.make_dir("a/b")
    ground.make_file("a/c")
    expect_content(ground, ground.path("./a//b/../c"), CONTENT, "the content of root/./a//b/../c")


@CHECKS.check("FS-145", Level.WORKS, needs=_SLOT, rows=(45,))
def stays_inside(ground: FilesystemGround) -> None:
    """More .. than there are directories, with a host and without."""
    prefix = f"{ground.target.scheme}://" if ground.target.scheme else "/"
    root = _normal(_name_of(ground, prefix)).rstrip("/")
    for path in ("h/../../x", "../../../x", "h/a/../../../../x", "../x"):
        name = _name_of(ground, prefix + path)
        inside = f"{_normal(name)}/".startswith(f"{root}/") and not name.startswith("..")
        message = f"{prefix}{path} leads out of the root"
        expect(inside, message, expected=f"a name below {root or '/'}", found=name)


@CHECKS.check("FS-146", Level.WORKS, needs=("stat",), traits=("directories",), rows=(46,))
def takes_a_slash_behind(ground: FilesystemGround) -> None:
    """Tried on a directory."""
    uri = ground.make_dir()
    expect_ok(ground.subject.stat(uri), "stat(D)")
    found = expect_ok(ground.subject.stat(f"{uri}/"), "stat(D/)")
    expect(found is not None and found.is_directory, "stat(D/) does not call D a directory")


@CHECKS.check("FS-147", Level.WORKS, needs=_SLOT, rows=(47,))
def translates_once(ground: FilesystemGround) -> None:
    """The translation of a translation, of plain paths."""
    _require_plain_paths(ground)
    for path in ("a", "/a/b", "/a//b/", "a/../b", "/"):
        name = _name_of(ground, path)
        expect_equal(_name_of(ground, name), name, f"the translation of {name!r}, of {path!r}")


@CHECKS.check("FS-148", Level.WORKS, needs=_SLOT, rows=(48,))
def keeps_names(ground: FilesystemGround) -> None:
    """Odd names, a long one, and a URI of another scheme, of which nothing is demanded."""
    for name in (*_ODD_NAMES, "x" * _LONG):
        translated = _name_of(ground, ground.path(name))
        message = f"the translation of root/{name:.40} does not end with the name"
        expect(translated.endswith(f"/{name}"), message, found=f"{translated:.200}")
    ground.subject.translate_name("another-scheme://host/path")


@CHECKS.check("FS-149", Level.ROBUST, passes=RAW, needs=_SLOT, rows=(49,))
def translates_in_many_threads(ground: FilesystemGround) -> None:
    """8 threads, 1000 names each; then long ones, while memory is watched."""
    calls = rounds_of(ground.target.options, _CALLS)

    def translate(number: int) -> None:
        uri = ground.path(f"thread-{number}")
        expected = _name_of(ground, uri)
        for _ in range(calls):
            expect_equal(_name_of(ground, uri), expected, f"a translation of root/thread-{number}")

    run_at_once([partial(translate, number) for number in range(_THREADS)])
    if (sanitizer := sanitizer_of_process()) is not None:
        raise Unsupported(f"{sanitizer} delays frees, so growth means nothing")
    long = ground.path("x" * _HEAVY)

    def translate_long() -> None:
        ground.subject.translate_name(long)

    for _ in range(_CALLS):  # until allocators hold what they hold for later
        translate_long()
    held = looked_at(translate_long, _CALLS, _resident)
    if is_leak(held, _NO_LEAK):
        found = f"{held[-1] - held[0] >> 10} KiB more after {_CALLS} names of {_HEAVY} bytes"
        raise Deviation("translate_name keeps memory", found=found)


def _name_of(ground: FilesystemGround, uri: str) -> str:
    """Return the translation of a URI.

    Raises:
        Deviation: It is NULL.
    """
    value: str | None = expect_ok(ground.subject.translate_name(uri), f"translate_name({uri:.80})")
    if value is None:
        raise Deviation(f"translate_name({uri:.80}) is NULL", expected="a string")
    return value


def _normal(name: str) -> str:
    """Return a name in normal form, with its scheme and host where it is a URI."""
    uri = parse_uri(name)
    front = name[: len(name) - len(uri.path)]
    return front + (clean_path(uri.path) if uri.path else "")


def _require_plain_paths(ground: FilesystemGround) -> None:
    if ground.target.scheme:
        raise Unsupported("the filesystem serves no plain paths")


def _resident() -> int:
    """Return how many bytes of memory this process has, without garbage of Python's."""
    gc.collect()
    with open("/proc/self/statm", "rb") as sizes:
        return int(sizes.read().split()[1]) * _PAGE
