"""What is no library at all is called by its name, and nothing blocks."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.image import machine_name
from modular_tf.errors import ElfError
from tests.discovery.elf_builder import ElfBuilder

if TYPE_CHECKING:
    from tests.fixtures.broken_libraries import LibraryBreaker


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"\xcf\xfa\xed\xfe" + bytes(60), "a Mach-O library for macOS"),
        (b"\xca\xfe\xba\xbe" + bytes(60), "a universal Mach-O library for macOS"),
        (b"MZ\x90\0" + bytes(60), "a PE library for Windows"),
        (b"!<arch>\nx", "a static library"),
        (b"PK\x03\x04" + bytes(9), "a zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        (b"#!/bin/sh\n", "a script"),
        (b"/* GNU ld script */\nINPUT ( libx.so.1 )", "a linker script"),
        (b"just words\n", "it is text"),
        ("é".encode() * 400, "it is text"),
        (b"x" * 511 + "é".encode(), "it is text"),
        (bytes(4096), "filled with zero bytes"),
        (b"\x01\x02\0\x03", "something else"),
        (b"\x7fEL", "it is text"),
    ],
)
def test_other_files_are_recognised(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "libother.so"
    path.write_bytes(content)

    with pytest.raises(ElfError) as caught:
        ElfFile(str(path))
    assert caught.value.rule == "LD-004"
    assert caught.value.message.startswith("libother.so is not an ELF file: it is ")
    assert words in caught.value.message


def test_what_is_not_a_regular_file(broken_library: LibraryBreaker, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.so"))
        expected = {
            broken_library.pipe(): "is a FIFO",
            broken_library.directory(): "is a directory",
            broken_library.dangling_link(): "which does not exist",
            tmp_path / "s.so": "is a socket",
            "/dev/null": "is a character device",
        }
        for path, words in expected.items():
            with pytest.raises(ElfError, match=words) as caught:
                ElfFile(str(path))
            assert caught.value.rule == "LD-002"


def test_a_file_that_becomes_a_fifo_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "libswapped.so"
    path.write_bytes(ElfBuilder().build())
    open_file = os.open

    def swap_then_open(name: str, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return open_file(name, flags)

    monkeypatch.setattr(os, "open", swap_then_open)
    with pytest.raises(ElfError, match="is a FIFO"):
        ElfFile(str(path))


@pytest.mark.parametrize("path", ["/proc/self/mem", "/nowhere/x.so", "a\0b.so", "x" * 5000])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(ElfError) as caught:
        ElfFile(path)

    assert caught.value.rule in {"LD-003", "LD-004"}


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "libsecret.so"
    path.write_bytes(b"")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # the superuser may read everything
    with pytest.raises(
        ElfError, match=r"libsecret\.so cannot be read: Permission denied"
    ) as caught:
        ElfFile(str(path))
    assert caught.value.rule == "LD-003"


def test_files_are_closed_on_error(tmp_path: Path) -> None:
    path = tmp_path / "libtext.so"
    path.write_bytes(b"text")
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(20):
        with pytest.raises(ElfError):
            ElfFile(str(path))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("number", "bits", "order", "name"),
    [
        (62, 64, "<", "x86-64"),
        (3, 32, "<", "i386"),
        (40, 32, "<", "arm"),
        (183, 64, "<", "aarch64"),
        (183, 64, ">", "aarch64_be"),
        (21, 64, "<", "ppc64le"),
        (21, 64, ">", "ppc64"),
        (22, 64, ">", "s390x"),
        (243, 64, "<", "riscv64"),
        (243, 32, "<", "riscv32"),
        (258, 64, "<", "loongarch64"),
        (8, 64, "<", "mips64el"),
        (8, 32, ">", "mips"),
        (31337, 64, "<", "machine 31337"),
    ],
)
def test_machines_have_names(number: int, bits: int, order: str, name: str) -> None:
    assert machine_name(number, bits, order) == name


@pytest.mark.parametrize(
    ("type_", "tags", "words"),
    [
        (1, {}, "an object file"),
        (2, {}, "a program"),
        (4, {}, "a core dump"),
        (0xFE00, {}, "an ELF file of type 65024"),
        (3, {0x6FFFFFFB: 0x08000000}, "a position-independent program"),
        (3, {0x6FFFFFFB: 0x40}, "linked with -z nodlopen"),
    ],
)
def test_elf_files_of_other_types(
    tmp_path: Path, type_: int, tags: dict[int, int | None], words: str
) -> None:
    path = tmp_path / "libtype.so"
    path.write_bytes(ElfBuilder(type=type_, tags=tags).build())

    with ElfFile(str(path)) as elf:
        assert not elf.is_shared_object
        with pytest.raises(ElfError, match=f"libtype.so is {words}, not a shared object") as caught:
            elf.require_shared_object()
    assert caught.value.rule == "LD-009"
