"""How the checks tell a call that waits from one that is only slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.device import waiting


@pytest.mark.parametrize("gone", [FileNotFoundError, ProcessLookupError])
def test_a_thread_that_ends_while_it_is_looked_at_is_not_asleep(monkeypatch, gone):
    """The kernel refuses to open its file, or to read it when it was opened before."""

    def read_text(*_, **__):
        raise gone

    monkeypatch.setattr(Path, "read_text", read_text)

    assert waiting._sleep(1) is None
