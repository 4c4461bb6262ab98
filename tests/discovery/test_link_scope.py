"""What a plugin is linked with: files are those that the linker takes, and the work is bounded."""

import os
import re
import shutil
import signal
import struct
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking import dynamic_linker, link_check, link_scope, system_libraries
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.link_scope import (
    LinkedLibrary,
    LinkScope,
    MissingLibrary,
    ProcessScope,
)
from modular_tf.discovery.linking.system_libraries import is_of_system
from tests.discovery.conftest import FILESYSTEM, make_candidate, rules_of
from tests.discovery.elf_builder import ElfBuilder

MACHINE = running_program().machine
OTHER_MACHINE = next(number for number in (62, 183) if number != MACHINE)


def library(path, needed=(), **more):
    """Write a plugin, or a library that comes with one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {"machine": MACHINE, "undefined": (), "weak": (), "flags": 6, "soname": path.name}
    path.write_bytes(ElfBuilder(needed=needed, **(settings | more)).build())
    return path


def found(path, library_path="", **options):
    """Return the files that are mapped with a library."""
    with closing(ProcessScope(library_path=library_path)) as process:
        return found_by(process, path, **options)


def found_by(process, path, **options):
    with ElfFile(str(path)) as elf:
        root = LinkedLibrary(path.name, elf, is_companion=True)
        with closing(LinkScope(root, process, **options)) as scope:
            return scope.paths


def test_origin_follows_the_path_not_the_link(tmp_path):
    root = library(tmp_path / "real/libroot.so", ("libdep.so",), paths={"runpath": "$ORIGIN"})
    dep = library(tmp_path / "linked/libdep.so")
    link = tmp_path / "linked/libroot.so"
    link.symlink_to(root)

    assert (found(root), found(link)) == ([], [str(dep)])


@pytest.mark.parametrize("separator", [":", ";"])
def test_files_for_other_machines_are_passed_over_and_damaged_ones_are_not(
    tmp_path, separator, prober
):
    root = library(tmp_path / "libroot.so", ("libdep.so",))
    other = library(tmp_path / "a/libdep.so", machine=OTHER_MACHINE)
    good = library(tmp_path / "b/libdep.so")
    path = separator.join(str(tmp_path / name) for name in "ab")

    assert found(root, path) == [str(good)]
    other.write_bytes(other.read_bytes()[:100])  # the linker examines the machine first
    assert found(root, path) == [str(good)]
    other.write_text("INPUT(libdep.so.1)")
    prober._library_path = path
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:  # whose status is then lost; so it is where a thread waits for any child
        (problem,) = prober.probe(make_candidate(root)).problems
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (problem.rule, problem.path) == ("LD-004", str(other))
    assert "it is a linker script" in problem.message
    for make, rule in (
        (lambda place: place.symlink_to(place), "LD-003"),
        (lambda place: place.symlink_to("/dev/null"), "LD-002"),
        (Path.mkdir, "LD-002"),
    ):
        other.unlink()
        make(other)
        (problem,) = prober.probe(make_candidate(root)).problems
        assert (problem.rule, problem.path) == (rule, str(other))


def test_a_file_that_ends_the_linker_is_damaged(tmp_path, prober):
    """It may be cut off where the linker reads it, and not before it is mapped."""
    path = library(tmp_path / "libx.so", ("libdep.so",), paths={"runpath": "$ORIGIN"})
    dep = library(tmp_path / "libdep.so")
    data = bytearray(dep.read_bytes())
    data[7] = 0xFF  # EI_OSABI, of which only the linker is particular
    dep.write_bytes(data)

    (problem,) = prober.probe(make_candidate(path)).problems

    assert (problem.rule, problem.path) == ("LD-005", str(dep))
    assert "the dynamic linker refuses it" in problem.message


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("deps/libdep.so", "{folder}/deps/libdep.so"),  # a name with a slash is a path
        ("deps/libdep.so", "$ORIGIN/deps/libdep.so"),
        ("linux-gate.so.1", "linux-gate.so.1"),  # as the library of the kernel is called
        ("linux-gate.so.1 (0x1)", "linux-gate.so.1 (0x1)"),
    ],
)
def test_a_library_is_found_by_path_or_by_any_name(tmp_path, name, needed):
    dep = library(tmp_path / name)
    names = (needed.format(folder=tmp_path),)

    assert found(library(tmp_path / "libx.so", names, paths={"runpath": "$ORIGIN"})) == [str(dep)]


def test_a_missing_library_is_named_by_the_path_that_it_is_needed_by(tmp_path, prober):
    path = library(tmp_path / "libx.so", ("$ORIGIN/libgone.so",))

    (problem,) = prober.probe(make_candidate(path)).problems

    needed = f"{tmp_path}/libgone.so, which is not found"
    assert (problem.rule, problem.message) == ("LD-013", f"libx.so needs {needed}")


def test_a_scope_takes_each_library_once_and_ends_in_circles(tmp_path):
    paths = {"rpath": "$ORIGIN"}
    first = library(tmp_path / "liba.so", ("libb.so",), paths=paths)
    second = library(tmp_path / "libb.so", ("liba.so",), paths=paths)
    root = library(tmp_path / "libroot.so", ("liba.so", "libb.so"), paths=paths)

    assert found(root) == [str(first), str(second)]
    assert found(root, offered={"liba.so", "libb.so"}) == []
    second.unlink()
    with closing(ProcessScope()) as process, ElfFile(str(root)) as elf:
        linked = LinkedLibrary("libroot.so", elf, is_companion=True)
        with closing(LinkScope(linked, process)) as scope:
            assert scope.missing == [MissingLibrary("libb.so", "libroot.so")]


def test_what_the_host_replaces_is_searched_for_a_filter(tmp_path):
    """Only needed names are changed in a private copy."""
    name = "libreplaced.so"
    replaced = library(tmp_path / name)
    paths = {"runpath": "$ORIGIN"}
    filters = ((0x7FFFFFFD, name),)
    plain = library(tmp_path / "libplain.so", (name,), paths=paths)
    filtered = library(tmp_path / "libfilter.so", (name,), paths=paths, filters=filters)

    with closing(ProcessScope()) as process:
        assert found_by(process, plain, offered={name}) == []
        assert found_by(process, filtered, offered={name}) == [str(replaced)]


def test_a_companion_does_not_come_before_what_the_program_has(tmp_path):
    """Not even for a library that the program has only by way of another one."""
    with closing(ProcessScope()) as process:
        names = [Path(path).name for path in process.paths]
    assert "libc.so.6" in names
    for name in names:
        library(tmp_path / "own" / name)
    library(tmp_path / "own/libdep.so", tuple(names), paths={"rpath": "$ORIGIN"})
    needed = (*reversed(names), "libdep.so")
    root = library(tmp_path / "libroot.so", needed, paths={"rpath": "$ORIGIN/own"})

    assert found(root) == [str(tmp_path / "own/libdep.so")]


# -- the system's libraries -----------------------------------------------------------------------


def test_the_systems_are_those_of_its_cache_and_folders():
    tool = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    printed = subprocess.run([tool, "-p"], capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"^\t\S+ \(.*\) => (\S+)$", printed, re.MULTILINE)

    assert paths
    assert all(map(is_of_system, [*paths, "/usr/lib64/glibc-hwcaps/x86-64-v3/libx.so"]))
    assert not is_of_system("/usr/lib64/glibc-hwcaps/x86-64-v3/../../../../home/libx.so")


def _cache_bytes(entries, *, old=None):
    strings, rows, head = b"", b"", 48 + 24 * len(entries)
    for name, path in entries:
        at = head + len(strings)
        rows += struct.pack("=iIIIQ", 0x303, at, at + len(name) + 1, 0, 0)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    magic = b"glibc-ld.so.cache1.1"
    new = struct.pack("=20sIIB3xI12x", magic, len(entries), len(strings), 2, 0) + rows + strings
    if old is None:
        return new
    front = b"ld.so-1.7.0\0" + struct.pack("=I", old) + bytes(12 * old)
    return front + bytes(-len(front) % 8) + new


@pytest.fixture
def linker_cache(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setattr(system_libraries, "LINKER_CACHE", str(path))
    return path


@pytest.mark.parametrize("old", [None, 0, 1, 2, 3])
def test_both_formats_of_the_cache(linker_cache, old):
    entries = [("liba.so", "/one/liba.so"), ("/three/x", "/b"), ("liba.so", "/two/liba.so")]
    linker_cache.write_bytes(_cache_bytes(entries, old=old))

    assert all(is_of_system(path) for _, path in entries)
    assert not any(map(is_of_system, ("/three/x", "/wo/liba.so", "/liba.so", "/one/liba.s")))


def test_a_damaged_cache_counts_as_none(linker_cache):
    whole = _cache_bytes([("liba.so", "/one/liba.so")], old=1)

    assert not is_of_system("/one/liba.so")
    for size in range(len(whole)):
        linker_cache.write_bytes(whole[:size])
        assert not is_of_system("/one/liba.so")


# -- bounds ---------------------------------------------------------------------------------------


def test_a_plugin_that_needs_too_many_libraries_is_refused_without_a_search(
    tmp_path, prober, monkeypatch
):
    for at in range(3):  # each of a chain needs one more, and all those that are not there
        needed = (f"lib{at + 1}.so", *(f"z{at}-{n}" for n in range(400)))
        library(tmp_path / f"lib{at}.so", needed, paths={"rpath": "$ORIGIN"})
    assert rules_of(prober.probe(make_candidate(tmp_path / "lib0.so"))) == ["LD-096"]

    path = library(tmp_path / "libx.so", tuple(f"none{at:x}" for at in range(60_000)))
    asked = []
    monkeypatch.setattr(link_scope, "ask_linker", lambda needed, **_: asked.extend(needed))
    (problem,) = prober.probe(make_candidate(path)).problems
    assert problem.rule == "LD-096"
    assert problem.message == "linking libx.so takes more than 1024 libraries"
    assert asked == []


@pytest.mark.parametrize(
    ("limit", "value", "is_fifo"),
    [
        ("_TIMEOUT_S", 0.3, False),
        ("_MOST_OUTPUT", 1 << 20, False),
        ("_TIMEOUT_S", 0.3, True),  # that is needed by its path
    ],
)
def test_a_search_that_takes_too_long_is_ended(
    limit, value, is_fifo, tmp_path, prober, monkeypatch
):
    places = ":".join(f"/{'./' * at}" for at in range(240))  # many ways to a folder that exists
    os.mkfifo(tmp_path / "libfifo.so")
    needed = (str(tmp_path / "libfifo.so"),) if is_fifo else tuple(f"n{at}" for at in range(1000))
    path = library(tmp_path / "libx.so", needed, paths={"rpath": places})
    prober._scope()  # what the program itself needs is known
    monkeypatch.setattr(dynamic_linker, limit, value)

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-096"]
    assert result.problems[0].message == "linking libx.so takes the dynamic linker too long"


def test_a_plugin_that_asks_too_many_libraries_for_too_many_symbols_is_refused(
    tmp_path, prober, monkeypatch
):
    path = library(tmp_path / "libx.so", undefined=tuple(f"u{at}" for at in range(1000)))
    assert rules_of(prober.probe(make_candidate(path))) == ["LD-014"]
    monkeypatch.setattr(link_check, "_MAX_LOOK_UPS", 1000)

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-096"]
    assert result.missing_symbols == ()


# -- attacks on what the linker is asked ----------------------------------------------------------

_CODE = {
    "constructor": "__attribute__((constructor)) static void first(void) { __builtin_trap(); }",
    "resolver": """
        static void (*choose(void))(void) { __builtin_trap(); }
        void indirect(void) __attribute__((ifunc("choose")));
        void use(void) { indirect(); }
    """,
    "init": "void first(void) { __builtin_trap(); }",
    "auditor": "unsigned la_version(unsigned version) { __builtin_trap(); return version; }",
}


@pytest.mark.parametrize("code", _CODE)
def test_nothing_of_what_is_asked_about_runs(code, compile_library, monkeypatch):
    source = FILESYSTEM + _CODE[code]
    init = ["-Wl,-init,first"] if code == "init" else []
    options = ["-Wl,-z,now", *init, "-Wl,-soname,libbrought.so"]
    brought = compile_library("libbrought.so", source, *options)
    ways = [f"-Wl,{way},{brought}" for way in ("--audit", "--depaudit", "-dynamic-linker", "-f")]
    rest = ("-Wl,--no-as-needed", str(brought), "-Wl,-rpath,$ORIGIN", "-Wl,-z,now")
    path = compile_library("libx.so", source, *init, *ways, *rest)
    for name in ("LD_AUDIT", "LD_BIND_NOW", "LD_WARN", "LD_DEBUG_OUTPUT", "LD_PROFILE"):
        monkeypatch.setenv(name, str(brought))

    assert found(path) == [str(brought)]
    program = [running_program().path, "-c", f"import ctypes; ctypes.CDLL({str(path)!r})"]
    environment = {"LD_AUDIT": str(brought)} if code == "auditor" else {}
    assert subprocess.run(program, check=False, env=environment).returncode < 0


@pytest.mark.parametrize(
    "name",
    [
        "libnone.so\n\tlibother.so => /lib/libother.so (0x1)",
        "libnone.so => /lib/libother.so (0x1)",
        "x\n       1:\t  trying file=/lib/libother.so",
    ],
)
@pytest.mark.parametrize("place", ["plugin", "companion", "filter", "search path"])
def test_names_cannot_pretend_to_be_answers(name, place, tmp_path, prober):
    forgeries = {"filter": {"filters": ((0x7FFFFFFD, name),)}, "companion": {"needed": (name,)}}
    forgeries["search path"] = {"paths": {"runpath": name}}
    library(tmp_path / "libforger.so", **forgeries.get(place, {}))
    needed = (name,) if place == "plugin" else ("libforger.so",)
    path = library(tmp_path / "libx.so", needed, paths={"runpath": "$ORIGIN"})

    result = prober.probe(make_candidate(path))

    assert "LD-096" in rules_of(result)
    assert not result.loadable


# -- the current directory ------------------------------------------------------------------------


def test_another_current_directory_means_another_library(tmp_path, prober, monkeypatch):
    """What was found out holds for a directory in which the same is there."""
    for name in ("here", "absolute"):
        library(tmp_path / name / "libdep.so")
    paths = {"runpath": f":{tmp_path}/absolute"}
    plugin = make_candidate(library(tmp_path / "libx.so", ("libdep.so",), paths=paths))

    for directory, place in ((tmp_path / "here", "here"), (tmp_path, "absolute")):
        monkeypatch.chdir(directory)
        result = prober.probe(plugin)
        assert [each.path for each in result.libraries] == [str(tmp_path / place / "libdep.so")]
        assert "libdep.so" in result.passed_over

    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert found(Path(plugin.path)) == [str(tmp_path / "absolute/libdep.so")]
    monkeypatch.chdir(tmp_path)  # or the test could not leave
