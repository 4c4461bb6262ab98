"""The names of machines, and descriptions of files that are not ELF."""

from __future__ import annotations

import os

__all__ = ["OWN_MACHINE", "content_description", "machine_name"]

OWN_MACHINE = {"x86_64": 62, "aarch64": 183}.get(os.uname().machine, 0)
"""The number of the machine that this process runs on; 0 for one that is not supported."""

_MACHINES = {
    2: "sparc",
    3: "i386",
    4: "m68k",
    8: "mips",
    15: "parisc",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    42: "sh",
    43: "sparc64",
    50: "ia64",
    62: "x86-64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    243: "riscv",
    247: "bpf",
    258: "loongarch",
    0x9026: "alpha",
}

_MAGICS = (
    (b"\xfe\xed\xfa\xce", "a Mach-O library for macOS"),
    (b"\xfe\xed\xfa\xcf", "a Mach-O library for macOS"),
    (b"\xce\xfa\xed\xfe", "a Mach-O library for macOS"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O library for macOS"),
    (b"\xca\xfe\xba\xbe", "a universal Mach-O library for macOS"),
    (b"\xca\xfe\xba\xbf", "a universal Mach-O library for macOS"),
    (b"MZ", "a PE library for Windows"),
    (b"!<arch>\n", "a static library (ar archive)"),
    (b"\0asm", "a WebAssembly module"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"version https://git-lfs", "a Git LFS pointer; the library itself was not fetched"),
    (b"#!", "a script"),
    (b"/* GNU ld script", "a linker script"),
    (b"INPUT(", "a linker script"),
    (b"INPUT (", "a linker script"),
    (b"GROUP (", "a linker script"),
)


def machine_name(number: int, bits: int, order: str) -> str:
    """Return the usual name of an `e_machine` value, such as "x86-64" or "ppc64le"."""
    name = _MACHINES.get(number, f"machine {number}")
    if name == "ppc64" and order == "<":
        return "ppc64le"
    if name == "aarch64" and order == ">":
        return "aarch64_be"
    if name == "mips":
        return f"mips{'64' if bits > 32 else ''}{'el' if order == '<' else ''}"  # noqa: PLR2004
    if name in {"riscv", "loongarch"}:
        return f"{name}{bits}"
    return name


def content_description(head: bytes) -> str:
    """Return a description of a file that begins with `head` and is not ELF."""
    if not head:
        return "empty"
    for magic, words in _MAGICS:
        if head.startswith(magic):
            return words
    if b"\0" not in head[:512] and _reads_as_text(head[:512]):
        return "text"
    if not head[:512].strip(b"\0"):
        return "filled with zero bytes, as an unfinished copy or download is"
    return "something else"


def _reads_as_text(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The end of the sample may cut a character in two.
        return error.start >= len(head) - 3
    return True
