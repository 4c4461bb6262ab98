"""A shortage is told from what is wrong with a file."""

import errno
import os

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.file_identity import see, see_library
from modular_tf.discovery.linking import system_libraries
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.rules.shortage import ShortageError, names_shortage, raise_shortage, shortage_of

SHORTAGES = [errno.EAGAIN, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM]


def failing(number):
    def fails(*_, **__):
        raise OSError(number, os.strerror(number), "/some/file")

    return fails


@pytest.mark.parametrize("number", SHORTAGES)
def test_a_shortage_keeps_its_number_and_names_file_and_rule(number):
    with pytest.raises(ShortageError, match=r"^/some/file: .*\(rule LD-113\)$") as caught:
        raise_shortage(OSError(number, "x", "/some/file"))
    assert (caught.value.errno, caught.value.rule) == (number, "LD-113")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.EIO, errno.ELOOP, None])
def test_what_is_of_the_file_is_none(number):
    error = OSError("x") if number is None else OSError(number, "x")
    raise_shortage(error)
    assert shortage_of(error) is None


def test_the_words_of_the_dynamic_linker_tell_it():
    assert names_shortage("libx.so: cannot open shared object file: Too many open files")
    assert not names_shortage("libx.so: cannot open shared object file: No such file or directory")


def test_want_of_memory_is_one():
    assert shortage_of(MemoryError()).errno == errno.ENOMEM


@pytest.mark.parametrize("number", SHORTAGES)
def test_a_library_that_cannot_be_opened_now_is_not_unreadable(monkeypatch, number, tmp_path):
    library = tmp_path / "libx.so"
    library.write_bytes(b"x")
    monkeypatch.setattr("modular_tf.discovery.elf.source.open_owned", failing(number))
    monkeypatch.setattr("modular_tf.discovery.file_identity.open_owned", failing(number))
    with pytest.raises(ShortageError):
        ElfFile(str(library))
    with pytest.raises(ShortageError):
        see(str(library))
    with pytest.raises(ShortageError):
        see_library(str(library))


def test_the_linkers_cache_that_cannot_be_read_now_is_not_empty(monkeypatch):
    monkeypatch.setattr(system_libraries, "open", failing(errno.EMFILE), raising=False)
    with pytest.raises(ShortageError):
        is_of_system("/nowhere/libx.so")
