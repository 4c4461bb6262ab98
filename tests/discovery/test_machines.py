"""The names of machines, against the numbers that pyelftools knows."""

from __future__ import annotations

import pytest
from elftools.elf.enums import ENUM_E_MACHINE

from modular_tf.discovery.elf.image import machine_name

_NAMES = {
    "EM_SPARC": "sparc",
    "EM_386": "i386",
    "EM_68K": "m68k",
    "EM_MIPS": "mips",
    "EM_PARISC": "parisc",
    "EM_PPC": "ppc",
    "EM_PPC64": "ppc64",
    "EM_S390": "s390x",
    "EM_ARM": "arm",
    "EM_SH": "sh",
    "EM_SPARCV9": "sparc64",
    "EM_IA_64": "ia64",
    "EM_X86_64": "x86-64",
    "EM_AARCH64": "aarch64",
    "EM_CUDA": "cuda",
    "EM_AMDGPU": "amdgpu",
    "EM_RISCV": "riscv",
    "EM_BPF": "bpf",
    "EM_LOONGARCH": "loongarch",
}


@pytest.mark.parametrize(("constant", "name"), _NAMES.items(), ids=_NAMES)
def test_machines_have_the_names_that_people_know(constant, name):
    assert machine_name(ENUM_E_MACHINE[constant], 64, ">").startswith(name)
