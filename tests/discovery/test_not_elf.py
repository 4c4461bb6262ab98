"""What is no library at all is called by its name, and nothing blocks."""

import os
import socket

import pytest
from elftools.elf.enums import ENUM_E_MACHINE

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.image import machine_name
from modular_tf.errors import ElfError
from tests.discovery.elf_builder import ElfBuilder


def assert_refused(path, rule, words):
    with pytest.raises(ElfError, match=words) as caught:
        ElfFile(str(path))
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\xcf\xfa\xed\xfe" + bytes(60), "a Mach-O library for macOS"),
        (b"\xca\xfe\xba\xbe" + bytes(60), "a universal Mach-O library for macOS"),
        (b"MZ\x90\0" + bytes(60), "a PE library for Windows"),
        (b"!<arch>\nx", "a static library"),
        (b"PK\x03\x04" + bytes(9), "a zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        (b"#!/bin/sh\n", "a script"),
        (b"/* GNU ld script */\nINPUT ( libx.so.1 )", "a linker script"),
        (b"just words\n", "text"),
        ("é".encode() * 400, "text"),
        (b"x" * 511 + "é".encode(), "text"),
        (bytes(4096), "filled with zero bytes"),
        (b"\x01\x02\0\x03", "something else"),
        (b"\x7fEL", "text"),
    ],
)
def test_other_files_are_recognised(tmp_path, content, words):
    path = tmp_path / "libother.so"
    path.write_bytes(content)

    assert_refused(path, "LD-004", rf"^libother\.so is not an ELF file: it is {words}")


def test_what_is_not_a_regular_file(tmp_path):
    pipe, link = tmp_path / "libpipe.so", tmp_path / "liblink.so"
    os.mkfifo(pipe)
    link.symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.so"))
        expected = {
            pipe: "is a FIFO",
            tmp_path: "is a directory",
            link: "which does not exist",
            tmp_path / "s.so": "is a socket",
            "/dev/null": "is a character device",
        }
        for path, words in expected.items():
            assert_refused(path, "LD-002", words)


def test_a_file_that_becomes_a_fifo_does_not_block(tmp_path, monkeypatch):
    path = tmp_path / "libswapped.so"
    path.write_bytes(ElfBuilder().build())
    open_file = os.open

    def swap_then_open(name, flags):
        path.unlink()
        os.mkfifo(path)
        return open_file(name, flags)

    monkeypatch.setattr(os, "open", swap_then_open)
    assert_refused(path, "LD-002", "is a FIFO")


@pytest.mark.parametrize("path", ["/proc/self/mem", "/nowhere/x.so", "a\0b.so", "x" * 5000])
def test_paths_that_cannot_be_read(path):
    with pytest.raises(ElfError) as caught:
        ElfFile(path)

    assert caught.value.rule in {"LD-003", "LD-004"}


@pytest.mark.parametrize(
    ("constant", "bits", "order", "name"),
    [
        ("EM_386", 32, "<", "i386"),
        ("EM_MIPS", 64, "<", "mips64el"),
        ("EM_PPC64", 64, "<", "ppc64le"),
        ("EM_PPC64", 64, ">", "ppc64"),
        ("EM_ARM", 32, "<", "arm"),
        ("EM_X86_64", 64, "<", "x86-64"),
        ("EM_AARCH64", 64, "<", "aarch64"),
        ("EM_AARCH64", 64, ">", "aarch64_be"),
        ("EM_RISCV", 64, "<", "riscv64"),
        ("EM_RISCV", 32, "<", "riscv32"),
        (31337, 64, "<", "machine 31337"),
    ],
)
def test_machines_have_the_names_that_people_know(constant, bits, order, name):
    assert machine_name(ENUM_E_MACHINE.get(constant, constant), bits, order) == name


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
def test_elf_files_of_other_types(tmp_path, type_, tags, words):
    path = tmp_path / "libtype.so"
    path.write_bytes(ElfBuilder(type=type_, tags=tags).build())

    with ElfFile(str(path)) as elf:
        assert not elf.is_shared_object
        with pytest.raises(ElfError, match=f"libtype.so is {words}, not a shared object") as caught:
            elf.require_shared_object()
    assert caught.value.rule == "LD-009"
