"""A state directory of one test, and something that was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf.first_contact.finding import Incident
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from pathlib import Path

SHA256 = "0123456789abcdef" * 4
OTHER_SHA256 = "fedcba9876543210" * 4
INCIDENT = Incident.of(
    Violation("LD-060", "crashed with SIGSEGV (signal 11) in SE_InitPlugin"),
    signal=11,
    last_call="SE_InitPlugin",
    backtrace=("libx.so SE_InitPlugin+0x10", "python main+0x1"),
    said="last words \udcff",
)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a state directory of its own; return our part of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "modular_tf"
