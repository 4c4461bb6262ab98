"""What `GFile` offers beyond TensorFlow's, and what nobody recorded."""

from __future__ import annotations

import csv
import io
import json
import pickle
import zipfile
from typing import TYPE_CHECKING

import pytest

from modular_tf.errors import ClosedError, InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from modular_tf.gfile import GfileFunctions

ROOT = "ram://files-of-test-file-object"


@pytest.fixture
def root(functions: GfileFunctions) -> str:
    if functions.exists(ROOT):
        functions.rmtree(ROOT)
    functions.makedirs(ROOT)
    return ROOT


def write(functions: GfileFunctions, uri: str, content: str | bytes) -> str:
    with functions.GFile(uri, "wb") as file:
        file.write(content)
    return uri


@pytest.mark.parametrize(
    ("mode", "readable", "writable"),
    [("r", True, False), ("wb", False, True), ("ab", False, True), ("r+", True, True)],
)
def test_says_what_its_mode_allows(
    functions: GfileFunctions, root: str, mode: str, readable: bool, writable: bool
) -> None:
    file = functions.GFile(f"{root}/a", mode)

    assert file.readable() is readable
    assert file.writable() is writable


def test_knows_that_it_is_closed(functions: GfileFunctions, root: str) -> None:
    file = functions.GFile(write(functions, f"{root}/a", "x"))

    assert not file.closed
    file.close()
    assert file.closed
    assert "closed" in repr(file)


def test_a_closed_file_cannot_be_entered(functions: GfileFunctions, root: str) -> None:
    file = functions.GFile(write(functions, f"{root}/a", "x"))
    file.close()

    with pytest.raises(ClosedError, match="was closed before"), file:
        pass


def test_json_is_written_and_read(functions: GfileFunctions, root: str) -> None:
    with functions.GFile(f"{root}/a.json", "w") as file:
        json.dump({"ü": [1, 2]}, file)
    with functions.GFile(f"{root}/a.json") as file:
        assert json.load(file) == {"ü": [1, 2]}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_written_and_read(functions: GfileFunctions, root: str, protocol: int) -> None:
    value = {"bytes": bytes(range(256)) * 300, "text": "line\r\nline\n", "number": -1}
    with functions.GFile(f"{root}/a.pickle", "wb") as file:
        pickle.dump(value, file, protocol)
    with functions.GFile(f"{root}/a.pickle", "rb") as file:
        assert pickle.load(file) == value


def test_csv_rows_are_lines(functions: GfileFunctions, root: str) -> None:
    write(functions, f"{root}/a.csv", "x,y\r\n1,ü\r\n")

    with functions.GFile(f"{root}/a.csv") as file:
        assert list(csv.reader(file)) == [["x", "y"], ["1", "ü"]]


def test_a_zip_archive_is_read_by_seeking(functions: GfileFunctions, root: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("big", b"0123456789" * 30_000)
        writer.writestr("small", b"s")
    write(functions, f"{root}/a.zip", archive.getvalue())

    with functions.GFile(f"{root}/a.zip", "rb") as file, zipfile.ZipFile(file) as reader:
        assert reader.read("small") == b"s"
        assert reader.read("big") == b"0123456789" * 30_000


def test_readinto_fills_any_buffer(functions: GfileFunctions, root: str) -> None:
    write(functions, f"{root}/a", bytes(range(10)))
    buffer = bytearray(8)

    with functions.GFile(f"{root}/a", "rb") as file:
        assert [file.readinto(buffer), file.readinto(buffer), file.readinto(buffer)] == [8, 2, 0]
    assert buffer == bytes([8, 9, 2, 3, 4, 5, 6, 7])


def test_writelines_adds_no_line_ends(functions: GfileFunctions, root: str) -> None:
    with functions.GFile(f"{root}/a", "w") as file:
        file.writelines(["a\n", b"b", "c"])

    assert functions.GFile(f"{root}/a").read() == "a\nbc"


def test_close_fails_once_at_most(functions: GfileFunctions, root: str) -> None:
    file = functions.GFile(f"{root}/none/a", "w")

    with pytest.raises(NotFoundError):
        file.close()
    file.close()
    assert file.closed


def test_a_refused_mode_is_a_value_error_too(functions: GfileFunctions, root: str) -> None:
    with pytest.raises(ValueError, match="'rw'") as caught:
        functions.GFile(f"{root}/a", "rw")
    assert isinstance(caught.value, InvalidArgumentError)


def test_a_file_without_a_size_is_read_whole(functions: GfileFunctions) -> None:
    with functions.GFile("/proc/self/maps", "rb") as file:
        assert file.size() == 0
        assert b"/" in file.read()
