"""A directory of our own for one test, and what can be wrong with one."""

from __future__ import annotations

import errno
import logging
import os
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.service.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> PrivateDirectory:
    """A directory that is not there yet."""
    return PrivateDirectory(str(tmp_path / "cache" / "modular_tf"))


@pytest.fixture
def refused(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what was said of files that were not believed, with the rule."""
    caplog.set_level(logging.WARNING, "modular_tf.storage")

    def messages() -> list[str]:
        return [r.getMessage() for r in caplog.records if "storage.not_believed" in r.getMessage()]

    return messages


@pytest.fixture
def nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the file system be read-only, also for root, whom no mode keeps from writing."""
    real = os.open

    def open_to_read(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", open_to_read)
