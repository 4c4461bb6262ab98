"""How many requests the operations of the real plugins take: nothing is asked twice."""

from __future__ import annotations

import ast
import json

import pytest

from tests.fixtures.emulators import proxied
from tests.wild.conftest import STORES

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_LOOK = {"HEAD": 1, "list": 1}
_ONE = {"GET range": 1}
_READ, _OPENED, _STAT = (
    "fs.read_file(uri('large'))",
    "fs.open(uri('large'), 'rb').read()",
    "fs.stat(uri('large'))",
)
_FACE = "mtf.fsspec.ModularFileSystem('s3', service=service)"

# What is done before, what is counted, and the requests.
_OF_S3 = {
    "a look-up": ("", "fs.stat(uri('small'))", _LOOK),
    "a small file is read whole": ("", "fs.read_file(uri('small'))", _ONE),
    "and by fsspec": ("", f"{_FACE}.cat_file(uri('small'))", _ONE),
    "it is opened by its only read": ("", "fs.open(uri('small'), 'rb').seek(0, 2)", _ONE),
    "a large file is looked at when it is opened": (
        "", "fs.open(uri('large'), 'rb').seek(0, 2)", {**_ONE, **_LOOK},
    ),
    "a directory that exists is looked at once": (
        "", "put('directory/file', b'x'); fs.recursively_create_dir(uri('directory'))",
        {"PUT": 1, **_LOOK},
    ),
    "a long file that became short is read whole": (
        f"{_STAT}; put('large', b'short')", f"expect({_READ}, b'short')", _ONE,
    ),
    "a listing of two pages": (
        "for n in range(150): change(f'pages/{n:04}', b'')",
        "expect(len(fs.get_children(uri('pages'))), 150)",
        {"list": 2},
    ),
    "a file that was looked at right now": (  # the second does not end
        f"stat_cache.monotonic = lambda: 1000.0; {_FACE}.info(uri('large'))",
        f"expect({_FACE}.isfile(uri('large')), True)",
        {},
    ),
}  # fmt: skip


@pytest.fixture
def requests_of(distant_s3, run_subject):
    """Return what counts the requests of calls, each by a service of its own, by kind."""

    def requests(rows, **environment):
        child = run_subject(
            distant_s3,
            """
            import modular_tf.fsspec
            from modular_tf.filesystem import stat_cache

            for before, call in json.loads(sys.argv[1]):
                fs.path_exists(uri("small"))  # what is asked once for all
                put("small", b"content")
                if "large" in before + call:
                    put("large", bytes(12 << 20))
                print(before, call, sep="; ", file=sys.stderr)  # which of them fails
                exec(before)
                print(requests_of(lambda: exec(call, globals())))
                service.close()
                service = begin()
                fs = service.filesystem_for(base)
            """,
            json.dumps(rows),
            env=environment,
        )
        return [ast.literal_eval(line) for line in child.stdout.splitlines()]

    return requests


def test_operations_of_s3_ask_nothing_twice(requests_of):
    found = requests_of([(before, call) for before, call, _ in _OF_S3.values()])

    assert dict(zip(_OF_S3, found, strict=True)) == {
        name: expected for name, (_, _, expected) in _OF_S3.items()
    }


def test_s3_reads_ask_twice(requests_of):
    read = [("", "get('small')")]
    assert requests_of(read) == [_ONE]
    asked = requests_of(read, S3_DISABLE_MULTI_PART_DOWNLOAD="0")
    assert asked == [{"HEAD range": 1, "GET range": 1}]


def test_s3_large_reads_use_one_connection(requests_of):
    """12 MiB come in three pieces, after the first block and between two looks of one version."""
    whole, opened = requests_of([("", _READ), ("", _OPENED)])
    assert whole == {"GET range": 1 + 3, "HEAD": 2, "list": 2}
    assert opened == {"GET range": 1 + 3, **_LOOK}


def test_s3_looks_twice(requests_of):
    """Where the last look gave the length, a read at the end of the file confirms it."""
    opening = [(_STAT, "fs.open(uri('large'), 'rb').seek(0, 2)")]
    assert requests_of(opening) == [_ONE]
    assert requests_of(opening, WILD_WITHOUT="_confirmed_length") == [_LOOK]


def test_a_long_file_that_others_changed_or_deleted_is_read_and_opened_as_it_is(
    distant_s3, run_subject
):
    """What a look found before is no more than what the next one is compared with."""
    run_subject(
        distant_s3,
        """
        from modular_tf.fsspec import ModularFileSystem

        s3, path = ModularFileSystem("s3", service=service), uri("large")
        for length in (0, 3 << 20, (12 << 20) + 1):
            new = b"n" * length
            put("large", bytes(12 << 20))
            fs.stat(path)
            change("large", new)
            expect((length, fs.read_file(path) == new), (length, True))
            put("large", bytes(12 << 20))
            expect(s3.info(path)["size"], 12 << 20)
            change("large", new)
            with s3.open(path) as file:
                expect((file.size, file.read() == new), (length, True))
        put("large", bytes(12 << 20))
        fs.stat(path)
        change("large")
        expect_error(errors.NotFoundError, s3.open, path)
        put("large", bytes(2 << 20))
        expect(s3.info(path)["type"], "file")
        change("large")
        expect(s3.exists(path), False)
        expect_error(errors.NotFoundError, s3.info, path)
        put("large", bytes(12 << 20))
        fs.stat(path)
        fs.delete_file(path)  # and is not read in pieces
        asked = requests_of(lambda: expect_error(errors.NotFoundError, fs.read_file, path))
        expect(asked["GET range"], 1)
        """,
    )


@pytest.fixture
def counts(request, run_subject, tmp_path):
    """Return the requests that calls make at a store, in a process that has asked before."""

    def requests(store, *calls, without=""):
        found = request.getfixturevalue(STORES[store])
        if found.folder is not None:
            (found.folder / "small").write_bytes(b"content")
            (found.folder / "large").write_bytes(bytes(3 << 20))
        code = """
            if not base.startswith("http"):
                put("small", b"content")
            fs.path_exists(uri("small"))
            for call in json.loads(sys.argv[1]):
                print(requests_of(lambda: eval(call)))
            """
        folder = "counted" if found.folder is None else ""

        def run(controlled):
            arguments = controlled, code, json.dumps(calls)
            return run_subject(*arguments, folder=folder, without=without).stdout

        if store != "az":
            output = run(found)
        else:
            with proxied(found, tmp_path) as proxy:
                output = run(proxy)
        return [ast.literal_eval(line) for line in output.splitlines()]

    return requests


_WHOLE, _OPENED_SMALL = "fs.read_file(uri('small'))", "fs.open(uri('small'), 'rb').read()"
_SIZE, _EXISTS = "fs.get_file_size(uri('small'))", "fs.path_exists(uri('small'))"


def test_az_stat_asks_four_times(counts):
    """The plugin asks for the length before it reads; we ask once more after a read of the end."""
    assert counts("az", _OPENED_SMALL, _WHOLE, _SIZE, _EXISTS) == [
        *[{"GET range": 1, "HEAD": 2}] * 2, *[{"HEAD": 1}] * 2,
    ]  # fmt: skip
    assert counts("az", _SIZE, without="length_by_size") == [{"HEAD": 4}]


def test_oss_opening_asks_too(counts):
    assert counts("oss", _OPENED_SMALL, _WHOLE, _SIZE) == [
        *[{"GET range": 1, "HEAD": 1}] * 2, {"HEAD": 1},
    ]  # fmt: skip
    assert counts("oss", _SIZE, without="length_by_size") == [{"HEAD": 2}]


def test_gs_and_http_read_without_a_look_up(counts):
    """A look-up of gs takes three: the plugin lists the directory, and asks for the object twice.

    One of http would fetch the whole file; the single byte shows that the server knows ranges.
    """
    assert counts("gs", _WHOLE, _OPENED_SMALL, _SIZE) == [_ONE, _ONE, {"GET": 3}]
    pieces = [{"GET range": 3}, {"GET range": 2}]
    assert counts("http", _WHOLE, _OPENED_SMALL, _READ, _READ) == [_ONE, _ONE, *pieces]
