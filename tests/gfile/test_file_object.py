"""What `GFile` offers beyond TensorFlow's, and what nobody recorded."""

import csv
import io
import pickle
import zipfile

import pytest

from modular_tf.errors import ClosedError, InvalidArgumentError, NotFoundError
from modular_tf.gfile.file import _BUFFER as FIRST_BLOCK

ROOT = "ram://files-of-test-file-object"


@pytest.fixture
def root(functions):
    if functions.exists(ROOT):
        functions.rmtree(ROOT)
    functions.makedirs(ROOT)
    return ROOT


def write(functions, uri, content):
    with functions.GFile(uri, "wb") as file:
        file.write(content)
    return uri


def test_says_what_its_mode_allows(functions, root):
    for mode, allowed in {"r": (1, 0), "wb": (0, 1), "ab": (0, 1), "r+": (1, 1)}.items():
        file = functions.GFile(f"{root}/a", mode)
        assert (file.readable(), file.writable()) == allowed
    with pytest.raises(ValueError, match="'rw'") as caught:
        functions.GFile(f"{root}/a", "rw")
    assert isinstance(caught.value, InvalidArgumentError)


def test_a_file_that_was_read_whole_is_read_on_and_told_and_closed_when_it_is_gone(functions, root):
    uri = write(functions, f"{root}/a", "line\n")
    file = functions.GFile(uri)
    assert file.read() == "line\n"
    assert (file.tell(), file.read(), file.readline()) == (5, "", "")
    with functions.GFile(uri, "ab") as other:
        other.write("more")
    assert (file.read(2), file.tell()) == ("mo", 7)
    file.seek(0)
    assert (file.read(), file.tell()) == ("line\nmore", 9)
    functions.remove(uri)

    assert (file.tell(), file.read(), file.readline()) == (9, "", "")
    assert not file.closed
    file.close()
    assert file.closed
    assert "closed" in repr(file)
    with pytest.raises(ClosedError, match="was closed before"), file:
        pass
    with pytest.raises(ClosedError):
        file.tell()


@pytest.mark.parametrize("size", [9, FIRST_BLOCK, 3 * FIRST_BLOCK])
@pytest.mark.parametrize("first", ["read", "readline", "readinto"])
def test_what_was_added_since_the_first_read_is_read(functions, root, size, first):
    content = b"line\n" + b"x" * (size - 5)
    uri = write(functions, f"{root}/a", content)
    buffer = bytearray(3)
    begin = {"read": lambda f: f.read(3), "readline": lambda f: f.readline()}
    begin["readinto"] = lambda f: bytes(buffer[: f.readinto(buffer)])
    with functions.GFile(uri, "rb") as file:
        found = begin[first](file)
        with functions.GFile(uri, "ab") as other:
            other.write("more\n")
        found += file.readline() + b"".join(file.readlines()) + file.read()

    assert found == content + b"more\n"


def test_bytes_that_are_no_text_are_passed_over(functions, root):
    """As TensorFlow does: the next read finds what follows."""
    file = functions.GFile(write(functions, f"{root}/a", b"\xff\xff"))
    with pytest.raises(UnicodeDecodeError):
        file.read()

    assert (file.tell(), file.read()) == (2, "")


def test_libraries_write_and_read_it(functions, root):
    value = {"bytes": bytes(range(256)) * 300, "text": "line\r\nline\n", "number": -1}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("big", b"0123456789" * 30_000)
    with functions.GFile(f"{root}/a.pickle", "wb") as file:
        pickle.dump(value, file, 0)
    with functions.GFile(f"{root}/a.pickle", "rb") as file:
        assert pickle.load(file) == value
    with functions.GFile(write(functions, f"{root}/a.csv", "x,y\r\n1,ü\r\n")) as file:
        assert list(csv.reader(file)) == [["x", "y"], ["1", "ü"]]
    with functions.GFile(write(functions, f"{root}/z", archive.getvalue()), "rb") as file:
        assert zipfile.ZipFile(file).read("big") == b"0123456789" * 30_000


def test_lines_are_written_as_they_are_and_read_into_a_buffer(functions, root):
    buffer = bytearray(3)
    with functions.GFile(f"{root}/a", "w") as file:
        file.writelines(["a\n", b"b", "c"])
    with functions.GFile(f"{root}/a", "rb") as file:
        assert [file.readinto(buffer), file.readinto(buffer), file.readinto(buffer)] == [3, 1, 0]

    assert buffer == b"c\nb"


def test_close_fails_once_at_most(functions, root):
    file = functions.GFile(f"{root}/none/a", "w")

    with pytest.raises(NotFoundError):
        file.close()
    file.close()
    assert file.closed
