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
_REPLACED = f"put('other', bytes(21 << 20)); {_STAT}; fs.{{}}(uri('other'), uri('large'))"
_TWICE = {**_ONE, "GET range": 1 + 6, "HEAD": 2, "list": 2}

# What is done before, what is counted, and the requests.
_OF_S3 = {
    "a look-up": ("", "fs.stat(uri('small'))", _LOOK),
    "a small file is read whole": ("", "fs.read_file(uri('small'))", _ONE),
    "and by fsspec": ("", f"{_FACE}.cat_file(uri('small'))", _ONE),
    "it is opened by its only read": ("", "fs.open(uri('small'), 'rb').seek(0, 2)", _ONE),
    "which the reader needs not again": ("", "fs.open(uri('small'), 'rb').read()", _ONE),
    "a large file is looked at when it is opened": (
        "", "fs.open(uri('large'), 'rb').seek(0, 2)", {**_ONE, **_LOOK},
    ),
    "a directory that exists is looked at once": (
        "", "put('directory/file', b'x'); fs.recursively_create_dir(uri('directory'))",
        {"PUT": 1, **_LOOK},
    ),
    **{
        f"a file that was long is looked up first: {before}; {call}": (before, call, expected)
        for before in (_READ, _OPENED, _STAT)
        for call, expected in ((_READ, {"GET range": 5, **_LOOK}), (_OPENED, {"GET range": 1 + 5}))
    },
    "a long file that became short is read whole": (
        f"{_STAT}; put('large', b'short')", f"expect({_READ}, b'short')", _ONE,
    ),
    "a long file that a copy replaced": (_REPLACED.format("copy_file"), _READ, _TWICE),
    "a long file that a move replaced": (_REPLACED.format("rename_file"), _READ, _TWICE),
    **{
        f"what confirmed the length is not read again: {n} at {at}": (
            f"put('large', bytes(20 << 20) + b'the end'); {_STAT}",
            f"read_at_the_end({at}, {n})",
            expected,
        )
        for at, n, expected in (
            ((20 << 20) + 4, 100, _ONE),
            ((20 << 20) + 7 - (1 << 16), 1 << 16, _ONE),
            ((20 << 20) + 6 - (1 << 16), 1 << 16, {"GET range": 2}),
        )
    },
}  # fmt: skip


@pytest.fixture
def requests_of(distant_s3, run_subject):
    """Return what counts the requests of calls, each by a service of its own, by kind."""

    def requests(rows, **environment):
        child = run_subject(
            distant_s3,
            """
            import modular_tf.fsspec

            def read_at_the_end(offset, n):
                content = bytes(20 << 20) + b"the end"
                found = fs.new_random_access_file(uri("large")).read(offset, n)
                expect(found, content[offset : offset + n])

            for before, call in json.loads(sys.argv[1]):
                fs.path_exists(uri("small"))  # what is asked once for all
                put("small", b"content")
                put("large", bytes(20 << 20))
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
    """20 MiB come in five pieces, after the first block and between two looks of one version."""
    whole, opened = requests_of([("", _READ), ("", _OPENED)])
    assert whole == {"GET range": 1 + 5, "HEAD": 2, "list": 2}
    assert opened == {"GET range": 1 + 5, **_LOOK}


def test_s3_looks_twice(requests_of):
    """Where the last look told the length, a read at the end of the file confirms it."""
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
        for length in (0, 5, 3 << 20, (20 << 20) - 1, 20 << 20, (20 << 20) + 1, 30 << 20):
            new = b"n" * length
            put("large", bytes(20 << 20))
            fs.stat(path)
            change("large", new)
            expect((length, fs.read_file(path) == new), (length, True))
            put("large", bytes(20 << 20))
            expect(s3.info(path)["size"], 20 << 20)
            change("large", new)
            with s3.open(path) as file:
                expect((file.size, file.read() == new), (length, True))
        put("large", bytes(20 << 20))
        fs.stat(path)
        change("large")
        expect_error(errors.NotFoundError, s3.open, path)
        put("large", bytes(2 << 20))
        expect(s3.info(path)["type"], "file")
        change("large")
        expect(s3.exists(path), False)
        expect_error(errors.NotFoundError, s3.info, path)
        put("large", bytes(20 << 20))
        fs.stat(path)
        fs.delete_file(path)  # and is not read in pieces
        asked = requests_of(lambda: expect_error(errors.NotFoundError, fs.read_file, path))
        expect(asked["GET range"], 1)
        """,
    )


def test_a_file_that_was_seen_right_now_is_a_file_until_it_is_changed(distant_s3, run_subject):
    run_subject(
        distant_s3,
        f"""
        import modular_tf.fsspec
        from modular_tf.filesystem import stat_cache

        stat_cache.monotonic = lambda: 1000.0  # the second does not end
        s3, path, look = {_FACE}, uri("large"), dict(HEAD=1, list=1)
        for change_it, is_file, expected in (
            (lambda: None, True, dict()),
            (s3.invalidate_cache, True, look),
            (lambda: s3.pipe_file(path, b"short"), True, look),
            (lambda: s3.rm(path), False, {{**look, "list": 2, "GET range": 1}}),
            (lambda: s3.mv(path, uri("moved")), False, look),
        ):
            put("large", bytes(2 << 20))
            s3.info(path)
            change_it()
            expect(requests_of(lambda: expect(s3.isfile(path), is_file)), expected)
            expect((s3.isdir(path), s3.exists(path)), (False, is_file))
        """,
    )


def test_what_changes_during_a_look_is_not_remembered_and_is_read_whole(distant_s3, run_subject):
    run_subject(
        distant_s3,
        f"""
        import modular_tf.fsspec
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

        look = fs._found_file

        def found_file(*arguments):
            found = look(*arguments)
            if left:
                put("changing", left.pop())
            return found

        fs._found_file = found_file
        for old in (2_000_000, 10_000_000):
            for new in (1_900_000, 2_100_000, 9_000_000):
                left = []
                put("changing", b"a" * old)
                left = [b"b" * new]
                expect((old, new, fs.read_file(uri("changing")) == b"b" * new), (old, new, True))
        """,
    )


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
        for _ in range(5):
            before = faults()
            assert len(fs.read_file(uri("large"))) == size
            taken.append(faults() - before)
        print(sorted(taken)[len(taken) // 2], size // os.sysconf("SC_PAGE_SIZE"))
        """,
    )
    taken, pages = map(int, child.stdout.split())
    assert taken < 1.25 * pages


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


_WORK = """
    from modular_tf.fsspec import ModularFileSystem
    scheme, _, root = base.partition("://")
    s = ModularFileSystem(scheme, service=service)
    names = [f"{root}/f{number}" for number in range(10)]

    def read():
        with s.open(names[0], "rb") as file:
            return file.read()

    def write():
        with s.open(names[0], "wb") as file:
            file.write(b"x" * 1000)

    writes = {
        "write": write,
        "write whole": lambda: s.pipe_file(names[0], b"x" * 1000),
        "copy": lambda: s.cp_file(names[0], f"{root}/copied"),
        "move": lambda: s.mv(f"{root}/copied", f"{root}/moved"),
        "remove": lambda: s.rm_file(f"{root}/moved"),
        "remove folder of 10": lambda: s.rm(root, recursive=True),
    }
    reads = {
        "read whole": lambda: s.cat_file(names[0]),
        "open and read": read,
        "read a part": lambda: s.cat_file(names[0], 10, 20),
        "cat 10": lambda: s.cat(names),
        "10 ranges": lambda: s.cat_ranges(names, [5] * 10, [50] * 10),
        "info": lambda: s.info(names[0]),
        "exists": lambda: s.exists(names[0]),
        "exists, missing": lambda: s.exists(f"{root}/missing"),
        "list names of 10": lambda: s.ls(root, detail=False),
        "list 10 with sizes": lambda: s.ls(root, detail=True),
        "find 10": lambda: s.find(root),
    }
    if scheme == "http":
        work = {name: call for name, call in reads.items() if "list" not in name}
        del work["find 10"]
    else:
        for name in names:
            s.pipe_file(name, b"x" * 1000)
        work = {**reads, **writes}
    s.exists(names[0])  # what a plugin asks once for all
    print(json.dumps({name: sum(requests_of(call).values()) for name, call in work.items()}))
    """
# What is left is the plugins' own code. A look-up of a file is HEAD and a listing for s3; for az it
# is 4 HEAD; for gs 2 GET and a listing. A read of az is HEAD and GET, and HEAD again where it ends
# at the end: the file may have changed in between.
_TIMES_S3 = {"az": 3.0, "gs": 1.5, "http": 1.0}


def test_the_same_work_needs_few_requests_beside_s3(
    distant_s3, azure_store, gcs_store, http_store, run_subject, tmp_path
):
    (http_store.folder / "work").mkdir()
    for number in range(10):
        (http_store.folder / "work" / f"f{number}").write_bytes(b"x" * 1000)
    with proxied(azure_store, tmp_path) as az:
        stores = {"s3": distant_s3, "az": az, "gs": gcs_store, "http": http_store}
        found = {
            scheme: json.loads(run_subject(store, _WORK, folder="work").stdout)
            for scheme, store in stores.items()
        }

    print(json.dumps(found, indent=1))
    assert {
        (scheme, name): (needed, found["s3"][name])
        for scheme, times in _TIMES_S3.items()
        for name, needed in found[scheme].items()
        if needed > found["s3"][name] * times
    } == {}


_MANY = """
    import modular_tf.fsspec, pathlib, tempfile

    far = mtf.fsspec.ModularFileSystem("s3", service=service)
    top = far._strip_protocol(base)
    files = {f"{top}/f{n:02}": bytes([n]) * 1000 for n in range(40)}
    far.pipe(files)
    large = bytes(range(256)) * 4096 * 4
    far.pipe_file(f"{top}-large", large)
    starts = list(range(0, 1 << 20, 20_000))
    pieces = [f"{top}-large"] * len(starts), starts, [start + 500 for start in starts]

    def read_in_steps():
        with far.open(f"{top}-large") as file:
            return b"".join(iter(lambda: file.read(10_000), b""))

    def asked(call, expected):
        return requests_of(lambda: expect(call() == expected, True))

    expect(sum(asked(lambda: far.cat(list(files)), files).values()) <= 2 * 40, True)
    expect(asked(lambda: far.glob(f"{top}/f*"), list(files)).keys(), {"list"})
    sizes = asked(lambda: {entry["size"] for entry in far.ls(top)}, {1000})
    expect((sizes["HEAD"], sum(sizes.values()) <= 2 * 40 + 1), (40, True))
    ranges = [large[start : start + 500] for start in starts]
    expect(sum(asked(lambda: far.cat_ranges(*pieces), ranges).values()) <= 4, True)
    expect(sum(asked(read_in_steps, large).values()) <= 12, True)

    with tempfile.TemporaryDirectory() as folder:
        far.get(top, f"{folder}/down", recursive=True)
        got = pathlib.Path(folder, "down").iterdir()
        expect({f"{top}/{path.name}": path.read_bytes() for path in got}, files)
        far.put(f"{folder}/down", f"{top}-up", recursive=True)
    far.copy(f"{top}-up", f"{top}-copy", recursive=True)
    expect(len(far.find(f"{top}-copy")), 40)
    expect(far.cat_file(f"{top}-copy/f39"), files[f"{top}/f39"])
    far.rm([f"{top}-copy", f"{top}-up"], recursive=True)
    expect(far.exists(f"{top}-copy"), False)
    """


def test_many_files_at_once_take_few_requests_and_every_byte_is_right(distant_s3, run_subject):
    run_subject(distant_s3, _MANY, folder="many")
