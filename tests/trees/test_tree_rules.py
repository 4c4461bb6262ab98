"""What copies, moves, removes and walks trees loses nothing and leaves nothing out in silence.

Each rule holds in every store, for each face that offers the operation.
"""

import itertools

import pytest

from tests.fixtures.matrices import BEYOND_THE_SAMPLE
from tests.trees import verbs
from tests.trees.operations import KINDS, Step, Trees
from tests.trees.stores import LINK, NAMES
from tests.trees.verbs import run

CLOUD = {"s3", "az"}
LINKED = ("posix", "local")
KEYED = ("s3", "az")
ALL = NAMES
SAMPLE = {"posix", "s3"}  # a disk, and an object store


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
    found = []
    for number, (name, case) in enumerate(itertools.product(names, cases)):
        beyond = [BEYOND_THE_SAMPLE] * (name not in SAMPLE and number % 3 != 0)
        found.append(pytest.param(name, *case, marks=[*marks_of(name), *beyond]))
    argument_names = ["store", *(argument for argument, _ in arguments)]
    return pytest.mark.parametrize(argument_names, found, indirect=["store"])


TREE = {"d/x.txt": "precious", "d/sub/y.txt": "too", "other": "o"}


def spelt(store, path):
    """Return other ways to write a path."""
    above, _, name = path.rpartition("/")
    prefix = f"{above}/" if above else ""
    plain = [store.uri(path)]
    if store.has_keys or store.name == "python":  # where '//' and '.' are parts of names
        return plain
    spellings = (f"{prefix}/{name}", f"{prefix}./{name}", f"d/sub/../../{path}")
    return [*plain, *map(store.uri, spellings)]


# ---- onto itself ----


@rows(ALL, ("way", [*verbs.COPIES_FILE, *verbs.MOVES_FILE]))
def test_a_file_survives_being_its_own_target(store, way):
    store.fill(TREE)
    for target in spelt(store, "d/x.txt"):
        ended = run(way, store, store.uri("d/x.txt"), target)

        assert store.files() == TREE, target
        if way.startswith("cli"):
            assert not ended.ok
            assert "same file" in ended.said


@rows(ALL, ("way", [*verbs.COPIES_TREE, *verbs.MOVES_TREE, "cli sync --delete"]))
def test_a_directory_survives_being_its_own_target(store, way):
    store.fill(TREE)
    for target in spelt(store, "d"):
        run(way, store, store.uri("d"), target)

        assert TREE.items() <= store.files().items(), target


PLACES = [
    ("d/*.txt", "d/", False), ("d/*", "d", False), (["d/x.txt", "d/sub/y.txt"], "d/", False),
    (["d/x.txt"], ["d/x.txt"], False), (["d"], ["d"], True), ("d/x.txt", "d/", False),
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


ON_DISK = [*verbs.COPIES_FILE, *verbs.MOVES_FILE, "fsspec get", "fsspec put", "fsspec get_file",
    "fsspec put_file"]  # fmt: skip


@rows(LINKED, ("way", ON_DISK), ("source", ["link/f", "to_f"]))
def test_a_file_survives_its_other_names(store, way, source):
    store.fill({"real/f": "precious", "link": f"{LINK}real", "to_f": f"{LINK}real/f"})
    ended = run(way, store, store.uri(source), store.uri("real/f"))
    assert store.files()["real/f"] == "precious"
    if way.startswith("cli") or (way, source) == ("gfile rename", "to_f"):
        assert not ended.ok

    ended = run(way, store, store.uri("real/f"), store.uri(source))
    assert "precious" in store.files().values()  # a moved file may take the place of its link
    if way.startswith("cli"):
        assert "same file" in ended.said
        assert store.files()["real/f"] == "precious"


@rows(LINKED, ("way", [*ON_DISK, "cli mv filtered"]))
def test_a_file_survives_a_hard_link_to_it(store, way):
    store.fill({"real/f": "precious"})
    (store.folder / "hard").hardlink_to(store.folder / "real" / "f")
    run(way, store, store.uri("hard"), store.uri("real/f"))

    assert store.files()["real/f"] == "precious"


# ---- into itself ----

INTO_ITSELF = ("cli cp -r", "cli sync", "cli sync --delete", "cli mv", "cli mv filtered",
    "fsspec mv", "fsspec mv tree list", "gfile rename")  # fmt: skip


@rows(ALL, ("way", INTO_ITSELF), ("target", ["d/sub", "d/sub/new", "d/new"]))
def test_a_directory_does_not_go_into_itself(store, way, target):
    store.fill(TREE)
    ended = run(way, store, store.uri("d"), store.uri(target))

    assert not ended.ok
    assert store.files() == TREE
    if way in ("cli cp -r", "cli mv"):
        assert "lies within it" in ended.said


@rows(ALL, ("target", ["d/sub", "d/sub/new", "d/new"]))
def test_a_copy_of_fsspec_into_itself_ends(store, target):
    store.fill(TREE)
    run("fsspec copy recursive", store, store.uri("d"), store.uri(target))

    assert TREE.items() <= store.files().items()


@rows(ALL, ("way", ["cli sync --delete"]))
def test_a_mirror_does_not_delete_its_source(store, way):
    store.fill(TREE)
    ended = run(way, store, store.uri("d/sub"), store.uri("d"))

    assert not ended.ok
    assert "--delete would delete it" in ended.said
    assert store.files() == TREE
    assert run("cli sync", store, store.uri("d/sub"), store.uri("d")).ok


@rows(LINKED, ("way", ["cli sync --delete", "cli sync --delete -n", "cli mv filtered"]))
def test_nothing_deletes_its_source_by_a_link(store, way):
    store.fill({**TREE, "link": f"{LINK}d"})
    before = store.files()
    ended = run(way, store, store.uri("link/sub"), store.uri("d"))

    assert not ended.ok
    assert store.files() == before


@rows(LINKED, ("way", ["cli cp -r", "cli sync", "cli sync --delete"]))
def test_a_copy_does_not_arrive_in_its_source_by_a_link_of_the_target(store, way):
    store.fill({"a/x/f": "1", "a/y/f": "2", "b/a/other": "3", "b/a/x": f"{LINK}../../a/y"})
    ended = run(way, store, store.uri("a"), store.uri("b" if way == "cli cp -r" else "b/a"))

    assert not ended.ok
    assert "leads back to the source" in ended.said
    assert {"a/x/f": "1", "a/y/f": "2"}.items() <= store.files().items()


@rows(LINKED, ("way", ["cli cp -r", "cli sync", "fsspec copy recursive"]))
def test_a_copy_leaves_out_where_it_arrives(store, way):
    store.fill({"a/f": "f", "t/keep": "t", "a/to_t": f"{LINK}../t"})
    ended = run(way, store, store.uri("a"), store.uri("t/x"))

    assert way.startswith("fsspec") or "is where the copy arrives" in ended.said
    found = store.files()
    assert found.items() >= {"a/f": "f", "t/keep": "t"}.items()
    assert max(path.count("/") for path in found) <= 3


# ---- link loops ----

LOOP = {"l/sub/f": "hello\n", "l/one": f"{LINK}.", "l/sub/two": f"{LINK}.."}


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


@rows(LINKED, ("way", ["cli cp -r", "cli sync", "cli cp -r -n", "fsspec copy recursive",
    "fsspec get recursive"]), ("between", [False, True]))  # fmt: skip
def test_a_copy_ends_where_a_link_leads_back(store, disk, way, between):
    store.fill(LOOP)
    target = disk if between else store
    ended = run(way, store, store.uri("l"), target.uri("copy"))

    assert not ended.ok
    assert "leads back" in ended.said
    copied = {path: data for path, data in target.files().items() if path.startswith("copy")}
    assert copied in ({}, {"copy/sub/f": "hello\n"})


# ---- what removes does not descend links ----

LINKS = {"d/f": "f", "d/sub/g": "g", "out/kept": "k", "d/link": f"{LINK}../out",
    "d/sub/to_kept": f"{LINK}../../out/kept", "d/nowhere": f"{LINK}none"}  # fmt: skip


@rows(LINKED, ("way", verbs.REMOVES_TREE), ("path", ["d", "d/link"]))
def test_what_removes_does_not_descend_links(store, way, path):
    store.fill(LINKS)
    ended = run(way, store, store.uri(path))

    left = {name: data for name, data in LINKS.items() if not f"{name}/".startswith(f"{path}/")}
    if "maxdepth" in way and not ended.ok:  # it finds no link that leads nowhere
        left = {**left, "d/nowhere": LINKS["d/nowhere"]}
    else:
        assert ended.ok, ended.said
    assert store.files() == left


@rows(LINKED, ("way", ["cli sync --delete"]))
def test_a_mirror_deletes_nothing_behind_a_link(store, way):
    store.fill({"a/x/f": "same", "out/f": "same", "out/only": "o", "b/more": "m",
        "b/x": f"{LINK}../out"})  # fmt: skip
    ended = run(way, store, store.uri("a"), store.uri("b"))

    assert not ended.ok
    assert "nothing in it was deleted" in ended.said
    assert store.files()["out/only"] == "o"


@rows(LINKED, ("way", ["cli mv", "cli mv filtered", "fsspec mv tree list"]))
def test_a_link_is_moved_as_a_link_or_stays(store, way):
    store.fill({"d/g": "g", "d/link": f"{LINK}../out", "out/f": "kept"})
    ended = run(way, store, store.uri("d"), store.uri("e"))

    found = store.files()
    assert found["out/f"] == "kept"
    if ended.ok:
        assert found["e/link"] == f"{LINK}../out"
        assert "d/link" not in found
    else:
        assert found["d/link"] == f"{LINK}../out"
    assert "g" in found.values()


@rows(("ram", "python", "s3", "az"), ("way", ["cli mv", "cli mv filtered"]))
def test_a_link_to_a_directory_stays_where_it_is_when_its_tree_moves_away(store, disk, way):
    disk.fill({"d/g": "g", "d/link": f"{LINK}../out", "out/f": "kept"})
    ended = run(way, store, disk.uri("d"), store.uri("e"))

    assert not ended.ok
    assert "link to a directory" in ended.said
    assert {"d/link": f"{LINK}../out", "out/f": "kept"}.items() <= disk.files().items()


@rows(LINKED, ("way", ["cli cp -r", "cli sync", "cli cp -r -n", "fsspec copy recursive",
    "fsspec get recursive", "fsspec put recursive"]))  # fmt: skip
def test_a_link_that_leads_nowhere_is_reported(store, way):
    store.fill({"d/f": "f", "d/sub/g": "g", "d/sub/link": f"{LINK}none"})
    before = store.files()
    target = store.folder / "new" if "get" in way or "put" in way else store.uri("new")
    ended = run(
        way, store, str(store.folder / "d") if "put" in way else store.uri("d"), str(target)
    )

    assert not ended.ok
    assert "link" in ended.said
    assert before.items() <= store.files().items()


@rows(("ram", "python", "s3", "az"), ("way", ["cli mv", "cli mv filtered"]))
def test_a_link_to_a_directory_is_no_directory_that_moves(store, disk, way):
    disk.fill({"link": f"{LINK}d", "d/f": "f"})
    ended = run(way, store, disk.uri("link"), store.uri("new"))

    assert disk.files()["d/f"] == "f"
    assert not ended.ok or "link" not in disk.files()


@rows(LINKED, ("way", ["cli mv", "fsspec mv", "gfile rename", "Filesystem.rename_file"]))
def test_a_link_is_moved_by_itself(store, way):
    store.fill({"d/link": f"{LINK}../out", "out/f": "kept", "e/x": "x"})
    ended = run(way, store, store.uri("d/link"), store.uri("e/link"))

    assert ended.ok, ended.said
    assert store.files() == {"e/link": f"{LINK}../out", "out/f": "kept", "e/x": "x"}


# ---- keys that are no paths ----

KEYS = {
    "both": {"t/two": "file", "t/two/child": "child", "t/plain": "p"},
    "slashes": {"t/s//b": "b", "t/plain": "p"},
    "beside": {"t/a": "a", "t//b": "b"},
    "dots": {"t/x/../y": "y", "t/plain": "p"},
    "file": {"t": "file", "t//b": "b"},
}


def fill_keys(store, kind):
    if kind == "dots" and store.name == "az":
        pytest.skip("Azure's client cannot write such a name")
    store.fill(KEYS[kind])
    return KEYS[kind]


def at(place, keys):
    """Return what keys below t/ become below another directory."""
    return {place + key.removeprefix("t"): data for key, data in keys.items()}


AWAY = ("cli cp -r", "cli sync", "fsspec get recursive", "cli mv", "cli mv filtered")
WITHIN = ("cli cp -r", "cli sync", "fsspec copy recursive", "cli mv", "cli mv filtered",
    "fsspec mv", "fsspec mv tree list", "gfile rename", "Filesystem.rename_file")  # fmt: skip


@rows(KEYED, ("kind", KEYS), ("way", AWAY))
def test_what_a_key_cannot_become_on_the_disk_is_named_and_stays(store, disk, way, kind):
    keys = fill_keys(store, kind)
    ended = run(way, store, store.uri("t"), disk.uri("copy"))

    assert not ended.ok  # on a disk nothing is a file and a directory, and // is /
    left, arrived = store.files(), disk.files()
    assert set(left.values()) | set(arrived.values()) == set(keys.values())
    assert keys.items() == left.items() or "mv" in way
    assert arrived.items() <= at("copy", keys).items()
    if way.startswith("cli"):
        named = {"both": "two", "dots": "'..'", "file": "/t: is a file and a directory"}
        assert named.get(kind, "'//'") in ended.said


def fault_of(stores, store, contents, way, source, target, place=0):
    """Return what a step loses, or leaves out in silence, of what is in a store like this."""
    trees = Trees(stores, store.name)
    trees.fill((contents, {}))
    to = None if KINDS[way][0] == "remove" else (place, target)
    return trees.check(trees.world(), Step(way, (0, source), to))[1]


@rows(KEYED, ("kind", KEYS), ("way", [*WITHIN, *verbs.REMOVES_TREE]))
def test_no_key_of_a_directory_is_lost_or_left_out_in_silence(stores, store, way, kind):
    contents = {**fill_keys(store, kind), "beside": "kept"}

    assert fault_of(stores, store, contents, way, "t", "new") is None


@rows(KEYED, ("kind", KEYS), ("way", ["cli find", "cli du"]))
def test_a_walk_shows_all_keys_or_names_one(store, way, kind):
    keys = fill_keys(store, kind)
    ended = run(way, store, store.uri("t"))

    assert not ended.ok or (
        way == "cli find" and all(store.uri(key) in ended.value for key in keys)
    )


@rows(KEYED, ("way", ["cli rm -r", "fsspec rm recursive", "gfile rmtree",
    "Filesystem.delete_recursively"]))  # fmt: skip
def test_a_directory_with_a_name_that_is_both_can_be_removed(store, way):
    store.fill({**KEYS["both"], "beside": "kept"})
    ended = run(way, store, store.uri("t"))

    assert ended.ok, ended.said
    assert store.files() == {"beside": "kept"}


FILE_OF_BOTH = (*verbs.MOVES_FILE, *verbs.COPIES_FILE, "cli cp -r", "cli sync", "fsspec get",
    "cli rm", "fsspec rm", "gfile remove", "Filesystem.delete_file")  # fmt: skip


@rows(KEYED, ("way", FILE_OF_BOTH))
def test_of_a_name_that_is_both_nothing_is_lost_or_left_out_in_silence(stores, store, way):
    place = int(way == "fsspec get")

    assert fault_of(stores, store, KEYS["both"], way, "t/two", "new", place) is None


@rows(ALL, ("way", [*verbs.MOVES_FILE, *verbs.COPIES_FILE]))
def test_a_file_is_not_lost_at_the_name_of_its_directory(stores, store, way):
    contents = {"t/d/x": "precious", "other": "o"}

    assert fault_of(stores, store, contents, way, "t/d/x", "t/d") is None


@rows(ALL, ("way", ["cli rm", "fsspec rm", "gfile remove", "Filesystem.delete_file"]))
def test_a_file_with_a_slash_at_its_end_is_removed_or_reported(store, way):
    store.fill({"d/f": "f", "d/g": "g"})
    ended = run(way, store, store.uri("d/f/"))

    assert store.files() == ({"d/g": "g"} if ended.ok else {"d/f": "f", "d/g": "g"})


# ---- odd names ----

ODD = {"t/a": "1", "t/new\nline": "2", "t/ü %20 #?&+;": "3", "t/[x]*": "4", "t/-d": "5",
    "t/deep/ b ": "6", "t/tab\t'\"": "7", "t/~": "8", "t/deep/$HOME": "9"}  # fmt: skip


@rows(ALL, ("way", ["cli cp -r", "cli sync", "fsspec copy recursive", "cli mv", "cli mv filtered",
    "fsspec mv", "gfile rename"]))  # fmt: skip
def test_odd_names_arrive(store, way):
    store.fill(ODD)
    ended = run(way, store, store.uri("t"), store.uri("new"))

    arrived = at("new", ODD)
    moves = "mv" in way or "rename" in way
    assert ended.ok, ended.said
    assert store.files() == (arrived if moves else {**ODD, **arrived})


@rows(ALL, ("way", ["cli cp -r", "cli sync", "cli mv", "fsspec get recursive"]))
def test_odd_names_arrive_on_the_disk_and_come_back(store, disk, way):
    store.fill(ODD)
    ended = run(way, store, store.uri("t"), disk.uri("new"))

    assert ended.ok, ended.said
    assert disk.files() == at("new", ODD)
    assert store.files() == ({} if way == "cli mv" else ODD)
    back = run(way.replace("get", "put"), store, disk.uri("new"), store.uri("back"))
    assert back.ok, back.said
    assert at("back", ODD).items() <= store.files().items()


@rows(ALL, ("way", verbs.REMOVES_TREE))
def test_odd_names_are_removed(store, way):
    store.fill({**ODD, "kept": "k"})
    ended = run(way, store, store.uri("t"))

    assert ended.ok, ended.said
    assert store.files() == {"kept": "k"}


@rows(LINKED, ("way", ["cli cp -r", "cli sync", "cli mv", "cli rm -r", "gfile rmtree"]))
def test_bytes_that_are_no_text_are_names(store, way):
    name = "t/\udcff\udcfe"
    store.fill({name: "bytes", "t/a": "a"})
    places = [store.uri("t"), *([] if "rm" in way else [store.uri("new")])]
    ended = run(way, store, *places)

    arrived = {} if "rm" in way else {name.replace("t/", "new/"): "bytes", "new/a": "a"}
    assert ended.ok, ended.said
    assert {path: data for path, data in store.files().items() if path.startswith("new")} == arrived


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


@rows(("posix", "local", "ram"), ("way", ["cli cp -r", "cli sync", "fsspec copy recursive"]))
def test_a_directory_in_the_place_of_a_file_stays(store, way):
    store.fill({"d/a": "1", "d/b": "2", "e/d/a/kept": "k", "e/d/x": "x"})
    target = "e/d" if way == "cli sync" else "e"
    ended = run(way, store, store.uri("d"), store.uri(target))

    assert not ended.ok
    assert "e/d/a" in ended.said
    expected = {"d/a": "1", "d/b": "2", "e/d/a/kept": "k", "e/d/x": "x"}
    assert expected.items() <= store.files().items()
    if way.startswith("cli"):
        assert store.files()["e/d/b"] == "2"


@rows(KEYED, ("way", ["cli cp -r", "cli sync"]), ("there", ["e/d/a/kept", "e/d/a/x/kept"]))
def test_a_file_does_not_get_the_name_of_a_directory_within_a_store(store, way, there):
    before = {"d/a": "1", "d/b": "2", there: "k", "e/d/b": "old"}
    store.fill(before)
    ended = run(way, store, store.uri("d"), store.uri("e/d" if way == "cli sync" else "e"))

    assert not ended.ok
    assert "e/d/a is a directory" in ended.said
    assert store.files() == {**before, "e/d/b": "2"}


@rows(ALL, ("way", ["cli cp -r", "cli mv", "cli rm -r", "cli sync", "cli find", "gfile rename",
    "gfile rmtree", "fsspec mv", "fsspec rm recursive", "fsspec copy recursive",
    "Filesystem.rename_file"]))  # fmt: skip
def test_what_is_not_there_is_reported(store, way):
    store.fill({"target/f": "f"})
    one = way in verbs.REMOVES_TREE or way in verbs.WALKS
    ended = run(way, store, *map(store.uri, ["none"] if one else ["none", "target"]))

    assert not ended.ok
    assert "none" in ended.said
    assert store.files() == {"target/f": "f"}


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
