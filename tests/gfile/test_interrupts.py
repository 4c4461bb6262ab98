"""Reads that a signal handler interrupts, or that fail, lose nothing when they are tried again."""

import pytest

from modular_tf import gfile
from modular_tf.errors import UnavailableError
from modular_tf.filesystem import plugin_filesystem
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import interrupt, points

ROOT = "ram://files-of-test-interrupts"
LINES = [f"line {number}\r\n" for number in range(5)]
TEXT = "".join(LINES).encode()


@pytest.fixture
def uri(functions):
    functions.makedirs(ROOT)
    with functions.GFile(f"{ROOT}/f", "wb") as file:
        file.write(TEXT)
    return f"{ROOT}/f"


def read_into_buffer(file):
    buffer = bytearray(12)
    return bytes(buffer[: file.readinto(buffer)])


READS = {
    "read-some": lambda file: file.read(12),
    "read-all": lambda file: file.read(),
    "readinto": read_into_buffer,
    "readline": lambda file: file.readline(),
    "next": next,
    "readlines": lambda file: b"".join(file.readlines()),
}


def interrupted_everywhere(open_file, begin, act):
    """Yield what an action found, and its file, for an interrupt at each of its points."""
    for point in points():
        with open_file() as file:
            found = begin(file)
            more = interrupt(lambda: found.append(act(file)), point=point)  # noqa: B023
            yield found, file
        if not more:
            assert point
            break


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_no_byte_is_lost_by_an_interrupt(functions, uri, read):
    def open_file():
        return functions.GFile(uri, "rb")

    for found, file in interrupted_everywhere(open_file, lambda file: [file.read(3)], read):
        assert b"".join(found) + file.read() == TEXT


def test_no_line_of_text_is_lost_by_an_interrupt(functions, uri):
    def open_file():
        return functions.GFile(uri)

    for found, file in interrupted_everywhere(open_file, lambda _: [], lambda file: file.read()):
        assert "".join(found) + file.read() == TEXT.decode()
    lines = [line.replace("\r", "") for line in LINES]
    for found, file in interrupted_everywhere(
        open_file, lambda file: [file.readline()], lambda file: file.readline()
    ):
        assert found + file.readlines() == lines


class _UnsteadyFile(RandomAccessFile):
    uri = "zz://file"

    def __init__(self, content):
        self._content = content
        self._failed = False

    def readinto(self, offset, buffer):
        if offset and not self._failed:
            self._failed = True
            raise UnavailableError("the connection was reset")
        view = memoryview(buffer)
        piece = self._content[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def close(self):
        pass


class _UnsteadyFilesystem:
    content = b"a line\n" * 10_000

    def new_random_access_file(self, _):
        return _UnsteadyFile(self.content)

    def get_file_size(self, _):
        return 0  # it lies, so that files are read until they end


@pytest.fixture
def unsteady():
    with PluginService(bundled=False) as service:
        service.register_filesystem("zz", _UnsteadyFilesystem())
        yield service


def test_a_line_whose_read_failed_is_whole_when_it_is_read_again(unsteady):
    file = gfile.using(unsteady).GFile("zz://file", "rb")
    found = []
    failures = 0
    while not found or found[-1]:
        try:
            found.append(file.readline())
        except UnavailableError:
            failures += 1

    assert failures == 1
    assert b"".join(found) == _UnsteadyFilesystem.content


def test_lines_that_a_failure_kept_back_are_read_again(unsteady):
    file = gfile.using(unsteady).GFile("zz://file", "rb")
    with pytest.raises(UnavailableError):
        file.readlines()

    assert b"".join(file.readlines()) == _UnsteadyFilesystem.content


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_stream_that_failed_to_read_the_rest_reads_it_again(unsteady, buffering):
    file = unsteady.filesystem("zz").open("zz://file", "rb", buffering=buffering)
    with pytest.raises(UnavailableError):
        file.read()

    assert file.read() == _UnsteadyFilesystem.content


@pytest.mark.parametrize("content", [b"written", None])
def test_an_interrupted_close_is_finished_by_the_next(service, functions, uri, content):
    n_open = service.filesystem("ram").open_count
    for point in points():
        if functions.exists(uri):
            functions.remove(uri)
        file = functions.GFile(uri, "w")
        if content is not None:
            file.write(content)
        more = interrupt(file.close, point=point)
        file.close()
        assert file.closed
        assert functions.stat(uri).length == len(content or b"")
        assert service.filesystem("ram").open_count == n_open
        if not more:
            assert point
            break


def test_a_close_that_a_signal_handler_ends_with_an_exception_is_finished_by_the_next(
    service, functions, uri, monkeypatch
):
    def time_out(_):
        monkeypatch.undo()
        raise TimeoutError

    n_open = service.filesystem("ram").open_count
    file = functions.GFile(uri, "w")
    file.write(b"written")
    monkeypatch.setattr(plugin_filesystem, "_close_writer", time_out)
    with pytest.raises(TimeoutError):
        file.close()

    file.close()

    assert functions.stat(uri).length == len(b"written")
    assert service.filesystem("ram").open_count == n_open
