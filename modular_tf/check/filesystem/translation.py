"""Checks of `translate_name`.

A plugin that gives names as they are is judged by what its operations make of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.check import LIBRARY, RAW, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Deviation, Unsupported, expect, expect_equal
from modular_tf.check.filesystem.by_slots import open_raw
from modular_tf.check.filesystem.workspace import CONTENT, expect_content
from modular_tf.check.under_load import Held, at_once, must_not_grow, resident_bytes, rounds_of
from modular_tf.filesystem.uri import clean_path, parse_uri
from modular_tf.native.sanitizers import sanitizer_of_process

if TYPE_CHECKING:
    from modular_tf.check.filesystem.library_session import FilesystemLibrary
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

suite = Suite("filesystem", "translation", source="TensorFlow's own translation")

_ANY = ("", "/", "/a", "/a/", "/a/b.c")
_LONG = 4096
_ODD_NAMES = ("a%2Fb", "a?b=c", "a#b", "a b", "a\\b", "naïve", "\udcff\udcfe", "a:b", "@", "~")
_THREADS, _CALLS = 8, 1000
_HEAVY = 8192
_NO_LEAK = 128  # names, of all 1000


@suite.check("FS-139", ways=LIBRARY, seconds=90)
def every_uri_is_translated(plugin: FilesystemLibrary) -> None:
    """translate_name gives a string of plugin_memory_allocate for every URI.

    Otherwise: TensorFlow aborts where it gets NULL; here every operation on the path fails.
    Remedy: Return a copy of the URI where there is nothing to translate.
    Source: filesystem.h

    Where that fails, no other check has a directory to work in.
    """
    asked = 0
    for tables in plugin.tables():
        subject = open_raw(tables, plugin.journal)
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


@suite.check("FS-140", "translate_name")
def the_empty_path_is_translated(fs: FilesystemWorkspace) -> None:
    """translate_name takes the empty path.

    Otherwise: Calls with an empty path crash the process.
    Remedy: Return a copy of it, or the name of the root.
    Source: filesystem.h
    """
    _name_of(fs, f"{fs.target.scheme}://" if fs.target.scheme else "")


@suite.check("FS-141", "translate_name")
def the_plain_root_is_a_slash(fs: FilesystemWorkspace) -> None:
    """The root of plain paths is called /, however many slashes it is written with.

    Otherwise: Listing / fails or shows something else.
    Remedy: Collapse repeated slashes.
    """
    _require_plain_paths(fs)
    for path in ("/", "//"):
        expect_equal(_name_of(fs, path), "/", f"the translation of {path!r}")


@suite.check("FS-142", "translate_name", severity=WARNING)
def relative_paths_stay_relative(fs: FilesystemWorkspace) -> None:
    """Relative plain paths stay relative, in normal form.

    Otherwise: The same file has several names, which caches and comparisons take for several files.
    Remedy: Resolve . and .. in the text of the path.
    """
    _require_plain_paths(fs)
    for path, expected in (("a_file", "a_file"), ("a_dir/..", ".")):
        expect_equal(_name_of(fs, path), expected, f"the translation of {path!r}")


@suite.check("FS-143", "translate_name", severity=WARNING)
def slashes_name_the_root(fs: FilesystemWorkspace) -> None:
    """A URI without a path names the root, however many slashes it ends with.

    Otherwise: s:// and s:/// mean different things to the plugin, and the same to users.
    Remedy: Translate all of them to the same root.
    """
    scheme = fs.target.scheme
    if not scheme:
        raise Unsupported("plain paths have no host")
    uris = [f"{scheme}:{slashes}" for slashes in ("//", "///", "////")]
    names = [_name_of(fs, uri) for uri in uris]
    if len(set(names)) > 1 and fs.offers("path_exists"):
        answers = {uri: fs.path_exists(uri).code for uri in uris}
        expect(
            len(set(answers.values())) == 1,
            "the root is not the same with more slashes",
            found=f"named {names}, path_exists returns {answers}",
        )


@suite.check("FS-144", "new_writable_file", "new_random_access_file", traits="writes directories")
def paths_are_normalised(fs: FilesystemWorkspace) -> None:
    """A path with . and .. and repeated slashes names what its normal form names.

    Otherwise: Joined paths, which tools make without cleaning them, do not reach the file.
    Remedy: Bring paths into normal form in translate_name, or leave the slot NULL.
    """
    if fs.offers("create_dir"):
        fs.make_dir("a")
        fs.make_dir("a/b")
    fs.make_file("a/c")
    expect_content(fs, fs.path("./a//b/../c"), CONTENT, "the content of root/./a//b/../c")


@suite.check("FS-145", "translate_name")
def no_path_leaves_the_root(fs: FilesystemWorkspace) -> None:
    """No number of .. in a path leads out of the root.

    Otherwise: A user who controls a file name reaches files of other users.
    Remedy: Drop every .. that stands at the root.
    """
    prefix = f"{fs.target.scheme}://" if fs.target.scheme else "/"
    root = _normal(_name_of(fs, prefix)).rstrip("/")
    for path in ("h/../../x", "../../../x", "h/a/../../../../x", "../x"):
        name = _name_of(fs, prefix + path)
        inside = f"{_normal(name)}/".startswith(f"{root}/") and not name.startswith("..")
        message = f"{prefix}{path} leads out of the root"
        expect(inside, message, expected=f"a name below {root or '/'}", found=name)


@suite.check("FS-146", "stat", traits="directories", severity=WARNING)
def a_slash_at_the_end_changes_nothing(fs: FilesystemWorkspace) -> None:
    """A directory is the same with a slash behind its name.

    Otherwise: Half of all tools write directories with the slash, and do not find them.
    Remedy: Drop slashes at the end.
    """
    uri = fs.make_dir()
    fs.stat(uri).must_be_ok()
    found = fs.stat(f"{uri}/").must_be_ok()
    expect(found is not None and found.is_directory, "stat(D/) does not call D a directory")


@suite.check("FS-147", "translate_name", severity=WARNING)
def translated_names_stay_the_same(fs: FilesystemWorkspace) -> None:
    """A name that was translated translates to itself.

    Otherwise: Hosts translate names again in their defaults, and reach another file.
    Remedy: Return names in normal form unchanged.
    """
    _require_plain_paths(fs)
    for path in ("a", "/a/b", "/a//b/", "a/../b", "/"):
        name = _name_of(fs, path)
        expect_equal(_name_of(fs, name), name, f"the translation of {name!r}, of {path!r}")


@suite.check("FS-148", "translate_name")
def every_byte_of_a_name_is_kept(fs: FilesystemWorkspace) -> None:
    """translate_name keeps every byte of a name, and takes any length.

    Otherwise: Files with unusual names cannot be reached.
    Remedy: Copy names byte by byte; decode nothing, cut nothing off.
    """
    for name in (*_ODD_NAMES, "x" * _LONG):
        translated = _name_of(fs, fs.path(name))
        message = f"the translation of root/{name:.40} does not end with the name"
        expect(translated.endswith(f"/{name}"), message, found=f"{translated:.200}")
    fs.translate_name("another-scheme://host/path")


@suite.check("FS-149", "translate_name", level=ROBUST, ways=RAW)
def threads_translate_at_once(fs: FilesystemWorkspace) -> None:
    """translate_name answers the same from every thread, and keeps no memory.

    Otherwise: It is called before every other operation: it corrupts or leaks all the time.
    Remedy: Use no static buffers.
    Source: filesystem.h
    """
    calls = rounds_of(fs.target.options, _CALLS)

    def translate(number: int) -> None:
        uri = fs.path(f"thread-{number}")
        expected = _name_of(fs, uri)
        for _ in range(calls):
            expect_equal(_name_of(fs, uri), expected, f"a translation of root/thread-{number}")

    at_once([partial(translate, number) for number in range(_THREADS)])
    if (sanitizer := sanitizer_of_process()) is not None:
        raise Unsupported(f"{sanitizer} delays frees, so growth means nothing")
    long = fs.path("x" * _HEAVY)

    def translate_long() -> None:
        fs.translate_name(long)

    for _ in range(_CALLS):  # until allocators hold what they hold for later
        translate_long()
    memory = Held("bytes of memory", resident_bytes, unit=_HEAVY, least=_NO_LEAK)
    must_not_grow(translate_long, _CALLS, "translate_name", of=[memory])


def _name_of(fs: FilesystemWorkspace, uri: str) -> str:
    """Return the translation of a URI.

    Raises:
        Deviation: It is NULL.
    """
    value: str | None = fs.translate_name(uri).must_be_ok()
    if value is None:
        raise Deviation(f"translate_name({uri:.80}) is NULL", expected="a string")
    return value


def _normal(name: str) -> str:
    """Return a name in normal form, with its scheme and host where it is a URI."""
    uri = parse_uri(name)
    front = name[: len(name) - len(uri.path)]
    return front + (clean_path(uri.path) if uri.path else "")


def _require_plain_paths(fs: FilesystemWorkspace) -> None:
    if fs.target.scheme:
        raise Unsupported("the filesystem serves no plain paths")
