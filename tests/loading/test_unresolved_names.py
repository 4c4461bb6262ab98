"""Libraries that need each other by names to which none answers by itself.

The dynamic linker would look for such a library and map what is there by then. Each library leaves
a trace by its constructor, so one that nobody judged shows that it was mapped.
"""

import ctypes
import os
import shutil
from itertools import cycle
from pathlib import Path

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import PluginError
from modular_tf.loading import binding
from tests.fixtures.compiler import compile_object, link_library
from tests.loading.conftest import load_seen
from tests.plugins.build import framework_stub

pytestmark = pytest.mark.usefixtures("traces")

SOURCE = Path(__file__).with_name("needed_library.c")
LONG_NAME = "x" * 250 + ".so"  # room for any name that a test wants to see needed
COMPANION = "libcompanion.so"


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    """Make the folder for libraries the current directory."""
    monkeypatch.chdir(folder)


def put(library, place, replace=()):
    """Put a library into a place, with bytes of its own, and other strings."""
    content = library.read_bytes()
    for old, new in replace:
        assert content.count(old.encode()) == 1
        content = content.replace(old.encode(), new.encode().ljust(len(old), b"\0"))
    place.write_bytes(content + os.urandom(16))  # where no linker looks
    return place


def companion(place, answer=1, name="companion", soname=None, options=()):
    compiled = compile_object(SOURCE, [f'NAME="{name}"', f"ANSWER={answer}"])
    named = [f"-Wl,-soname,{soname}"] if soname else []
    return put(link_library(place.name, [compiled], [*named, *options]), place)


def plugin(place, needed, search_path, options=()):
    """Build a plugin that needs a library by any name at all."""
    compiled = compile_object(SOURCE, ['NAME="plugin"'])
    versions = [option for option in options if "version-script" in option]
    named = [f"-Wl,-soname,{LONG_NAME}", *versions]
    stub = link_library(LONG_NAME, [compile_object(SOURCE, ['NAME="x"', "ANSWER=0"])], named)
    path = [] if search_path is None else [f"-Wl,-rpath,{search_path}"]
    built = link_library(place.name, [compiled], [str(stub), *path, *options])
    put(built, place, [(LONG_NAME, needed)])
    with ElfFile(str(place)) as elf:
        assert needed in elf.dynamic.needed
    return place


def ask(library):
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("ask"))()


@pytest.fixture
def swap_first(monkeypatch):
    """Have libraries replaced by another one right before the stub is mapped."""
    map_stub = binding._map_stub

    def swap(evil, *places):
        def patched(*arguments):
            for place in places:
                new = Path(shutil.copy(evil, evil.with_name("new.so")))
                new.replace(place)
            return map_stub(*arguments)

        monkeypatch.setattr(binding, "_map_stub", patched)

    return swap


# By which name a companion is needed, the search path, and its own name.
NEEDS = {
    "file name": (COMPANION, "{folder}", None),
    "file name beside it": (COMPANION, "$ORIGIN", None),
    "another name": (COMPANION, "{folder}", "libother.so.1"),
    "own name": ("libother.so.1", "{folder}", "libother.so.1"),
    "path": ("{folder}/libcompanion.so", None, None),
    "path and another name": ("{folder}/libcompanion.so", None, "libcompanion.so"),
    "relative path": ("./libcompanion.so", None, None),
    "path beside it": ("$ORIGIN/libcompanion.so", None, None),
    "in the current directory": (COMPANION, ":/nowhere", None),
}
WAYS = [{"age": "settled"}, {"age": "fresh"}, {"age": "settled", "sealed": True}]


@pytest.mark.parametrize(("way", "options"), list(zip(NEEDS, cycle(WAYS), strict=False)))
def test_what_takes_the_place_of_a_companion_during_the_load_is_not_mapped(
    way, options, folder, traces, swap_first
):
    name, search_path, soname = NEEDS[way]
    needed = companion(folder / COMPANION, soname=soname)
    if way == "own name":  # it is found by that name, so a file has it
        needed = needed.rename(folder / "libother.so.1")
    where = search_path and search_path.replace("{folder}", str(folder))
    library = plugin(folder / "libx.so", name.replace("{folder}", str(folder)), where)
    swap_first(companion(folder / "evil.so", answer=2, name="evil", soname=soname), needed)

    assert ask(load_seen(library, needed, **options)) == 1
    assert traces.names == ["companion", "plugin"]


@pytest.mark.parametrize("options", WAYS, ids=["file", "copy", "sealed"])
@pytest.mark.parametrize("search_path", ["{folder}", "$ORIGIN"])
def test_a_companion_is_mapped_once(search_path, options, folder, temporary):
    needed = companion(folder / COMPANION)
    library = plugin(folder / "libx.so", COMPANION, search_path.replace("{folder}", str(folder)))

    before = inodes_of(needed)
    load_seen(library, needed, **options)

    assert len(inodes_of(needed) - before) == 1


def inodes_of(file):
    """Return the inodes that are mapped of a file or a copy of it."""
    maps = os.fsdecode(Path("/proc/self/maps").read_bytes()).splitlines()
    shown = (f" {file}", f" /memfd:{file.name}")
    return {line.split()[4] for line in maps if any(name in line for name in shown)}


def test_versions_of_a_companion_are_those_of_the_judged_one(folder, tmp_path):
    script = tmp_path / "versions"
    script.write_text("FIRST { global: *; };\n")
    options = [f"-Wl,--version-script={script}"]
    needed = companion(folder / COMPANION, options=options)
    library = plugin(folder / "libx.so", COMPANION, str(folder), options)
    with ElfFile(str(library)) as elf:
        assert (COMPANION, "FIRST") in {need[:2] for need in elf.version_needs()}

    assert ask(load_seen(library, needed)) == 1


def test_companions_of_one_name_serve_the_plugins_that_they_came_with(folder):
    libraries = []
    for number, name in enumerate(("one", "two"), 1):
        place = folder / name
        place.mkdir()
        needed = companion(place / COMPANION, answer=number, name=name)
        libraries.append((plugin(place / f"lib{name}.so", COMPANION, str(place)), needed))

    mapped = [load_seen(*files, age="settled") for files in libraries]

    assert [ask(library) for library in mapped] == [1, 2]


def test_a_companion_may_need_another_by_its_file_name(folder, traces, swap_first):
    first = companion(folder / "libfirst.so", name="first")
    middle = plugin(folder / "libmiddle.so", "libfirst.so", str(folder))
    library = plugin(folder / "libx.so", "libmiddle.so", str(folder))
    swap_first(companion(folder / "evil.so", answer=2, name="evil"), first, middle)

    load_seen(library, first, middle, age="settled")

    assert traces.names == ["first", "plugin"]


# -- the current directory -------------------------------------------------------------------------

_IN_CHILD = """
    import ctypes, os, sys
    from modular_tf.discovery.file_identity import see
    from modular_tf.loading.binding import map_file

    plugin, evil, age = sys.argv[1:]
    seen = see(plugin)
    if age == "settled":
        seen = seen._replace(sha256=None, seen_ns=seen.identity.ctime_ns + 10**10)
    os.rename(evil, "libcompanion.so")
    library = map_file(plugin, [], checked=[seen])
    print(ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("ask"))())
"""


@pytest.mark.parametrize(
    ("search_path", "age"),
    [
        (":/nowhere", "settled"),
        ("/nowhere:", "fresh"),
        (".", "settled"),
        ("x/..", "fresh"),
        ("$LIB/../..:", "settled"),
    ],
)
def test_what_appears_in_the_current_directory_is_not_mapped(
    search_path, age, folder, tmp_path, traces, run_python
):
    """The library was found where the system has them."""
    for name in ("x", "lib/x86_64-linux-gnu"):
        (tmp_path / name).mkdir(parents=True)
    (folder / "system").mkdir()
    companion(folder / "system" / COMPANION, soname=COMPANION)
    options = ["-Wl,--disable-new-dtags"]
    library = plugin(folder / "libx.so", COMPANION, search_path, options)
    evil = companion(folder / "evil.so", answer=2, name="evil", soname=COMPANION)
    environment = {"LD_LIBRARY_PATH": str(folder / "system")}

    child = run_python(_IN_CHILD, library, evil, age, env=environment)

    assert child.stdout == "1\n"
    assert traces.names == ["companion", "plugin"]


def test_a_search_path_that_cannot_be_changed_is_refused(folder, traces):
    """It is the end of another string, which may mean anything."""
    library = plugin(folder / "libx.so", "libc.so.6", "X" * 40, options=[f"-Wl,-soname,{'Y' * 40}"])
    content = library.read_bytes()
    with ElfFile(str(library)) as elf:
        table = content.index(b"\0", elf.dynamic.strings._offset)
        at = content.index(b"X" * 40) - table
    one, two = (at.to_bytes(8, "little"), (at + 5).to_bytes(8, "little"))
    entry = (29).to_bytes(8, "little") + one
    assert content.count(entry) == 1
    library.write_bytes(content.replace(entry, entry[:8] + two))

    with pytest.raises(PluginError, match="leads to the current directory") as caught:
        load_seen(library, age="settled")

    assert caught.value.rule == "LD-097"
    assert traces.names == []


def test_a_copy_without_a_name_of_its_own_is_not_mapped_again_from_its_file(folder):
    """Its file needs a library of TensorFlow's, and only the copy is led to the host."""
    stub = framework_stub("_pywrap_tensorflow_internal.so")
    needed = companion(folder / COMPANION, options=["-Wl,--no-as-needed", str(stub)])

    assert ask(load_seen(plugin(folder / "libx.so", COMPANION, "$ORIGIN"), needed)) == 1
