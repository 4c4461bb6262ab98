"""Memory that nobody vouches for: reading it, telling code from data, protecting it."""

from __future__ import annotations

import ctypes
import mmap
import signal

import pytest

from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import ffi
from modular_tf.native.library import address_owner, is_executable
from modular_tf.native.readonly_memory import ReadOnlyCopy, try_read
from modular_tf.native.strings import MAX_STRING, decode, encode, read_string

_PAGE = mmap.PAGESIZE


@pytest.fixture
def page_before_a_hole():
    """The address of a page that nothing follows."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = libc.mmap(None, 2 * _PAGE, mmap.PROT_READ | mmap.PROT_WRITE, private, -1, 0)
    libc.munmap(start + _PAGE, _PAGE)
    yield start
    libc.munmap(start, _PAGE)


def test_what_is_mapped_is_read_and_other_addresses_are_none():
    data = bytes(range(256)) * 100
    buffer = ctypes.create_string_buffer(data, len(data))

    assert try_read(ctypes.addressof(buffer), len(data)) == data
    assert try_read(0, 0) == b""
    for address in (0, 8, 0x10, 1 << 46, (1 << 64) - 8):
        assert try_read(address, 8) is None
        assert read_string(ffi.cast("char *", address)) is None


def test_what_ends_nowhere_is_none(page_before_a_hole):
    assert try_read(page_before_a_hole, _PAGE) == bytes(_PAGE)
    assert try_read(page_before_a_hole + 8, _PAGE) is None
    ctypes.memmove(page_before_a_hole + _PAGE - 4, b"end\0", 4)
    assert read_string(ffi.cast("char *", page_before_a_hole + _PAGE - 4)) == "end"
    longer_than_any_name = ctypes.create_string_buffer(b"x" * (MAX_STRING + 10))
    assert read_string(ffi.cast("char *", ctypes.addressof(longer_than_any_name))) is None
    ctypes.memset(page_before_a_hole, ord("x"), _PAGE)
    assert read_string(ffi.cast("char *", page_before_a_hole)) is None


def test_reading_works_where_the_kernel_forbids_the_quick_way(run_forked):
    run_forked(
        """
        import ctypes
        from modular_tf.native.readonly_memory import try_read
        from tests.fixtures.sandbox import forbid_process_vm_readv

        forbid_process_vm_readv()
        data = bytes(range(256)) * 64
        buffer = ctypes.create_string_buffer(data, len(data))
        assert try_read(ctypes.addressof(buffer), len(data)) == data
        assert try_read(16, 8) is None
        """
    )


# ---- Code and data ----


def test_functions_are_code_and_data_is_not():
    libc = ctypes.CDLL("libc.so.6")
    data = ctypes.create_string_buffer(8)

    assert is_executable(ctypes.cast(libc.malloc, ctypes.c_void_p).value)
    assert not is_executable(ctypes.addressof(data))
    assert not is_executable(0)
    assert not is_executable(1 << 46)
    owner = address_owner(ctypes.cast(libc.malloc, ctypes.c_void_p).value)
    assert ".so" in owner.path
    assert owner.symbol
    with mmap.mmap(-1, _PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        of_no_library = ctypes.addressof((ctypes.c_char * _PAGE).from_buffer(code))
        assert is_executable(of_no_library)
        assert address_owner(of_no_library) is None


# ---- Protected copies ----


def test_a_copy_is_equal_and_unwritable(run_forked):
    copy = ReadOnlyCopy(b"table" * 100)

    assert bytes(copy.view()) == b"table" * 100
    with pytest.raises(TypeError):
        copy.view()[0] = 0
    run_forked(
        """
        import ctypes
        from modular_tf.native.readonly_memory import ReadOnlyCopy
        copy = ReadOnlyCopy(bytes(100))
        ctypes.memset(copy.address + 99, 1, 1)
        """,
        status=-signal.SIGSEGV,
    )


def test_copies_for_ever_are_shared_and_others_end_with_their_object():
    address = ReadOnlyCopy.for_ever(b"one table").address

    assert ReadOnlyCopy.for_ever(b"one table").address == address
    assert ReadOnlyCopy.for_ever(b"another").address != address
    assert try_read(address, 9) == b"one table"

    copy = ReadOnlyCopy(b"x" * 8 * _PAGE)
    address = copy.address
    del copy
    assert try_read(address, 8 * _PAGE) is None


# ---- Text ----


def test_bytes_survive_the_way_through_text():
    for raw in (b"", "né".encode(), b"\xff\xfe/x", b"\xed\xa0\x80", bytes(range(1, 256))):
        assert encode(decode(raw)) == raw


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("a\0b", InvalidArgumentError, "NUL"),
        ("x\udc00", InvalidArgumentError, "no bytes"),
        (b"bytes", TypeError, "expected a str, found"),
    ],
)
def test_what_is_no_text_or_no_c_string_is_refused(given, error, message):
    with pytest.raises(error, match=message) as caught:
        encode(given)
    assert isinstance(caught.value, TypeError) or caught.value.path == given
