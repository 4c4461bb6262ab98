"""Registers the shared fixtures; each module under `tests.fixtures` says what it offers."""

from __future__ import annotations

pytest_plugins = [
    "tests.fixtures.machine",
    "tests.fixtures.children",
    "tests.fixtures.emulators",
    "tests.fixtures.wild",
    "tests.fixtures.compiled",
    "tests.fixtures.broken_libraries",
]
