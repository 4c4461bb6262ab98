"""A shortage is no fault of a file."""

import errno
import os
import subprocess

import pytest

from modular_tf.discovery import file_identity
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.file_identity import boot_id, see, see_library
from modular_tf.discovery.linking import system_libraries
from modular_tf.discovery.linking.dynamic_linker import ask_linker
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.rules.shortage import ShortageError, names_shortage, raise_shortage, shortage_of

SHORTAGES = [errno.EAGAIN, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM]


def failing(number):
    def fails(*_, **__):
        raise OSError(number, os.strerror(number), "/some/file")

    return fails


def test_want_of_memory_and_words_of_the_dynamic_linker_are_shortages():
    assert shortage_of(MemoryError()).errno == errno.ENOMEM
    prefix = "libx.so: cannot open shared object file: "
    assert names_shortage(f"{prefix}Too many open files")
    assert not names_shortage(f"{prefix}No such file or directory")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.EIO, errno.ELOOP, None])
def test_what_is_of_the_file_is_none(number):
    error = OSError("x") if number is None else OSError(number, "x")
    raise_shortage(error)
    assert shortage_of(error) is None


@pytest.mark.parametrize("number", SHORTAGES)
def test_a_library_that_cannot_be_opened_now_is_not_unreadable(monkeypatch, number, tmp_path):
    library = tmp_path / "libx.so"
    library.write_bytes(b"x")
    for module in ("elf.source", "file_identity"):
        monkeypatch.setattr(f"modular_tf.discovery.{module}.open_owned", failing(number))
    for ask in (ElfFile, see, see_library):
        with pytest.raises(ShortageError, match=r"^/some/file: .*\(rule LD-113\)$") as caught:
            ask(str(library))
        assert (caught.value.errno, caught.value.rule) == (number, "LD-113")


def test_a_start_of_the_machine_that_cannot_be_read_now_is_not_unknown(monkeypatch):
    monkeypatch.setattr(file_identity, "open", failing(errno.EMFILE), raising=False)
    with pytest.raises(ShortageError):
        boot_id.__wrapped__()  # which keeps its answer
    monkeypatch.setattr(file_identity, "open", failing(errno.ENOENT), raising=False)
    assert boot_id.__wrapped__() == ""


def test_the_linkers_cache_that_cannot_be_read_now_is_not_empty(monkeypatch):
    monkeypatch.setattr(system_libraries, "open", failing(errno.EMFILE), raising=False)
    with pytest.raises(ShortageError):
        is_of_system("/nowhere/libx.so")


def test_a_linker_that_cannot_be_started_now_finds_nothing_missing(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", failing(errno.EAGAIN))
    with pytest.raises(ShortageError):
        ask_linker(["libnone.so"])
