"""Builds the plugin that does deeds in the middle of its calls (`deeds/`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.fixtures.compiler import compile_object
from tests.plugins.build import build_plugin
from tests.plugins.matrix import FOLDER, variants

_DEEDS = Path(__file__).parent / "deeds"
_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"


def hostile_plugin():
    """Return the library, which serves the scheme `hostile`."""
    good = replace(
        variants("filesystem")["good"],
        name="hostile_at_work",
        defines=("TF_InitPlugin=fixture_init",),
        sources=("../throw.cc",),  # which has the C++ library linked
    )
    headers = [FOLDER / "filesystem", _NATIVE / "core", _NATIVE / "host_runtime"]
    objects = [
        compile_object(source, header_folders=headers)
        for source in sorted([*_DEEDS.glob("*.c"), *_DEEDS.glob("*.cc")])
    ]
    return build_plugin(good, {"FIXTURE_SCHEME": "hostile"}, objects, ["-lm"])
