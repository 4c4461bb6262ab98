"""Checks of reading files: opened, read, and offered as memory."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import NOTE, RAW, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.refusals import INVALID, MISSING, REFUSED, refusals
from modular_tf.check.filesystem.workspace import CONTENT, long_content
from modular_tf.check.under_load import at_once, must_not_grow, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.operations import Reader, Region
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

reading = Suite(
    "filesystem", "reading", traits="writes", source="filesystem.h, new_random_access_file and read"
)

_ODD = 65_521  # bytes; no block of anything is so long
_THREADS = 8
_READS_OF_A_THREAD = 50
_PART = 1000  # bytes, of each thread
_FURTHEST = 2**64 - 1


@reading.check("FS-150", "new_random_access_file")
def a_file_is_opened(fs: FilesystemWorkspace) -> None:
    """new_random_access_file opens a file that is there, and sets plugin_file.

    Otherwise: No file of this filesystem can be read.
    Remedy: Store the open file in TF_RandomAccessFile.plugin_file and set OK.
    """
    reader = fs.new_random_access_file(fs.make_file("opened")).must_be_ok()
    address = getattr(reader, "handle", None)  # in the raw pass
    reader.close()
    advise(
        address != 0,
        "new_random_access_file(F) is OK and left plugin_file NULL",
        expected="a pointer to the open file",
        found="NULL",
    )


@reading.check("FS-151", "new_random_access_file", traits="")
def a_missing_file_is_not_found(fs: FilesystemWorkspace) -> None:
    """new_random_access_file of a missing name is NOT_FOUND and leaves plugin_file alone.

    Otherwise: Callers distinguish cases by the code: they take the wrong branch, or give up.
    Remedy: Set TF_NOT_FOUND, and plugin_file only once the file is open.
    """
    answer = fs.new_random_access_file(fs.missing())
    answer.must_be(Code.NOT_FOUND)
    expect(
        answer.value is None,
        "the failed new_random_access_file(X) set plugin_file, which is never cleaned up",
        expected="plugin_file left alone",
    )


refusals(reading, {
    "FS-152": ("new_random_access_file(X/y)", MISSING, ""),
    "FS-153": ("new_random_access_file(D)", REFUSED, "directories",
        "The first read fails instead, where programs do not expect it.",
        "Look at the kind of the entry at opening, and set TF_FAILED_PRECONDITION."),
    "FS-154": ("new_random_access_file(F/x)", REFUSED, "writes file-as-directory"),
}, source="filesystem.h, new_random_access_file and read")  # fmt: skip


@reading.check("FS-155", "new_random_access_file", traits="")
def the_empty_path_is_refused(fs: FilesystemWorkspace) -> None:
    """new_random_access_file of an empty path is NOT_FOUND or FAILED_PRECONDITION.

    Otherwise: A path that was never set opens something, or crashes the process.
    Remedy: Refuse the empty path before looking anything up.
    Source: filesystem.h, new_random_access_file
    """
    if fs.has("translate_name"):
        translated = fs.translate_name("")
        if not translated.ok or translated.value is None:
            raise Unsupported("translate_name refuses the empty path")
    answer = fs.new_random_access_file("")
    if answer.code == Code.INVALID_ARGUMENT:  # as plain, and what stores say that want a bucket
        what = f"{answer.short_call} is refused by another code than callers know"
        note(what, found=code_found(answer))
    answer.must_be(Code.NOT_FOUND, Code.FAILED_PRECONDITION)


def _expect_read(answer: Answer, expected: bytes, *codes: Code) -> None:
    """Demand bytes, count and code; through the host there is no count."""
    answer.must_be(*codes)
    if answer.returned is not None:
        expect_equal(answer.returned, len(expected), f"what {answer.call} returned")
    expect_equal(answer.value, expected, f"what {answer.call} gave")


@reading.check("FS-156", "new_random_access_file", "read")
def reads_a_whole_file(fs: FilesystemWorkspace) -> None:
    """A read of a whole file returns its length, sets OK and gives its bytes.

    Otherwise: Every reader of this filesystem gets wrong data.
    Remedy: Copy n bytes from the offset into the buffer, return n and set OK.
    """
    with fs.new_random_access_file(fs.make_file("whole")).opened() as reader:
        _expect_read(reader.read(0, 4), CONTENT, Code.OK)


@reading.check("FS-157", "new_random_access_file", "read")
def reads_from_the_middle(fs: FilesystemWorkspace) -> None:
    """A read starts at the offset that it is given.

    Otherwise: Formats with an index, such as checkpoints and TFRecord, are read as garbage.
    Remedy: Seek for each call, or read with pread; do not go on where the last read ended.
    """
    with fs.new_random_access_file(fs.make_file("middle")).opened() as reader:
        _expect_read(reader.read(1, 2), b"bc", Code.OK)


@reading.check("FS-158", "new_random_access_file", "read")
def reads_across_the_end(fs: FilesystemWorkspace) -> None:
    """A read across the end returns the bytes that there are, and sets OUT_OF_RANGE.

    Otherwise: TensorFlow reads until OUT_OF_RANGE: the last block of each file is lost.
    Remedy: Copy what there is, return its length and set TF_OUT_OF_RANGE.
    """
    with fs.new_random_access_file(fs.make_file("across")).opened() as reader:
        _expect_read(reader.read(0, 10), CONTENT, Code.OUT_OF_RANGE)


@reading.check("FS-159", "new_random_access_file", "read")
def reads_past_the_end(fs: FilesystemWorkspace) -> None:
    """A read at or behind the end returns 0 and sets OUT_OF_RANGE.

    Otherwise: Reading a file to its end fails, or never ends.
    Remedy: Compare the offset with the length first; return 0 and set TF_OUT_OF_RANGE.
    """
    with fs.new_random_access_file(fs.make_file("behind")).opened() as reader:
        _expect_read(reader.read(4, 1), b"", Code.OUT_OF_RANGE)
        _expect_read(reader.read(100, 1), b"", Code.OUT_OF_RANGE)


@reading.check("FS-160", "new_random_access_file", "read", severity=WARNING)
def reads_nothing(fs: FilesystemWorkspace) -> None:
    """A read of 0 bytes returns 0 and sets OK.

    Otherwise: Callers that read what a size field says fail where it says 0.
    Remedy: Return 0 with TF_OK before anything else where n is 0.
    """
    with fs.new_random_access_file(fs.make_file("nothing")).opened() as reader:
        _expect_read(reader.read(0, 0), b"", Code.OK, Code.OUT_OF_RANGE)


@reading.check("FS-161", "new_random_access_file", "read", traits="writes empty-files")
def reads_an_empty_file(fs: FilesystemWorkspace) -> None:
    """A read of an empty file returns 0 and sets OUT_OF_RANGE.

    Otherwise: Empty files, such as _SUCCESS marks, cannot be read.
    Remedy: An empty file is read as any other: at its end.
    """
    with fs.new_random_access_file(fs.make_empty_file("empty")).opened() as reader:
        _expect_read(reader.read(0, 1), b"", Code.OUT_OF_RANGE)


@reading.check("FS-162", "new_random_access_file", "read", ways=RAW)
def a_short_read_is_never_ok(fs: FilesystemWorkspace) -> None:
    """A read that gives fewer bytes than asked for never sets OK.

    Otherwise: TensorFlow's own copy_file loops for ever on it.
    Remedy: Go on until all n bytes are there, or set TF_OUT_OF_RANGE at the end of the file.
    """
    with fs.new_random_access_file(fs.make_file("looped")).opened() as reader:
        for offset, n in ((2, 10), (0, 131_072), (4, 131_072)):
            answer = reader.read(offset, n)
            expect(
                answer.returned == n or not answer.ok,
                f"read({offset}, {n}) gave less and is OK: a copy of the file never ends",
                expected="OUT_OF_RANGE (11)",
                found=f"OK (0), {answer.returned} bytes",
            )


@reading.check("FS-163", "new_random_access_file", "read", ways=RAW)
def a_read_stays_within_the_buffer(fs: FilesystemWorkspace) -> None:
    """A read writes and returns at most n bytes.

    Otherwise: TensorFlow believes the count: it hands out memory behind the buffer.
    Remedy: Bound each copy into the buffer by n.

    Buffers lie between guards, which are looked at after each call.
    """
    uri = fs.make_file("bounded", b"0123456789" * 10)
    with fs.new_random_access_file(uri).opened() as reader:
        for offset, n in ((0, 0), (0, 1), (3, 2), (0, 7), (50, 49), (90, 100)):
            returned = reader.read(offset, n).returned
            expect(
                -1 <= returned <= n,
                f"read({offset}, {n}) returned what no read can",
                expected=f"-1 to {n}",
                found=str(returned),
            )


@reading.check("FS-164", "new_random_access_file", "read", level=ROBUST, ways=RAW, severity=WARNING)
def a_failing_read_returns_minus_one(fs: FilesystemWorkspace) -> None:
    """A read at the furthest offset returns -1 with an error, or 0 with OUT_OF_RANGE.

    Otherwise: The bytes of a failed read are taken for data.
    Remedy: Return -1 whenever the code is neither TF_OK nor TF_OUT_OF_RANGE; compare the offset
    with the length before you add to it or convert it: it has 64 bits without a sign.
    """
    with fs.new_random_access_file(fs.make_file("failing")).opened() as reader:
        answer = reader.read(_FURTHEST, 4)
    expect(not answer.ok, f"read({_FURTHEST}, 4) is OK", found=f"{answer.returned} bytes")
    expected = 0 if answer.code == Code.OUT_OF_RANGE else -1
    what = f"what read({_FURTHEST}, 4) returned with {code_found(answer)}"
    expect_equal(answer.returned, expected, what)


@reading.check("FS-165", "new_random_access_file", "read", level=ROBUST)
def reads_a_big_file_in_odd_pieces(fs: FilesystemWorkspace) -> None:
    """A big file that holds all byte values is read back exactly, in pieces of any size.

    Otherwise: Large files are corrupted: models load and give wrong results.
    Remedy: Treat content as bytes, and keep offsets in 64 bits.
    """
    content = long_content(fs.target.options)
    length = len(content)
    with fs.new_random_access_file(fs.make_file("big", content)).opened() as reader:
        found = sha256()
        for offset in range(0, length, _ODD):  # each is judged at once: the log of calls is short
            found.update(reader.read(offset, min(_ODD, length - offset)).must_be_ok())
    expected = sha256(content).hexdigest()
    expect_equal(found.hexdigest(), expected, f"the SHA-256 digest of {length} bytes")


@reading.check("FS-166", "new_random_access_file", "read", level=ROBUST, seconds=60)
def threads_and_handles_read_at_once(fs: FilesystemWorkspace) -> None:
    """A handle serves several threads at once, and two handles of a file are independent.

    Otherwise: tf.data reads with many threads: records are mixed up under load only.
    Remedy: Keep no position in the handle; guard what threads share.
    Source: filesystem.h, read; TensorFlow's threads
    """
    content = long_content(fs.target.options)[: _THREADS * _PART]
    uri = fs.make_file("shared", content)
    read = partial(
        _read_again, content=content, rounds=rounds_of(fs.target.options, _READS_OF_A_THREAD)
    )
    with fs.new_random_access_file(uri).opened() as first:
        at_once([partial(read, first, thread=at) for at in range(_THREADS)])
        with fs.new_random_access_file(uri).opened() as second:
            read(second, thread=1)
            read(first, thread=0)
        read(first, thread=2)


def _read_again(reader: Reader, *, content: bytes, rounds: int, thread: int) -> None:
    """Read what no other thread reads, again and again."""
    offset, n = thread * _PART, _PART
    for _ in range(rounds):
        answer = reader.read(offset, n)
        what = f"read({offset}, {n}) beside other threads and handles"
        expect(answer.ok, f"{what} failed", found=code_found(answer))
        expect(answer.value == content[offset : offset + n], f"{what} gave other bytes")


@reading.check("FS-167", "new_random_access_file", "read", level=ROBUST, severity=NOTE)
def an_open_reader_keeps_the_old_bytes(fs: FilesystemWorkspace) -> None:
    """A reader that is open while its file is deleted or replaced keeps the old bytes.

    Otherwise: Nothing demands it; readers of this store see another file, or an error, half way.
    Remedy: Say in the plugin's documents what becomes of open readers.
    Source: POSIX, as a habit of local files
    """
    uri = fs.make_file("vanishing")
    with fs.new_random_access_file(uri).opened() as reader:
        fs.make_file("vanishing", b"WXYZ")
        replaced = reader.read(0, 4)
        fs.delete_file(uri)
        deleted = reader.read(0, 4)
    for answer, what in ((replaced, "replaced"), (deleted, "deleted")):
        if not answer.ok:
            note(f"a read of a file that was {what} fails", found=code_found(answer))
        if answer.value != CONTENT:
            note(f"a reader of a file that was {what} gives other bytes", found=repr(answer.value))


@reading.check("FS-168", "new_random_access_file", level=ROBUST)
def opening_leaves_nothing_behind(fs: FilesystemWorkspace) -> None:
    """Opening, and failing to open, again and again leaves no descriptor behind.

    Otherwise: Long training runs end with too many open files.
    Remedy: Release everything in cleanup, and in new_random_access_file where it fails: a failed
    open is not cleaned up.
    Source: TensorFlow 2.21, observed
    """
    uri, missing = fs.make_file("often"), fs.path("never")

    def open_and_fail() -> None:
        fs.new_random_access_file(uri).needed().close()
        unexpected = fs.new_random_access_file(missing).value
        if unexpected is not None:  # some stores look for the file at the first read only
            unexpected.close()

    must_not_grow(open_and_fail, rounds_of(fs.target.options), "opening a file")


@reading.check("FS-169", "new_random_access_file", ways=RAW, traits="", severity=WARNING)
def a_failing_open_names_the_path(fs: FilesystemWorkspace) -> None:
    """The message of a failing open names the path.

    Otherwise: Users read that something was not found, and not what.
    Remedy: Put the path into the message: 'PATH; No such file or directory'.
    Source: TensorFlow 2.21, observed
    """
    answer = fs.new_random_access_file(fs.path("not-here"))
    if answer.ok:
        answer.value.close()
        raise Unsupported("new_random_access_file(X) is OK, and has no message: see FS-151")
    expect(
        "not-here" in answer.message,
        "the message of the failed new_random_access_file(X) does not name the path",
        expected="a message with 'not-here' in it",
        found=repr(answer.message),
    )


long_reading = Suite("filesystem", "long-reading", level=ROBUST, traits="writes")

_FILES = 4
_POOL = 32  # requests after which a plugin has all the threads that it will keep


@long_reading.check("FS-331", "new_random_access_file", "read")
def reads_leave_nothing_behind(fs: FilesystemWorkspace) -> None:
    """Reading again and again leaves no descriptors, mappings or memory behind.

    Otherwise: A long job runs out of descriptors, and then every open of the process fails.
    Remedy: Keep one connection for each file or pool, and release what a request took.
    Source: filesystem.h, read
    """
    with fs.new_random_access_file(fs.make_file("read-often")).opened() as reader:

        def read_a_byte() -> None:
            answer = reader.read(1, 1)
            expect(answer.value == CONTENT[1:2], "read(1, 1) failed", found=code_found(answer))

        for _ in range(_POOL):
            read_a_byte()
        must_not_grow(read_a_byte, rounds_of(fs.target.options), "reading a byte")


@long_reading.check("FS-332", "new_random_access_file", "read", seconds=60)
def reads_megabytes_at_once(fs: FilesystemWorkspace) -> None:
    """One read of several megabytes gives all of them.

    Otherwise: Reading a whole file in one call crashes the program, or gives less than there is.
    Remedy: Grow buffers by what arrives; loop over short answers of the store.
    Source: filesystem.h, read; published plugins, observed

    What overflows depends on how the bytes arrive.
    """
    content = long_content(fs.target.options)
    length = len(content)
    for number in range(_FILES):
        uri = fs.make_file(f"in-one-read-{number}", content)
        with fs.new_random_access_file(uri).opened() as reader:
            read = reader.read(0, length).must_be_ok()
        expect_equal(len(read), length, f"the length of read(0, {length})")
        expect(read == content, f"read(0, {length}) gave other bytes")


regions = Suite(
    "filesystem", "regions", traits="writes", source="filesystem.h, TF_ReadOnlyMemoryRegionOps"
)

_REGION = "new_read_only_memory_region_from_file"
_ALIGNMENT = 64  # bytes; what TensorFlow asks of memory that tensors map
_CALLS_OF_A_THREAD = 50


@regions.check("FS-199", _REGION)
def a_region_has_the_bytes_of_the_file(fs: FilesystemWorkspace) -> None:
    """A region of a file has the file's length and its bytes.

    Otherwise: Models that are mapped, as by ImmutableConst, hold wrong values.
    Remedy: Return the file's length from length, and its first byte from data.
    """
    mapped = fs.new_read_only_memory_region_from_file(fs.make_file("mapped"))
    mapped.must_be_ok()
    with mapped.opened() as region:
        expect_equal(region.length(), len(CONTENT), "the length of the region")
        expect(region.address() != 0, "data of a region with bytes is NULL")
        expect_equal(region.content(), CONTENT, "the bytes of the region")


refusals(regions, {
    "FS-200": (f"{_REGION}(E)", INVALID, "writes empty-files",
        "Callers get a region with no memory behind it.",
        "Look at the length first, and set TF_INVALID_ARGUMENT where it is 0."),
    "FS-201": (f"{_REGION}(X), {_REGION}(X/y)", MISSING, ""),
    "FS-202": (f"{_REGION}(D), {_REGION}(F/x)", REFUSED, "writes directories file-as-directory"),
})  # fmt: skip


@regions.check("FS-203", _REGION, level=ROBUST)
def a_region_stays_in_its_place(fs: FilesystemWorkspace) -> None:
    """data and length answer the same on every call and thread until cleanup.

    Otherwise: Tensors point into memory that has moved.
    Remedy: Get the memory once, in new_read_only_memory_region_from_file.
    """
    uri = fs.make_file("stable")
    with fs.new_read_only_memory_region_from_file(uri).opened() as region:
        place = (region.address(), region.length())
        fs.make_file("another", CONTENT * 1000)
        found = at_once([partial(_places, region) for _ in range(_THREADS)])
        expect_equal(set().union(*found), {place}, "data and length, asked again")
        expect_equal(region.content(), CONTENT, "the bytes of the region, later")


def _places(region: Region) -> set[tuple[int, int]]:
    return {(region.address(), region.length()) for _ in range(_CALLS_OF_A_THREAD)}


@regions.check("FS-204", _REGION, severity=WARNING)
def a_region_is_aligned(fs: FilesystemWorkspace) -> None:
    """The memory of a region is aligned to 64 bytes.

    Otherwise: TensorFlow refuses to make tensors of it: ImmutableConst answers INTERNAL.
    Remedy: Map the file, or allocate with aligned_alloc(64, ...).
    Source: TensorFlow 2.21, observed
    """
    for length in (1, 100, 4097):
        uri = fs.make_file(f"aligned-{length}", b"x" * length)
        with fs.new_read_only_memory_region_from_file(uri).opened() as region:
            address = region.address()
        expect(
            address % _ALIGNMENT == 0,
            f"the memory of a file of {length} bytes is not aligned",
            expected=f"a multiple of {_ALIGNMENT}",
            found=hex(address),
        )


@regions.check("FS-205", _REGION, level=ROBUST, severity=WARNING)
def a_region_outlives_its_file(fs: FilesystemWorkspace) -> None:
    """A region outlives its file, and mapping again and again leaves nothing behind.

    Otherwise: A model that is replaced on disk takes its users down, or memory runs out.
    Remedy: Hold the file's memory until cleanup, and release mapping and descriptor there.
    """
    uri = fs.make_file("doomed")
    with fs.new_read_only_memory_region_from_file(uri).opened() as region:
        fs.delete_file(uri).needed()
        expect_equal(region.content(), CONTENT, "the bytes of a region whose file is deleted")
    often = fs.make_file("often")

    def map_and_leave() -> None:
        with fs.new_read_only_memory_region_from_file(often).opened():
            pass

    must_not_grow(map_and_leave, rounds_of(fs.target.options), "mapping a file")
