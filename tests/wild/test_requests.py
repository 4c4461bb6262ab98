"""How many requests the operations of the real plugins take: nothing is asked twice."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.emulators import counted
from tests.wild.conftest import STORES

if TYPE_CHECKING:
    from tests.fixtures.emulators import Store

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_CALLS = {
    "stat": "fs.stat(uri('small'))",
    "read_file": "fs.read_file(uri('small'))",
    "open, read": "fs.open(uri('small'), 'rb').read()",
    "open, seek to the end": "fs.open(uri('small'), 'rb').seek(0, 2)",
    "read_file of 20 MiB": "fs.read_file(uri('large'))",
    "open, read 20 MiB": "fs.open(uri('large'), 'rb').read()",
    "stat of 20 MiB": "fs.stat(uri('large'))",
    "cat_file": "mtf.fsspec.ModularFileSystem('s3', service=service).cat_file(uri('small'))",
}


def _difference(once: dict[str, int], both: dict[str, int]) -> dict[str, int]:
    more = {kind: number - once.get(kind, 0) for kind, number in both.items()}
    return {kind: number for kind, number in more.items() if number}


@pytest.fixture
def requests_of(distant_s3, run_subject):
    """Return the requests that a call makes, by kind, in a process that has asked before."""

    def requests(call: str, **environment: str) -> dict[str, int]:
        child = run_subject(
            distant_s3,
            f"""
            import urllib.request

            def control(method):
                url = os.environ["S3_ENDPOINT"] + "/-/requests"
                return urllib.request.urlopen(urllib.request.Request(url, method=method)).read()

            fs.path_exists(uri("small"))
            put("small", b"content")
            put("large", bytes(20 << 20))
            control("DELETE")
            {call}
            print(control("GET").decode())
            """,
            env=environment,
        )
        found: dict[str, int] = ast.literal_eval(child.stdout.strip())["requests"]
        return found

    return requests


def test_s3_reads_ask_twice(requests_of):
    read = "get('small')"
    assert requests_of(read) == {"GET range": 1}
    asked = requests_of(read, S3_DISABLE_MULTI_PART_DOWNLOAD="0")
    assert asked == {"HEAD range": 1, "GET range": 1}


def test_s3_large_reads_use_one_connection(requests_of):
    """20 MiB come in five pieces, after the first block and between two looks of one version."""
    read = requests_of(_CALLS["read_file of 20 MiB"])
    assert read == {"GET range": 1 + 5, "HEAD": 2, "list": 2}
    read = requests_of(_CALLS["open, read 20 MiB"])
    assert read == {"GET range": 1 + 5, "HEAD": 1, "list": 1}


def test_a_directory_that_exists_is_looked_at_once(requests_of):
    made = "put('directory/file', b'x'); fs.recursively_create_dir(uri('directory'))"
    assert requests_of(made) == {"PUT": 1, "HEAD": 1, "list": 1}


@pytest.mark.parametrize("look", ["read_file of 20 MiB", "open, read 20 MiB", "stat of 20 MiB"])
def test_a_file_that_was_long_is_looked_up_first(requests_of, look):
    before = _CALLS[look]
    once = requests_of(before)
    for call, expected in (
        (_CALLS["read_file of 20 MiB"], {"GET range": 5, "HEAD": 1, "list": 1}),
        (_CALLS["open, read 20 MiB"], {"GET range": 1 + 5}),
    ):
        both = requests_of(f"{before}; {call}")
        assert _difference(once, both) == expected


def test_a_long_file_that_became_short_is_read_whole(requests_of):
    changed = "fs.stat(uri('large')); put('large', b'short')"
    read = "expect(fs.read_file(uri('large')), b'short')"
    assert requests_of(f"{changed}; {read}") == {"HEAD": 1, "list": 1, "PUT": 1, "GET range": 1}


@pytest.mark.parametrize("way", ["copy_file", "rename_file"])
def test_a_long_file_that_was_replaced_is_not_read_twice(requests_of, way):
    replaced = (
        "put('other', bytes(21 << 20)); fs.stat(uri('large'));"
        f" fs.{way}(uri('other'), uri('large'))"
    )
    once = requests_of(replaced)
    both = requests_of(f"{replaced}; fs.read_file(uri('large'))")
    assert _difference(once, both) == {
        "GET range": 1 + 6,
        "HEAD": 2,
        "list": 2,
    }


def test_a_file_that_was_deleted_is_not_read_in_pieces(requests_of):
    deleted = "fs.stat(uri('large')); fs.delete_file(uri('large'))"
    once = requests_of(deleted)
    both = requests_of(f"{deleted}; expect_error(errors.NotFoundError, fs.read_file, uri('large'))")
    assert both.get("GET range", 0) - once.get("GET range", 0) == 1


@pytest.mark.parametrize("length", [0, 5, 3 << 20, 20 << 20, 30 << 20])
def test_a_long_file_that_others_changed_since_the_last_look_is_read_as_it_is(
    distant_s3, run_subject, length
):
    """What a look told before is no more than what the next one is compared with."""
    run_subject(
        distant_s3,
        f"""
        import urllib.request

        put("large", bytes(20 << 20))
        fs.stat(uri("large"))
        url = uri("large").replace("s3://", os.environ["S3_ENDPOINT"] + "/")
        new = b"n" * {length}
        urllib.request.urlopen(urllib.request.Request(url, new, method="PUT"))
        expect(fs.read_file(uri("large")) == new, True)
        urllib.request.urlopen(urllib.request.Request(url, method="DELETE"))
        expect_error(errors.NotFoundError, fs.read_file, uri("large"))
        """,
    )


def test_s3_looks_twice(requests_of):
    """Where the last look told the length, a read at the end of the file confirms it."""
    opening = "fs.open(uri('large'), 'rb').seek(0, 2)"
    once = requests_of("fs.stat(uri('large'))")
    for environment, expected in (
        ({}, {"GET range": 1}),
        ({"WILD_WITHOUT": "_confirmed_length"}, {"HEAD": 1, "list": 1}),
    ):
        both = requests_of(f"fs.stat(uri('large')); {opening}", **environment)
        assert _difference(once, both) == expected


def test_what_confirmed_the_length_is_not_read_again(requests_of):
    looked_at = "put('large', bytes(20 << 20) + b'the end'); fs.stat(uri('large'));"
    for offset, n, expected in (
        ((20 << 20) + 4, 100, {"GET range": 1}),
        ((20 << 20) + 7 - (1 << 16), 1 << 16, {"GET range": 1}),
        ((20 << 20) + 6 - (1 << 16), 1 << 16, {"GET range": 2}),
    ):
        read = (
            f"file = fs.new_random_access_file(uri('large')); found = file.read({offset}, {n});"
            f" expect(found, (bytes(20 << 20) + b'the end')[{offset} : {offset + n}])"
        )
        assert _difference(requests_of(looked_at), requests_of(looked_at + read)) == expected


@pytest.mark.parametrize("length", [0, 5, 3 << 20, (20 << 20) - 1, 20 << 20, (20 << 20) + 1, None])
def test_a_long_file_that_others_replaced_since_the_last_look_is_opened_as_it_is(
    distant_s3, run_subject, length
):
    run_subject(
        distant_s3,
        f"""
        import urllib.request
        from modular_tf.fsspec import ModularFileSystem

        def change(method, data=None):
            url = uri("large").replace("s3://", os.environ["S3_ENDPOINT"] + "/")
            urllib.request.urlopen(urllib.request.Request(url, data, method=method))

        s3, path, length = ModularFileSystem("s3", service=service), uri("large"), {length}
        put("large", bytes(20 << 20))
        expect(s3.info(path)["size"], 20 << 20)
        if length is None:
            change("DELETE")
            expect_error(errors.NotFoundError, s3.open, path)
        else:
            change("PUT", b"n" * length)
            with s3.open(path) as file:
                expect((file.size, file.read() == b"n" * length), (length, True))
        """,
    )


_FACE = "mtf.fsspec.ModularFileSystem('s3', service=service)"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("", [True, {}]),
        ("s3.invalidate_cache()", [True, {"HEAD": 1, "list": 1}]),
        ("s3.pipe_file(path, b'short')", [True, {"HEAD": 1, "list": 1}]),
        ("s3.rm(path)", [False, {"HEAD": 1, "list": 2, "GET range": 1}]),
        ("s3.mv(path, uri('moved'))", [False, {"HEAD": 1, "list": 1}]),
    ],
)
def test_a_file_that_was_seen_right_now_is_a_file_until_it_is_changed(
    distant_s3, run_subject, change, expected
):
    child = run_subject(
        distant_s3,
        f"""
        import json
        import urllib.request
        from modular_tf.filesystem import stat_cache

        stat_cache.monotonic = lambda: 1000.0  # the second does not end

        def control(method):
            url = os.environ["S3_ENDPOINT"] + "/-/requests"
            return urllib.request.urlopen(urllib.request.Request(url, method=method)).read()

        s3, path = {_FACE}, uri("large")
        put("large", bytes(2 << 20))
        s3.info(path)
        {change}
        control("DELETE")
        print([s3.isfile(path), json.loads(control("GET"))["requests"]])
        expect((s3.isdir(path), s3.exists(path)), (False, {expected[0]}))
        """,
    )
    assert ast.literal_eval(child.stdout.strip()) == expected


def test_a_look_that_a_deletion_overtakes_is_not_remembered(distant_s3, run_subject):
    run_subject(
        distant_s3,
        f"""
        s3, path, look, note = {_FACE}, uri("large"), fs._find, fs._found_long.put

        def overtaken_look(*arguments, **options):
            found, fs._find = look(*arguments, **options), look
            fs.delete_file(path)
            return found

        def overtaken_note(*arguments):
            fs._found_long.put = note
            fs.delete_file(path)
            note(*arguments)

        for owner, name, overtaken in (
            (fs, "_find", overtaken_look), (fs._found_long, "put", overtaken_note)
        ):
            put("large", bytes(2 << 20))
            setattr(owner, name, overtaken)
            expect(s3.info(path)["size"], 2 << 20)
            expect(s3.isfile(path), False)
        """,
    )


def test_what_others_deleted_right_now_is_told_by_info_and_exists(distant_s3, run_subject):
    run_subject(
        distant_s3,
        f"""
        import urllib.request

        s3, path = {_FACE}, uri("large")
        put("large", bytes(2 << 20))
        expect(s3.info(path)["type"], "file")
        url = path.replace("s3://", os.environ["S3_ENDPOINT"] + "/")
        urllib.request.urlopen(urllib.request.Request(url, method="DELETE"))
        expect(s3.exists(path), False)
        expect_error(errors.NotFoundError, s3.info, path)
        """,
    )


def test_a_look_up_is_two_requests(requests_of):
    assert requests_of(_CALLS["stat"]) == {"HEAD": 1, "list": 1}


@pytest.mark.parametrize("call", ["read_file", "cat_file"])
def test_a_small_object_is_read_whole_without_a_look_up(requests_of, call):
    assert requests_of(_CALLS[call]) == {"GET range": 1}


def test_a_small_object_is_opened_by_its_only_read(requests_of):
    assert requests_of(_CALLS["open, seek to the end"]) == {"GET range": 1}
    assert requests_of(_CALLS["open, read"]) == {"GET range": 1}


def test_what_the_look_up_at_open_learned_is_not_asked_again(requests_of):
    opened = requests_of("fs.open(uri('large'), 'rb').seek(0, 2)")
    assert opened == {"GET range": 1, "HEAD": 1, "list": 1}


def test_a_long_read_takes_its_pages_once(distant_s3, run_subject):
    """The plugin's streams grow and shrink; malloc would give their pages back after each piece."""
    child = run_subject(
        distant_s3,
        """
        import resource
        size = 64 << 20
        put("large", bytes(size))

        def faults():
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

        taken = []
        for _ in range(9):
            before = faults()
            assert len(fs.read_file(uri("large"))) == size
            taken.append(faults() - before)
        print(sorted(taken)[len(taken) // 2], size // os.sysconf("SC_PAGE_SIZE"))
        """,
    )
    taken, pages = map(int, child.stdout.split())
    assert taken < 1.25 * pages


@pytest.mark.parametrize("new", [1_900_000, 2_100_000, 9_000_000])
@pytest.mark.parametrize("old", [2_000_000, 10_000_000])
def test_a_file_that_changes_after_the_look_is_read_whole(distant_s3, run_subject, old, new):
    run_subject(
        distant_s3,
        f"""
        put("changing", b"a" * {old})
        look, left = fs._found_file, [b"b" * {new}]

        def found_file(*arguments):
            found = look(*arguments)
            if left:
                put("changing", left.pop())
            return found

        fs._found_file = found_file
        assert fs.read_file(uri("changing")) == b"b" * {new}
        """,
    )


@pytest.fixture
def counts(request, run_subject, tmp_path):
    """Return the requests that calls make at a store, in a process that has asked before."""

    def requests(store: str, *calls: str, without: str = "") -> list[dict[str, int]]:
        found: Store = request.getfixturevalue(STORES[store])
        if found.folder is not None:
            (found.folder / "small").write_bytes(b"content")
            (found.folder / "large").write_bytes(bytes(3 << 20))
        with counted(found, tmp_path) as (behind_proxy, notes):
            code = f"""
                import sys, time
                notes = sys.argv[1]
                if not base.startswith("http"):
                    put("small", b"content")
                    put("large", bytes(3 << 20))
                fs.path_exists(uri("small"))
                for call in {calls!r}:
                    before = len(open(notes).read().split("\\n"))
                    eval(call)
                    kinds = open(notes).read().split("\\n")[before - 1:-1]
                    print({{kind: kinds.count(kind) for kind in sorted(set(kinds))}})
                """
            folder = tmp_path.name if found.folder is None else ""
            child = run_subject(behind_proxy, code, notes, folder=folder, without=without)
        return [ast.literal_eval(line) for line in child.stdout.splitlines()]

    return requests


_WHOLE, _OPENED = "fs.read_file(uri('small'))", "fs.open(uri('small'), 'rb').read()"
_SIZE, _EXISTS = "fs.get_file_size(uri('small'))", "fs.path_exists(uri('small'))"


def test_az_stat_asks_four_times(counts):
    """The plugin asks for the length before it reads; we ask once more after a read of the end."""
    assert counts("az", _OPENED, _WHOLE) == [{"GET range": 1, "HEAD": 2}] * 2
    assert counts("az", _SIZE, _EXISTS) == [{"HEAD": 1}] * 2
    assert counts("az", _SIZE, without="length_by_size") == [{"HEAD": 4}]


def test_oss_opening_asks_too(counts):
    assert counts("oss", _OPENED, _WHOLE) == [{"GET range": 1, "HEAD": 1}] * 2
    assert counts("oss", _SIZE) == [{"HEAD": 1}]
    assert counts("oss", _SIZE, without="length_by_size") == [{"HEAD": 2}]


def test_gs_reads_a_small_file_by_one_request(counts):
    """A look-up takes three: the plugin lists the directory, and asks for the object twice."""
    assert counts("gs", _WHOLE, _OPENED, _SIZE) == [{"GET range": 1}] * 2 + [{"GET": 3}]


def test_http_reads_without_a_look_up(counts):
    """A look-up would fetch the whole file; the single byte shows that the server knows ranges."""
    small = {"GET range": 1}
    whole = "fs.read_file(uri('large'))"
    assert counts("http", _WHOLE, _OPENED, whole, whole) == [
        small, small, {"GET range": 3}, {"GET range": 2},
    ]  # fmt: skip
