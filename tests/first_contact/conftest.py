"""Plugins with a misdeed, and services that let them have their first contact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.first_contact.task import Task
from modular_tf.first_contact.trials import try_plugins
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.rules import Violation

_FOLDER = Path(__file__).parent
_DIALECTS = _FOLDER.parent / "device" / "dialects"
_THROW = _FOLDER.parent / "plugins" / "throw.cc"
_LAYOUT = "LAYOUT=209"
PATIENCE_S = 60.0  # what nobody needs who is not meant to hang


@pytest.fixture(autouse=True)
def with_first_contact(monkeypatch):
    """Take away what keeps the other tests from it."""
    monkeypatch.delenv("MODULAR_TF_FIRST_CONTACT")


@pytest.fixture(scope="session")
def misdeed() -> Callable[[str, str], Path]:
    """Build a plugin that does something, one of `misdeed.c`, at a place."""

    def build(deed: str, place: str = "INIT") -> Path:
        macros = (_LAYOUT, f"MISDEED={deed}", f"PLACE={place}")
        objects = [compile_object(_FOLDER / "misdeed.c", macros), compile_object(_THROW)]
        good = (_LAYOUT, "SE_InitPlugin=dialect_init")
        objects += [
            compile_object(_DIALECTS / f"{name}.c", good) for name in ("plugin", "executor")
        ]
        return link_library(f"lib{deed.lower()}_at_{place.lower()}.so", objects, cxx=True)

    return build


@pytest.fixture(scope="session")
def rfc_example() -> Path:
    """Build what the RFC gives as its usage example."""
    example = compile_object(_DIALECTS / "rfc_example.c", ["LAYOUT=2020"])
    return link_library("librfc_example.so", [example])


@pytest.fixture
def verdict(misdeed) -> Callable[..., Violation | None]:
    """Try a plugin with a misdeed and return what is found."""

    def try_one(deed: str, place: str = "INIT") -> Violation | None:
        (found,) = try_plugins([Task("bad", str(misdeed(deed, place)))], seconds=PATIENCE_S)
        return found

    return try_one
