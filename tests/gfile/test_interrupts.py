"""What a signal handler interrupts loses nothing when it is tried again."""

import pytest

from tests.fixtures.interrupts import interrupted

ROOT = "ram://files-of-test-interrupts"
LINES = [f"line {number}\r\n" for number in range(5)]
TEXT = "".join(LINES).encode()


@pytest.fixture
def uri(functions):
    functions.makedirs(ROOT)
    with functions.GFile(f"{ROOT}/f", "wb") as file:
        file.write(TEXT)
    return f"{ROOT}/f"


READS = {
    "read": lambda file: file.read(12),
    "readline": lambda file: file.readline(),
    "readlines": lambda file: b"".join(file.readlines()),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_no_byte_is_lost_by_an_interrupt(functions, uri, read):
    def begin():
        file = functions.GFile(uri, "rb")
        return file, [file.read(3)]

    for (file, found), _ in interrupted(begin, lambda made: made[1].append(read(made[0]))):
        assert b"".join(found) + file.read() == TEXT
        file.close()


@pytest.mark.parametrize("content", [b"written", None])
def test_an_interrupted_close_is_finished_by_the_next(service, functions, uri, content):
    n_open = service.filesystem("ram").open_count

    def begin():
        functions.remove(uri)
        file = functions.GFile(uri, "w")
        if content is not None:
            file.write(content)
        return file

    for file, _ in interrupted(begin, lambda file: file.close()):
        file.close()
        assert file.closed
        assert functions.stat(uri).length == len(content or b"")
        assert service.filesystem("ram").open_count == n_open
