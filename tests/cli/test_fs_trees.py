"""Trees on the command line: many files at once, filters, rehearsals, standard streams."""

import io
import os
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from modular_tf.cli.fs.transfer import copy_in, copy_out
from modular_tf.errors import UnavailableError
from modular_tf.filesystem.jobs import FileWatch, Totals
from modular_tf.filesystem.trees import Copying, Item, Removal, move_all

FILES = {"/d/a": b"aa", "/d/b": b"bbb", "/d/sub/c": b"c"}


@pytest.fixture
def full(object_store):
    """The store with a tree in it, as others wrote it."""
    object_store.memory.files.update(FILES)
    object_store.memory.dirs |= {"/d", "/d/sub"}
    return object_store


@pytest.fixture
def tree(tmp_path):
    base = tmp_path / "tree"
    (base / "sub").mkdir(parents=True)
    for name in ("one.csv", "two.txt", "sub/three.csv", "sub/four.txt"):
        (base / name).write_text(name)
    return base


def copy(store, source, target, jobs=1, **rules):
    copied = []
    work = store.work(jobs)
    items = [Item(store.location(source), store.location(target))]
    Copying(work, copied.append, **rules).run(items)
    return copied, work


def names_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


# ---- requests ----


def test_files_are_read_written_and_removed_without_a_question_whether_they_are_some(
    full, tree, tmp_path
):
    _, work = copy(full, "mem://h/d", tmp_path / "down")
    assert names_below(tmp_path / "down") == ["a", "b", "sub/c"]
    asked = full.asked()
    assert asked.pop("get_children") == 2
    assert asked.pop("stat") == 2  # of what opening refused as no file
    assert asked == {"new_random_access_file": 5, "read": 3, "close_reader": 3}
    assert (work.totals.files, work.totals.bytes, work.totals.known) == (3, 6, 3)

    full.memory.dirs |= {"/d/up", "/d/up/sub"}  # a real one needs no directories
    copy(full, tree, "mem://h/d/up")
    assert full.asked() == {"new_writable_file": 4, "append": 4, "close_writer": 4}
    assert full.memory.files["/d/up/sub/three.csv"] == b"sub/three.csv"

    Removal(full.work(4)).run([Item.at(full.location("mem://h/d"))])
    assert (full.memory.files, full.memory.dirs) == ({}, {"/"})
    assert full.asked()["delete_dir"] == 4


def test_several_files_are_under_way_at_once(full, tmp_path):
    barrier = threading.Barrier(3)  # broken, if fewer than three come
    read = full.memory.enter

    def enter(operation, uri):
        if operation == "read":
            barrier.wait(30)
        return read(operation, uri)

    full.memory.enter = enter
    copied, work = copy(full, "mem://h/d", tmp_path / "down", jobs=3)

    assert len(copied) == 3
    assert work.failures == []


@pytest.mark.parametrize("error", [UnavailableError("it broke off"), BrokenPipeError(32, "pipe")])
def test_an_upload_that_breaks_off_is_discarded_and_a_failure(full, tmp_path, error):
    """A broken pipe of a store is not that of standard output, whose reader had enough."""
    full.memory.dirs.add("/up")
    full.memory.faults["append", "/up/f"] = error
    (tmp_path / "f").write_bytes(b"x")
    discarded = []
    opened = full.filesystem.new_writable_file

    def new_writable_file(uri):
        file = opened(uri)
        file.discard = lambda: discarded.append(uri)
        return file

    full.filesystem.new_writable_file = new_writable_file
    _, work = copy(full, tmp_path / "f", "mem://h/up/f")

    assert (discarded, len(work.failures)) == (["mem://h/up/f"], 1)
    assert "delete_file" not in full.asked()


# ---- moving ----


def test_a_file_that_came_after_the_copy_is_not_removed(full, monkeypatch):
    full.memory.dirs |= {"/e", "/e/sub"}
    full.filesystem.path_exists = lambda uri: False  # a real store has no directories
    enter = full.memory.enter

    def enters(operation, uri):
        if operation == "delete_file":
            full.memory.files.setdefault("/d/sub/late", b"late")
        return enter(operation, uri)

    monkeypatch.setattr(full.memory, "enter", enters)
    item = Item(full.location("mem://h/d"), full.location("mem://h/e"))
    move_all(full.work(2), [item], print)

    arrived = {"/e" + name[2:]: data for name, data in FILES.items()}
    assert full.memory.files == {**arrived, "/d/sub/late": b"late"}


def test_a_move_that_ends_while_it_is_given_up_loses_nothing(full, monkeypatch, tmp_path):
    """An interrupt gives it up while its file is being stored, which then succeeds."""
    source, target = full.location("mem://h/d/a"), full.location(tmp_path / "target")
    stores, may_store, work = threading.Event(), threading.Event(), full.work()
    storing, under_way = FileWatch.storing, Totals.under_way

    def wait(watch):
        storing(watch)
        stores.set()
        may_store.wait(30)

    def interrupt():
        if stores.is_set():
            raise KeyboardInterrupt

    def the_move_ends_behind_it(totals):
        found, end = under_way(totals), time.monotonic() + 30
        may_store.set()
        while work.is_working and time.monotonic() < end:
            time.sleep(0.005)
        assert not work.is_working
        return found

    monkeypatch.setattr(FileWatch, "storing", wait)
    monkeypatch.setattr(work._crew, "_while_waiting", interrupt)
    monkeypatch.setattr(Totals, "under_way", the_move_ends_behind_it)
    with pytest.raises(KeyboardInterrupt):
        move_all(work, [Item(source, target)], print)

    assert full.memory.files["/d/a"] == FILES["/d/a"]
    assert not (tmp_path / "target").exists()


def test_a_pipe_that_a_copy_was_written_to_is_not_deleted_when_it_is_given_up(
    full, monkeypatch, tmp_path, capfd
):
    full.memory.files["/d/a"] = bytes(1 << 20)  # more than a pipe holds
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    is_open, work = threading.Event(), full.work()
    note_unfinished = work.totals.note_unfinished

    def noted(*args):
        note_unfinished(*args)
        is_open.set()

    def interrupt():
        if is_open.is_set():
            raise KeyboardInterrupt

    monkeypatch.setattr(work.totals, "note_unfinished", noted)
    monkeypatch.setattr(work._crew, "_while_waiting", interrupt)
    monkeypatch.setattr("modular_tf.cli.fs.work.leave", lambda: None)
    item = Item(full.location("mem://h/d/a"), full.location(tmp_path / "pipe"))
    with pytest.raises(KeyboardInterrupt):
        Copying(work, print, recursive=False).run([item])
    os.close(reader)

    assert (tmp_path / "pipe").is_fifo()
    assert "/pipe: the copy was given up; the target may be torn" in capfd.readouterr().err


# ---- filters and rehearsals ----


def test_the_last_filter_that_matches_decides(mtf, tree, tmp_path):
    for number, (filters, copied) in enumerate(
        {
            "--exclude * --include *.csv": ["one.csv", "sub/three.csv"],
            "--include *.csv --exclude *": [],
            "--include *.csv --exclude sub/*": ["one.csv", "two.txt"],
        }.items()
    ):
        target = tmp_path / str(number)
        assert mtf("fs", "cp", "-r", tree, target, *filters.split()).code == 0
        assert names_below(target) == copied


CSV, TXT = ["one.csv", "sub/three.csv"], ["sub/four.txt", "two.txt"]


@pytest.mark.parametrize(
    ("verb", "act", "into", "left"),
    [
        ("cp -r", "copy", ["{}"], sorted(CSV + TXT)),
        ("mv", "move", ["{}"], TXT),
        ("mv", "move", ["ram://{}"], TXT),
        ("rm -r", "remove", [], TXT),
    ],
)
def test_a_filter_chooses_files_and_a_rehearsal_only_shows_which(
    mtf, tree, tmp_path, verb, act, into, left
):
    targets = [place.format(tmp_path / "x") for place in into]
    words = ("fs", *verb.split(), tree, *targets, "--exclude", "*.txt")
    rehearsed = mtf(*words, "-n")
    assert sorted(rehearsed.lines) == [
        "\t".join([act, *(f"{top}/{name}" for top in (tree, *targets))]) for name in CSV
    ]
    assert names_below(tree) == sorted(CSV + TXT)
    assert not (tmp_path / "x").exists()

    assert mtf(*words).code == 0
    assert names_below(tree) == left


def test_a_filtered_removal_does_not_enter_a_link_that_it_leaves(mtf, tree, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tree / "link").symlink_to(tmp_path / "outside")

    assert mtf("fs", "rm", "-r", tree, "--exclude", "link").code == 0
    assert names_below(tmp_path / "outside") == ["kept"]


def test_a_rehearsal_of_a_whole_tree_is_one_line_and_of_nothing_a_failure(mtf, tree, tmp_path):
    words = ("fs", "mv", "-n", tree, tmp_path / "x")

    assert mtf(*words).lines == [f"move\t{tree}\t{tmp_path}/x"]
    assert mtf(*words, "--json").object["dry_run"] is True
    assert mtf("fs", "rm", "-n", tree / "none").code == 1
    assert names_below(tree) == sorted(CSV + TXT)


# ---- what is told ----


def test_a_summary_ends_the_work_on_several_files(mtf, tree):
    ended = mtf("fs", "cp", "-r", tree, "ram://summary")
    quiet = mtf("fs", "cp", "-rq", tree, "ram://quiet")
    totals = mtf("fs", "cp", "-r", tree, "ram://totals", "--json").object["totals"]
    (tree / "dangling").symlink_to("nowhere")
    failed = mtf("fs", "cp", "-r", tree, "ram://failed")

    assert ended.err.startswith("modular-tf: 4 files copied, 39 B in ")
    assert ended.err.count("\n") == 1
    assert quiet.err == ""
    assert (totals["files"], totals["failed"], totals["bytes"]) == (4, 0, 39)
    assert failed.code == 1
    assert failed.err.splitlines()[-1].endswith("; 1 failed")


# ---- patterns and standard streams ----


def test_standard_input_and_output_are_places(mtf, tmp_path, monkeypatch):
    content = bytes(range(256)) * 5000
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    into = mtf("fs", "cp", "-", tmp_path / "f")
    out = mtf("fs", "cp", tmp_path / "f", "-")

    assert (into.code, out.code) == (0, 0)
    assert (tmp_path / "f").read_bytes() == content
    assert out.out == content


@pytest.mark.parametrize(
    "words", [("-", "-"), ("a", "-", "b"), ("-r", "-", "b"), ("--json", "a", "-")], ids=" ".join
)
def test_a_stream_goes_with_few_options(mtf, words):
    assert mtf("fs", "cp", *words).code == 2


def test_standard_input_that_breaks_off_or_shrinks_leaves_the_target(
    object_store, tmp_path, monkeypatch
):
    """As a file that the shell opened, and that loses its end while it is read."""
    source, target = tmp_path / "log", tmp_path / "there"
    source.write_bytes(bytes(9 << 20))
    target.write_text("kept")

    def read_and(then):
        class Standard(io.BufferedReader):
            def read1(self, size=-1):
                piece = super().read1(size)
                then()
                return piece

        work = object_store.work()
        with Standard(io.FileIO(source), 1 << 20) as standard:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=standard))
            copy_in(work, str(target))
        return len(work.failures)

    more = [True, False]

    def break_off():
        if not more.pop(0):
            raise UnavailableError("gone")

    assert read_and(break_off) == 1
    assert read_and(lambda: os.truncate(source, 10)) == 1
    assert target.read_text() == "kept"
    assert names_below(tmp_path) == ["log", "there"]


def test_a_file_that_ends_early_is_not_written_out_as_whole(object_store, capfdbinary):
    memory = object_store.memory
    memory.files["/big"] = bytes(9 << 20)
    opened = object_store.filesystem.new_random_access_file

    def shrinking(uri):
        file = opened(uri)
        file.known_length = lambda: 9 << 20
        memory.files["/big"] = bytes(5 << 20)
        return file

    object_store.filesystem.new_random_access_file = shrinking
    work = object_store.work()
    copy_out(work, ["mem://h/big"])
    assert len(work.failures) == 1
    assert len(capfdbinary.readouterr().out) < 9 << 20
