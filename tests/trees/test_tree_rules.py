"""What copies, moves, removes and walks trees loses nothing and leaves nothing out in silence.

Each rule holds in every store, for each face that offers the operation. What holds of all of them
is held to by the model of `operations`: nothing is lost, nothing appears outside of the target, and
what reports no failure has done all of it.
"""

import itertools
from collections import Counter
from typing import NamedTuple

import pytest

from tests.fixtures.matrices import BEYOND_THE_SAMPLE
from tests.trees import verbs
from tests.trees.operations import KINDS, Step, Trees
from tests.trees.stores import LINK, NAMES
from tests.trees.verbs import run

CLOUD = {"s3", "az"}
LINKED = ("posix", "local")
KEYED = ("s3", "az")
UNLINKED = ("ram", "python", "s3", "az")
SPELT = ("ram", "posix", "local")  # elsewhere '//' and '.' are parts of names
ALL = NAMES
SAMPLE = {"posix", "s3"}  # a disk, and an object store
STORE, DISK = 0, 1  # places of a step


def marks_of(name):
    group = pytest.mark.xdist_group(f"trees {name if name in CLOUD else 'here'}")
    return [group, pytest.mark.wild, pytest.mark.emulator] if name in CLOUD else [group]


def store_parameter(name):
    return pytest.param(name, marks=marks_of(name))


def rows(names, *arguments):
    """Parametrize a rule by stores, and by ways (and more) to do something.

    Each run has all ways in two stores, of one kind each, and every third of them in the others.
    """
    cases = list(itertools.product(*(values for _, values in arguments)))
    argument_names = ["store", *(argument for argument, _ in arguments)]
    found = sampled(itertools.product(names, cases))
    return pytest.mark.parametrize(argument_names, found, indirect=["store"])


def sampled(cases):
    """Return parameters: each run has all in two stores, and every third of them in the others."""
    found = []
    for number, (name, case) in enumerate(cases):
        beyond = [BEYOND_THE_SAMPLE] * (name not in SAMPLE and number % 3 != 0)
        found.append(pytest.param(name, *case, marks=[*marks_of(name), *beyond]))
    return found


# ---- a step in a tree, and how it ends ----

CLI_FILE = ("cli cp", "cli mv")
TREE = {"d/x.txt": "precious", "d/sub/y.txt": "too", "other": "o"}
NAMED = {"real/f": "precious", "link": f"{LINK}real", "to_f": f"{LINK}real/f"}
LOOP = {"l/sub/f": "hello\n", "l/one": f"{LINK}.", "l/sub/two": f"{LINK}.."}
LINKS = {"d/f": "f", "d/sub/g": "g", "out/kept": "k", "d/link": f"{LINK}../out",
    "d/sub/to_kept": f"{LINK}../../out/kept", "d/nowhere": f"{LINK}none"}  # fmt: skip
TO_OUT = {"d/g": "g", "d/link": f"{LINK}../out", "out/f": "kept"}
NOWHERE = {"d/f": "f", "d/sub/g": "g", "d/sub/link": f"{LINK}none"}
ODD = {"t/a": "1", "t/new\nline": "2", "t/ü %20 #?&+;": "3", "t/[x]*": "4", "t/-d": "5",
    "t/deep/ b ": "6", "t/tab\t'\"": "7", "t/~": "8", "t/deep/$HOME": "9"}  # fmt: skip
BYTES = {"t/\udcff\udcfe": "bytes", "t/a": "a"}
TAKEN = {"d/a": "1", "d/b": "2", "e/d/a/kept": "k", "e/d/b": "old"}
KEYS = {
    "both": {"t/two": "file", "t/two/child": "child", "t/plain": "p"},
    "slashes": {"t/s//b": "b", "t/plain": "p"},
    "beside": {"t/a": "a", "t//b": "b"},
    "dots": {"t/x/../y": "y", "t/plain": "p"},
    "file": {"t": "file", "t//b": "b"},
}

INTO_ITSELF = ("cli sync", "cli sync --delete", "cli mv filtered", "fsspec mv",
    "fsspec mv tree list", "gfile rename")  # fmt: skip
ON_DISK = ("fsspec cp_file", "fsspec copy", "gfile copy", "Filesystem.copy_file", "fsspec mv",
    "fsspec mv list", "gfile rename", "Filesystem.rename_file", "fsspec get", "fsspec put",
    "fsspec get_file", "fsspec put_file")  # fmt: skip
WITHIN = ("cli cp -r", "cli sync", "fsspec copy recursive", "cli mv", "cli mv filtered",
    "fsspec mv", "fsspec mv tree list", "gfile rename", "Filesystem.rename_file")  # fmt: skip
FILE_OF_BOTH = (*verbs.MOVES_FILE, *verbs.COPIES_FILE, "cli cp -r", "cli sync", "cli rm",
    "fsspec rm", "gfile remove", "Filesystem.delete_file")  # fmt: skip
REMOVES_FILE = ("cli rm", "fsspec rm", "gfile remove", "Filesystem.delete_file")
WITHOUT_LEVELS = tuple(way for way in verbs.REMOVES_TREE if "maxdepth" not in way)


class Case(NamedTuple):
    """A step: what there is, where it leads from and to, and how it ends.

    Attributes:
        contents: Of the place that has the source.
        source: The path.
        target: The path; None where nothing arrives.
        succeeds: True, False, or None for either.
        says: A part of the message.
        stays: All files are as they were afterwards.
        arrives: Path and content of files that are at the target's place afterwards.
        places: Of source and target.
    """

    contents: dict
    source: str
    target: str | None = None
    succeeds: bool | None = None
    says: str = ""
    stays: bool = False
    arrives: tuple[tuple[str, str], ...] = ()
    places: tuple[int, int] = (STORE, STORE)


def kept(contents, source, target, says="", **more):
    """Return the case of a refusal after which all is as it was."""
    return Case(contents, source, target, succeeds=False, says=says, stays=True, **more)


def refused(contents, source, target, says="", **more):
    """Return the case of a failure that may have done a part."""
    return Case(contents, source, target, succeeds=False, says=says, **more)


def done(contents, source, target=None, **more):
    return Case(contents, source, target, succeeds=True, **more)


# The name of the rule, the stores, the ways, and the cases.
RULES = [
    ("a file onto itself", ALL, verbs.COPIES_FILE + verbs.MOVES_FILE,
        [Case(TREE, "d/x.txt", "d/x.txt", stays=True)]),
    ("a file onto itself, spelt otherwise", SPELT, verbs.COPIES_FILE + verbs.MOVES_FILE,
        [Case(TREE, "d/x.txt", f"d/{other}x.txt", stays=True)
            for other in ("/", "./", "sub/../../d/")]),
    ("a file onto itself, by a command", ALL, CLI_FILE,
        [kept(TREE, "d/x.txt", "d/x.txt", "same file")]),
    ("a file onto itself, spelt otherwise, by a command", SPELT, CLI_FILE,
        [kept(TREE, "d/x.txt", f"d/{other}x.txt", "same file")
            for other in ("/", "./", "sub/../../d/")]),
    ("a directory onto itself", ALL, (*verbs.COPIES_TREE, *verbs.MOVES_TREE, "cli sync --delete"),
        [Case(TREE, "d", "d")]),
    ("a directory onto itself, spelt otherwise", SPELT,
        (*verbs.COPIES_TREE, *verbs.MOVES_TREE, "cli sync --delete"),
        [Case({f"o/{path}": data for path, data in TREE.items()}, "o/d", f"o/{other}")
            for other in ("/d", "./d", "d/sub/../../d")]),
    ("a directory to the place beside it", ALL, ("cli mv", "cli mv filtered", "fsspec mv",
        "gfile rename"), [done(TREE, "d", "d2")]),
    ("a file onto another name of it", LINKED, ON_DISK,
        [Case(NAMED, source, "real/f") for source in ("link/f", "to_f")]),
    ("another name of a file onto it", LINKED, ON_DISK,
        [Case(NAMED, "real/f", target) for target in ("link/f", "to_f")]),
    ("a file and another name of it, by a command", LINKED, CLI_FILE,
        [*(kept(NAMED, source, "real/f") for source in ("link/f", "to_f")),
            *(kept(NAMED, "real/f", target, "same file") for target in ("link/f", "to_f"))]),
    ("a directory of a list to a list", ALL, ("fsspec mv list", "fsspec mv tree list"),
        [kept(TREE, "d", "new", "is a directory")]),
    ("a link to a file onto it, by a rename", LINKED, ("gfile rename",),
        [kept(NAMED, "to_f", "real/f")]),
    ("a directory into itself", ALL, INTO_ITSELF,
        [kept(TREE, "d", target) for target in ("d/sub", "d/sub/new", "d/new")]),
    ("a directory into itself, by a command", ALL, ("cli cp -r", "cli mv"),
        [kept(TREE, "d", target, "lies within it") for target in ("d/sub", "d/sub/new", "d/new")]),
    ("a copy of fsspec into itself ends", ALL, ("fsspec copy recursive",),
        [Case(TREE, "d", target) for target in ("d/sub", "d/sub/new", "d/new")]),
    ("a mirror of its own source", ALL, ("cli sync --delete",),
        [kept(TREE, "d/sub", "d", "--delete would delete it")]),
    ("a directory to what holds it", ALL, ("cli sync",), [done(TREE, "d/sub", "d")]),
    ("a source is deleted by a link", LINKED,
        ("cli sync --delete", "cli sync --delete -n", "cli mv filtered"),
        [kept({**TREE, "link": f"{LINK}d"}, "link/sub", "d")]),
    ("a link of the target leads to the source", LINKED, ("cli sync", "cli sync --delete"),
        [refused({"a/x/f": "1", "a/y/f": "2", "b/x": f"{LINK}../a/y"}, "a", "b",
            "leads back to the source")]),
    ("a link of the directory that takes it in leads to the source", LINKED, ("cli cp -r",),
        [refused({"a/x/f": "1", "a/y/f": "2", "b/a/x": f"{LINK}../../a/y"}, "a", "b",
            "leads back to the source")]),
    ("a copy arrives in itself by a link", LINKED, ("cli cp -r", "cli sync"),
        [Case({"a/f": "f", "t/keep": "t", "a/to_t": f"{LINK}../t"}, "a", "t/x",
            says="is where the copy arrives")]),
    ("a copy of fsspec arrives in itself by a link", LINKED, ("fsspec copy recursive",),
        [Case({"a/f": "f", "t/keep": "t", "a/to_t": f"{LINK}../t"}, "a", "t/x")]),
    ("a link leads back", LINKED, ("cli cp -r", "cli sync", "cli cp -r -n",
        "fsspec copy recursive"), [refused(LOOP, "l", "copy", "leads back")]),
    ("a link leads back, on the way to the disk", LINKED, ("cli cp -r", "cli sync",
        "cli cp -r -n", "fsspec get recursive"),
        [refused(LOOP, "l", "copy", "leads back", places=(STORE, DISK))]),
    ("what removes does not descend links", LINKED, WITHOUT_LEVELS,
        [done(LINKS, path) for path in ("d", "d/link")]),
    ("what removes levels does not descend links", LINKED, ("fsspec rm maxdepth",),
        [Case(LINKS, path) for path in ("d", "d/link")]),
    ("a mirror deletes nothing behind a link", LINKED, ("cli sync --delete",),
        [refused({"a/x/f": "same", "out/f": "same", "out/only": "o", "b/more": "m",
            "b/x": f"{LINK}../out"}, "a", "b", "nothing in it was deleted")]),
    ("a link is moved as a link or stays", LINKED, ("cli mv", "cli mv filtered",
        "fsspec mv tree list"), [Case(TO_OUT, "d", "e")]),
    ("a link to a directory stays when its tree moves away", UNLINKED,
        ("cli mv", "cli mv filtered"),
        [refused(TO_OUT, "d", "e", "link to a directory", places=(DISK, STORE))]),
    ("a link is moved by itself", LINKED, ("cli mv", "fsspec mv", "gfile rename",
        "Filesystem.rename_file"),
        [done({"d/link": f"{LINK}../out", "out/f": "kept", "e/x": "x"}, "d/link", "e/link")]),
    ("a link leads nowhere", LINKED, ("cli cp -r", "cli sync", "cli cp -r -n",
        "fsspec copy recursive"), [refused(NOWHERE, "d", "new", "link")]),
    ("a link leads nowhere, on the way to the disk", LINKED, ("fsspec get recursive",),
        [refused(NOWHERE, "d", "new", "link", places=(STORE, DISK))]),
    ("a link leads nowhere, on the way from the disk", LINKED, ("fsspec put recursive",),
        [refused(NOWHERE, "d", "new", "link", places=(DISK, STORE))]),
    *((f"keys that are no paths: {kind}", ("s3",) if kind == "dots" else KEYED,
        (*WITHIN, *verbs.REMOVES_TREE), [Case({**keys, "beside": "kept"}, "t", "new")])
        for kind, keys in KEYS.items()),  # the client of az cannot write dots
    *((f"keys that are no paths of the disk: {kind}", ("s3",) if kind == "dots" else KEYED,
        ("cli cp -r", "cli sync", "cli mv", "cli mv filtered"),
        [refused(KEYS[kind], "t", "copy", says, places=(STORE, DISK))])
        for kind, says in {"both": "two", "slashes": "'//'", "beside": "'//'", "dots": "'..'",
            "file": "/t: is a file and a directory"}.items()),
    *((f"keys that fsspec does not get: {kind}", ("s3",) if kind == "dots" else KEYED,
        ("fsspec get recursive",), [refused(keys, "t", "copy", places=(STORE, DISK))])
        for kind, keys in KEYS.items()),
    ("a directory with a name that is both can be removed", KEYED, ("cli rm -r",
        "fsspec rm recursive", "gfile rmtree", "Filesystem.delete_recursively"),
        [done({**KEYS["both"], "beside": "kept"}, "t")]),
    ("the file of a name that is both", KEYED, FILE_OF_BOTH,
        [Case(KEYS["both"], "t/two", "new")]),
    ("the file of a name that is both, to the disk", KEYED, ("fsspec get",),
        [Case(KEYS["both"], "t/two", "new", places=(STORE, DISK))]),
    ("a file to the name of its directory", ALL, verbs.MOVES_FILE + verbs.COPIES_FILE,
        [Case({"t/d/x": "precious", "other": "o"}, "t/d/x", "t/d")]),
    ("a file with a slash at its end", ALL, REMOVES_FILE,
        [Case({"d/f": "f", "d/g": "g"}, "d/f/")]),
    ("odd names", ALL, ("cli cp -r", "cli sync", "fsspec copy recursive", "cli mv",
        "cli mv filtered", "fsspec mv", "gfile rename"), [done(ODD, "t", "new")]),
    ("odd names, to the disk", ALL, ("cli cp -r", "cli sync", "cli mv", "fsspec get recursive"),
        [done(ODD, "t", "new", places=(STORE, DISK))]),
    ("odd names, from the disk", ALL, ("cli cp -r", "cli sync", "cli mv", "fsspec put recursive"),
        [done(ODD, "t", "back", places=(DISK, STORE))]),
    ("odd names are removed", ALL, verbs.REMOVES_TREE, [done({**ODD, "kept": "k"}, "t")]),
    ("bytes that are no text", LINKED, ("cli cp -r", "cli sync", "cli mv", "cli rm -r",
        "gfile rmtree"), [done(BYTES, "t", "new")]),
    ("a directory in the place of a file", ("posix", "local", "ram", *KEYED), ("cli cp -r",),
        [refused(TAKEN, "d", "e", "e/d/a", arrives=(("e/d/b", "2"),))]),
    ("a directory in the place of a file of a mirror", ("posix", "local", "ram", *KEYED),
        ("cli sync",), [refused(TAKEN, "d", "e/d", "e/d/a", arrives=(("e/d/b", "2"),))]),
    ("a directory in the place of a file, for fsspec", SPELT, ("fsspec copy recursive",),
        [refused(TAKEN, "d", "e", "e/d/a")]),
    ("a directory far below the name of a file", KEYED, ("cli cp -r",),
        [refused({"d/a": "1", "d/b": "2", "e/d/a/x/kept": "k"}, "d", "e",
            "e/d/a is a directory")]),
    ("what is not there", ALL, ("cli cp -r", "cli mv", "cli rm -r", "cli sync", "gfile rename",
        "gfile rmtree", "fsspec mv", "fsspec rm recursive", "fsspec copy recursive",
        "Filesystem.rename_file"), [kept({"target/f": "f"}, "none", "target", "none")]),
]  # fmt: skip
CASES = [
    (store, (way, case), rule)
    for rule, stores, ways, cases in RULES
    for store, way, case in itertools.product(stores, ways, cases)
]


@pytest.mark.parametrize(
    ("store", "way", "case"),
    sampled(row[:2] for row in CASES),
    indirect=["store"],
    ids=[f"{rule}-{store}-{way}-{case.source}-{case.target}" for store, (way, case), rule in CASES],
)
def test_nothing_is_lost_and_it_ends_as_the_rule_says(stores, store, way, case):
    trees = Trees(stores, store.name)
    trees.fill(({}, case.contents) if case.places[0] else (case.contents, {}))
    before = trees.world()
    target = None if KINDS[way][0] == "remove" else (case.places[1], case.target)
    after, fault, ended = trees.check(before, Step(way, (case.places[0], case.source), target))
    files = [{path: data for path, data in one.items() if path[-1] != "/"} for one in after]
    copies = Counter(data for one in files for data in one.values() if data[:3] != LINK)

    assert fault is None, str(fault)
    assert case.succeeds in (None, ended.ok), ended.said
    assert case.says in ended.said
    assert files[case.places[0]] == case.contents or not case.stays
    assert set(case.arrives) <= files[case.places[1]].items()
    assert max(copies.values(), default=0) <= 2  # no copy of a copy


# ---- lists and patterns of fsspec ----


PLACES = [
    ("d/*.txt", "d/", False), ("d/*", "d", False), (["d/x.txt", "d/sub/y.txt"], "d/", False),
    (["d/x.txt"], ["d/x.txt"], False), (["d"], ["d"], True), ("d/x.txt", "d/", False),
    ("d", "d/", True),
]  # fmt: skip


def uris(store, paths):
    """Return the URI of a path, or those of a list."""
    return list(map(store.uri, paths)) if isinstance(paths, list) else store.uri(paths)


@rows(ALL, ("places", PLACES))
def test_what_is_moved_to_where_it_is_stays(store, places):
    source, target, recursive = places
    store.fill(TREE)
    uris_of_both = uris(store, source), uris(store, target)
    store.faces.call("fsspec", "mv", store.scheme, *uris_of_both, recursive)

    assert sorted(store.files().values()) == sorted(TREE.values())
    assert store.files()["d/x.txt"] == "precious"


@rows(ALL)
def test_a_list_is_moved_whole(store):
    store.fill({"d/x": "x", "d/sub/y": "y", "d/stays": "s", "e/there": "t"})
    sources = uris(store, ["d/x", "d/sub"])
    ended = store.faces.call("fsspec", "mv", store.scheme, sources, store.uri("e/"), recursive=True)

    found = store.files()
    assert ended.ok, ended.said
    assert sorted(found.values()) == ["s", "t", "x", "y"]
    assert [path for path in found if path.startswith("d")] == ["d/stays"]


LOSING = [(["a/f", "b/f"], ["c", "c"]), (["a/f", "b/f"], ["b/f", "c"])]


@rows(ALL, ("places", LOSING))
def test_a_move_that_would_lose_a_file_does_nothing(store, places):
    before = {"a/f": "a", "b/f": "b"}
    store.fill(before)
    ended = store.faces.call("fsspec", "mv", store.scheme, *(uris(store, one) for one in places))

    assert not ended.ok
    assert "moved" in ended.said
    assert store.files() == before


@rows(ALL, ("paths", ["t/**", ["t", "t/u"], ["t/u/v", "t", "t/w/z"]]))
def test_a_tree_and_what_is_in_it_are_removed_once(store, paths):
    store.fill({"t/u/v/y": "1", "t/u/x": "1", "t/w/z": "1", "kept": "k"})
    ended = store.faces.call("fsspec", "rm", store.scheme, uris(store, paths), recursive=True)

    assert ended.ok, ended.said
    assert store.files() == {"kept": "k"}


# ---- other names, and walks ----


@rows(LINKED, ("way", [*ON_DISK, *CLI_FILE, "cli mv filtered"]))
def test_a_file_survives_a_hard_link_to_it(store, way):
    store.fill({"real/f": "precious"})
    (store.folder / "hard").hardlink_to(store.folder / "real" / "f")
    run(way, store, store.uri("hard"), store.uri("real/f"))

    assert store.files()["real/f"] == "precious"


@rows(UNLINKED, ("way", ["cli mv", "cli mv filtered"]))
def test_a_link_to_a_directory_is_no_directory_that_moves(store, disk, way):
    disk.fill({"link": f"{LINK}d", "d/f": "f"})
    ended = run(way, store, disk.uri("link"), store.uri("new"))

    assert disk.files()["d/f"] == "f"
    assert not ended.ok or "link" not in disk.files()


@rows(LINKED, ("way", verbs.WALKS))
def test_a_walk_ends_where_a_link_leads_back(store, way):
    store.fill(LOOP)
    ended = run(way, store, store.uri("l"))

    assert str(ended.value).count("sub/f") <= 1
    if not way.startswith("fsspec"):
        assert not ended.ok
    if way.startswith("cli"):
        for link in ("l/one", "l/sub/two"):
            assert f"{link}: leads back" in ended.said
        assert ended.said.count("leads back") == 2
    if way == "cli du":
        assert ended.value.splitlines()[-1] == f"6\t{store.uri('l')}"


@rows(KEYED, ("kind", KEYS), ("way", ["cli find", "cli du"]))
def test_a_walk_shows_all_keys_or_names_one(store, way, kind):
    if kind == "dots" and store.name == "az":
        pytest.skip("the client of Azure cannot write such a name")
    keys = KEYS[kind]
    store.fill(keys)
    ended = run(way, store, store.uri("t"))

    assert not ended.ok or (
        way == "cli find" and all(store.uri(key) in ended.value for key in keys)
    )


# ---- one entry fails ----


@rows(ALL, ("way", ["cli cp -r", "cli sync"]))
def test_an_entry_that_fails_is_named_and_the_rest_is_done(store, python, way):
    store.put("other", "o")
    python.fill({"src/a": "a", "src/refused": "r", "src/z": "z"})
    ended = run(way, store, python.uri("src"), store.uri("new"))

    assert ended.said.startswith("exit 1")
    assert python.uri("src/refused") in ended.said
    assert store.files() == {"other": "o", "new/a": "a", "new/z": "z"}


@rows(ALL, ("way", ["cli mv", "cli mv filtered"]))
def test_what_could_not_be_copied_is_not_removed(store, python, way):
    source = {"src/a": "a", "src/refused": "r", "src/z": "z"}
    python.fill(source)
    ended = run(way, store, python.uri("src"), store.uri("new"))

    assert ended.said.startswith("exit 1")
    assert python.uri("src/refused") in ended.said
    assert way == "cli mv filtered" or "it stays where it is" in ended.said
    assert python.files()["src/refused"] == "r"
    assert {*python.files().values(), *store.files().values()} == {"a", "r", "z"}
    assert "new/refused" not in store.files()


@rows(ALL, ("way", ["cli sync --delete"]))
def test_a_failure_deletes_nothing(store, python, way):
    python.fill({"src/a": "a", "src/refused": "r"})
    store.fill({"t/more": "kept"})
    ended = run(way, store, python.uri("src"), store.uri("t"))

    assert not ended.ok
    assert "nothing was deleted" in ended.said
    assert store.files()["t/more"] == "kept"


# ---- the target is whole, or as it was ----


@rows(ALL, ("way", ["cli cp", "gfile copy", "cli mv", "gfile rename"]), ("there", [False, True]))
def test_a_source_that_breaks_off_leaves_the_target_as_it_was(store, python, way, there):
    content = "x" * 3_000_000
    python.put("src/breaks", content)
    before = {"t/breaks": "as it was"} if there else {"t/other": "o"}
    store.fill(before)
    ended = run(way, store, python.uri("src/breaks"), store.uri("t/breaks"))

    if ended.ok:  # it was renamed within its store, without being read
        assert store.name == "python"
        assert store.files()["t/breaks"] == content
        return
    assert store.files() == before
    assert python.files() == {"src/breaks": content}
