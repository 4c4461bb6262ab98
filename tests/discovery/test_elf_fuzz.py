"""Random damage to libraries: whatever the bytes, a probe answers and never fails.

`MODULAR_TF_FUZZ_RUNS` asks for more inputs, `MODULAR_TF_FUZZ_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
import struct
from typing import TYPE_CHECKING

from modular_tf.discovery import HostOffer, Probe
from modular_tf.discovery.probe import Prober
from tests.discovery.conftest import FILESYSTEM, make_candidate
from tests.discovery.elf_builder import ElfBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.discovery.conftest import LibraryCompiler

_RUNS = int(os.environ.get("MODULAR_TF_FUZZ_RUNS", "3000"))
_SEED = int(os.environ.get("MODULAR_TF_FUZZ_SEED", str(random.SystemRandom().getrandbits(32))))
_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1)


def _damage(whole: bytes, dice: random.Random) -> bytes:
    """Return a copy with one to four damages: flips, numbers, cuts, copied pieces."""
    data = bytearray(whole)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(max(len(data), 1))
        action = dice.randrange(5)
        if action == 0 and data:
            data[at] ^= 1 << dice.randrange(8)
        elif action == 1:
            form = dice.choice("BHIQ")
            value = dice.choice(_NUMBERS) & ((1 << 8 * struct.calcsize(form)) - 1)
            data[at : at + struct.calcsize(form)] = struct.pack("<" + form, value)
        elif action == 2 and dice.random() < 0.2:
            del data[at:]
        elif action == 3:
            piece = data[at : at + dice.randrange(1, 64)]
            to = dice.randrange(max(len(data), 1))
            data[to : to + len(piece)] = piece
        elif action == 4:
            data[at : at + 8] = struct.pack("<Q", dice.randrange(max(2 * len(whole), 1)))
    return bytes(data)


def _check(result: Probe) -> None:
    """An answer is complete: not loadable has a reason, and its rule is known."""
    assert result.loadable == (not any(problem.is_error for problem in result.problems))
    assert all(problem.rule.startswith("LD-") and problem.message for problem in result.problems)
    assert result.loadable <= bool(result.kinds)


def _fuzz(bases: Sequence[bytes], tmp_path: Path) -> tuple[int, int]:
    dice = random.Random(_SEED)
    print(f"seed {_SEED}, {_RUNS} runs")
    path, loadable = tmp_path / "libfuzzed.so", 0
    with Prober(HostOffer(), environment={}) as prober:
        for run in range(_RUNS):
            path.write_bytes(_damage(bases[run % len(bases)], dice))
            try:
                result = prober.probe(make_candidate(path))
            except BaseException:
                print(f"failed in run {run} of seed {_SEED}")
                raise
            _check(result)
            loadable += result.loadable
    return _RUNS, loadable


def test_damaged_libraries_get_an_answer(compile_library: LibraryCompiler, tmp_path: Path) -> None:
    compiled = compile_library("libbase.so", FILESYSTEM, "-Wl,--hash-style=both", "-s")
    front = compiled.read_bytes()
    made = [
        ElfBuilder(bits=bits, order=order, hash_style=style).build()
        for bits in (32, 64)
        for order in "<>"
        for style in ("gnu", "sysv")
    ]

    runs, loadable = _fuzz([front, *made, front], tmp_path)

    assert 0 < loadable < runs
