"""A record that is read was written as it is; processes add to one file without harm."""

from __future__ import annotations

import errno
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.service.kept.storage import record_file
from modular_tf.service.kept.storage.record_file import RecordFile
from tests.stress.moments import MomentOfStep

if TYPE_CHECKING:
    from modular_tf.service.kept.storage.private_directory import PrivateDirectory

NAME = "some.records"
VALUES: dict[str, Any] = {
    "plain": {"a": [1, 2.5, None, True, "text"]},
    "/a path/with\ttabs\nand lines\0": [],
    "surrogates \udcff": "\udc80 \u2028 \x7f",
    "": 0,
    "long": "x" * 10_000,
}


def records(directory: PrivateDirectory, title: str = "title") -> RecordFile:
    return RecordFile(directory, NAME, title)


@pytest.fixture
def filled(directory: PrivateDirectory) -> Path:
    one = records(directory)
    for key, value in VALUES.items():
        one.put(key, value)
    assert one.save()
    return Path(directory.path or "") / NAME


def held(directory: PrivateDirectory) -> dict[str, Any]:
    return dict(records(directory).items())


def test_an_empty_file_has_nothing(directory: PrivateDirectory):
    assert records(directory).get("plain") is None
    assert held(directory) == {}


def test_values_come_back_in_their_order(directory: PrivateDirectory, filled: Path):
    assert held(directory) == VALUES
    assert list(held(directory)) == list(VALUES)
    assert {key: records(directory).get(key) for key in VALUES} == VALUES


def test_lines_are_taken_apart_again_where_the_file_changed(
    directory: PrivateDirectory, filled: Path, monkeypatch: pytest.MonkeyPatch
):
    one = records(directory)
    with monkeypatch.context() as patch:
        patch.delattr(record_file, "_split")
        one.refresh()
    assert dict(one.items()) == VALUES
    one.put("plain", "new")
    assert one.save()
    filled.unlink()
    one.refresh()

    assert dict(one.items()) == {}


def test_a_change_is_seen_before_it_is_saved(directory: PrivateDirectory, filled: Path):
    one = records(directory)
    one.put("plain", "new")
    one.drop("long")

    assert one.get("plain") == "new"
    assert one.get("long") is None
    assert set(dict(one.items())) == VALUES.keys() - {"long"}
    assert held(directory) == VALUES


def test_nothing_is_written_where_nothing_changed(directory: PrivateDirectory):
    assert records(directory).save()
    assert not Path(directory.path or "").exists()


def test_two_that_write_both_count(directory: PrivateDirectory, filled: Path):
    one, other = records(directory), records(directory)
    one.put("one", 1)
    other.put("other", 2)
    other.drop("plain")
    one.save()
    other.save()

    kept = {key: value for key, value in VALUES.items() if key != "plain"}
    assert held(directory) == {**kept, "one": 1, "other": 2}


def test_who_saved_sees_what_the_other_saved(directory: PrivateDirectory, filled: Path):
    one, other = records(directory), records(directory)
    one.put("one", 1)
    one.save()
    assert other.get("one") is None
    other.put("other", 2)
    other.save()
    assert other.get("one") == 1
    assert one.get("other") is None
    one.refresh()
    assert one.get("other") == 2


def test_what_cannot_be_saved_stays(directory: PrivateDirectory, monkeypatch):
    one = records(directory)
    one.put("key", "value")
    monkeypatch.setattr(type(directory), "replace", lambda *_: False)
    assert not one.save()
    assert one.get("key") == "value"
    monkeypatch.undo()
    assert one.save()
    assert held(directory) == {"key": "value"}


def test_another_title_is_another_file(directory: PrivateDirectory, filled: Path):
    assert dict(records(directory, "other").items()) == {}


def test_a_record_counts_under_its_own_title_only(directory: PrivateDirectory, filled: Path):
    rows = filled.read_bytes().split(b"\n")
    filled.write_bytes(b"\n".join([b'"other"', *rows[1:]]))

    assert dict(records(directory, "other").items()) == {}


def test_values_cannot_change_keys(directory: PrivateDirectory, filled: Path):
    title, first, second, *rest = filled.read_bytes().split(b"\n")
    one, other = first.partition(b"\t"), second.partition(b"\t")
    swapped = [one[0] + b"\t" + other[2], other[0] + b"\t" + one[2]]
    filled.write_bytes(b"\n".join([title, *swapped, *rest]))

    assert held(directory) == dict(list(VALUES.items())[2:])


@pytest.mark.parametrize("damage", ["cut", "flip", "drop", "double"])
def test_damage_costs_what_it_hits(directory: PrivateDirectory, filled: Path, damage: str):
    """At every place of the file: whatever is left is as it was written."""
    whole = filled.read_bytes()
    for at in [*range(0, 500, 5), *range(500, len(whole), 997)]:
        filled.write_bytes(
            {
                "cut": whole[:at],
                "flip": whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :],
                "drop": whole[:at] + whole[at + 1 :],
                "double": whole[: at + 1] + whole[at:],
            }[damage]
        )
        left = held(directory)
        assert left.items() <= VALUES.items(), at
        assert damage == "cut" or not left or len(left) >= len(VALUES) - 2


GARBAGE = {
    "empty": b"",
    "zeros": bytes(4096),
    "noise": bytes(range(256)) * 64,
    "title only": b'"title"',
    "empty lines": b'"title"\n' + b"\n" * 1_000_000,
    "tabs": b'"title"\n' + b"\t" * 1_000_000,
    "one long line": b'"title"\n"key"\t' + b"x" * 5_000_000,
    "no value": b'"title"\n"key"\t',
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_an_empty_file(directory: PrivateDirectory, filled: Path, content: bytes):
    filled.write_bytes(content)

    assert held(directory) == {}
    again = records(directory)
    again.put("key", "value")
    assert again.save()
    assert held(directory) == {"key": "value"}


@pytest.mark.parametrize(
    "value",
    [b"[" * 100_000, b"1" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"nothing", b"", b"NaN "],
    ids=["nested lists", "a long number", "nested objects", "no ASCII", "no JSON", "empty", "NaN"],
)
def test_a_value_that_says_it_is_right_may_be_anything(
    directory: PrivateDirectory, filled: Path, value: bytes
):
    """The checksum is no secret."""
    one = records(directory)
    line = one._line(b'"key"', value)
    filled.write_bytes(b'"title"\n"key"\t' + line + b"\n")

    found = records(directory).get("key")
    assert found is None or isinstance(found, float)


def test_a_large_file_is_not_read(directory: PrivateDirectory, filled: Path, monkeypatch):
    monkeypatch.setattr(record_file, "_MOST_BYTES", filled.stat().st_size - 1)

    assert held(directory) == {}


def test_the_newest_stay_where_there_is_no_room(directory: PrivateDirectory, monkeypatch):
    monkeypatch.setattr(record_file, "_MOST_RECORDS", 3)
    one = records(directory)
    for key in "abc":
        one.put(key, key)
    one.save()
    one.put("a", "again")
    one.put("d", "d")
    one.save()

    assert held(directory) == {"c": "c", "a": "again", "d": "d"}


def test_the_oldest_go_before_the_file_is_too_large_to_be_read(
    directory: PrivateDirectory, monkeypatch
):
    monkeypatch.setattr(record_file, "_MOST_BYTES", 10_000)
    one = records(directory)
    for number in range(200):
        one.put(f"key{number}", "x" * 100)
        one.save()
        assert held(directory)[f"key{number}"] == "x" * 100
    left = list(held(directory))

    assert left == [f"key{number}" for number in range(200 - len(left), 200)]
    assert len(left) > 50
    assert (Path(directory.path or "") / NAME).stat().st_size <= 10_000


def test_what_ranks_higher_stays_longer(directory: PrivateDirectory, monkeypatch):
    monkeypatch.setattr(record_file, "_MOST_RECORDS", 3)
    one = RecordFile(directory, NAME, "title", rank=lambda value: value["rank"])
    for number, rank in enumerate([1, 0, 1, 0, 0]):
        one.put(f"key{number}", {"rank": rank})
        one.save()

    assert list(held(directory)) == ["key0", "key2", "key4"]


def test_what_others_need_stays_with_them(directory: PrivateDirectory, monkeypatch):
    monkeypatch.setattr(record_file, "_MOST_RECORDS", 2)
    one = records(directory)
    for key in "abc":
        one.put(key, key)
    one.renew("a")
    one.renew("unknown")
    one.save()

    assert held(directory) == {"c": "c", "a": "a"}


def test_a_huge_value_is_not_kept(directory: PrivateDirectory):
    one = records(directory)
    one.put("huge", "x" * 2_000_000)
    one.put("small", "x")
    one.save()

    assert held(directory) == {"small": "x"}


def test_values_are_found_by_a_digest_in_them(directory):
    one, other = "ab" * 32, "cd" * 32
    saved = records(directory)
    saved.put("plain", {"sha256": one})
    saved.put("of others", [other])
    saved.save()
    found = records(directory)

    assert found.keys_with_digest(one) == ["plain"]
    found.put("new", [other, [one]])
    assert found.keys_with_digest(one) == ["plain", "new"]
    assert found.keys_with_digest(other) == ["of others", "new"]
    assert found.keys_with_digest("ef" * 32) == []
    assert found.keys_with_digest(one[:-2]) == []
    found.save()
    assert records(directory).keys_with_digest(one) == ["plain", "new"]


def test_the_file_is_lines_of_ascii(filled: Path):
    lines = filled.read_text("ascii").splitlines()

    assert json.loads(lines[0]) == "title"
    assert len(lines) == 1 + len(VALUES)


def test_a_shortage_costs_nobody_a_record(directory: PrivateDirectory, filled: Path, monkeypatch):
    """What cannot be read now is not empty: who writes then would drop what others wrote."""

    def no_descriptor_left(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    one = records(directory)
    one.put("new", 1)
    with monkeypatch.context() as patch:
        patch.setattr(type(directory), "_read", no_descriptor_left)
        assert not one.save()
        assert one.shortage is not None
        assert dict(one.items()) == {**VALUES, "new": 1}
    assert held(directory) == VALUES
    assert one.save()
    assert one.shortage is None
    assert held(directory) == {**VALUES, "new": 1}


def test_a_signal_handler_may_read_the_file_while_digests_are_looked_up(
    directory: PrivateDirectory,
):
    one, digest = records(directory), "ab" * 32
    one.put("key", digest)
    assert one.save()
    found = MomentOfStep(lambda: None, 1 << 30)
    with found:
        one.keys_with_digest(digest)
    for step in range(1, found.steps):
        one.refresh()
        with MomentOfStep(one.refresh, step):
            assert one.keys_with_digest(digest) == ["key"]


@pytest.mark.parametrize("change", ["put", "read"])
def test_digests_that_come_while_digests_are_looked_up_are_found_later(
    directory: PrivateDirectory, change: str
):
    one, other, digest = records(directory), records(directory), "ab" * 32
    one.put("key", digest)
    assert one.save()

    def come() -> None:
        file = one if change == "put" else other
        file.put("new", digest)
        if file is other:
            other.save()
            one.refresh()

    found = MomentOfStep(lambda: None, 1 << 30)
    with found:
        one.keys_with_digest(digest)
    for step in range(1, found.steps + 1):
        one.drop("new")
        assert one.save()
        one.refresh()
        with MomentOfStep(come, step):
            one.keys_with_digest(digest)
        assert "new" in one.keys_with_digest(digest), step


def test_a_thread_that_has_read_an_older_file_costs_nobody_a_record(
    directory: PrivateDirectory, monkeypatch: pytest.MonkeyPatch
):
    """At every step of saving."""
    one, other = records(directory), records(directory)
    read = type(directory).read
    step, has_come = 0, True
    while has_come:
        step += 1
        has_read, goes_on = threading.Event(), threading.Event()

        def read_slowly(*given: Any, reading: Any = (has_read, goes_on)) -> bytes | None:
            content = read(*given)
            if threading.current_thread() is not threading.main_thread():
                reading[0].set()
                assert reading[1].wait(30)
            return content

        def finish(reader: threading.Thread, goes_on: threading.Event = goes_on) -> None:
            goes_on.set()
            reader.join()

        monkeypatch.setattr(type(directory), "read", read_slowly)
        reader = threading.Thread(target=one.refresh)
        reader.start()
        assert has_read.wait(30)
        other.put("theirs", step)
        assert other.save()
        one.put("own", step)
        moment = MomentOfStep(partial(finish, reader), step)
        with moment:
            assert one.save()
        finish(reader)
        has_come = moment.steps == step

        assert held(directory) == dict(one.items()) == {"theirs": step, "own": step}


def test_what_threads_change_while_one_saves_is_not_lost(directory: PrivateDirectory):
    file = records(directory)
    count = 200

    def fill(thread: int) -> None:
        for number in range(count):
            file.put(f"{thread} {number}", number)
            if number % 20 == 0:
                file.save()
                file.refresh()
                list(file.items())
                file.keys_with_digest("0" * 64)

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(fill, thread) for thread in range(4)]:
            future.result()
    file.save()

    expected = {f"{thread} {number}": number for thread in range(4) for number in range(count)}
    assert dict(file.items()) == expected
    assert dict(records(directory).items()) == expected
