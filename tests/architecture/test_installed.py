"""The package under test is an installed one, and it is whole."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path

import modular_tf

CHECKOUT = Path(__file__).parents[2]
INSTALLED = Path(modular_tf.__file__).parent


def _is_editable() -> bool:
    source = json.loads(distribution("modular_tf").read_text("direct_url.json") or "{}")
    return source.get("dir_info", {}).get("editable", False)


def test_the_checkout_does_not_hide_the_installed_package():
    assert _is_editable() == INSTALLED.is_relative_to(CHECKOUT / "modular_tf")


def test_every_file_that_is_used_at_run_time_is_installed():
    kinds = {".bin", ".cmake", ".h", ".in", ".py", ".pyi", ".toml"}
    sources = {
        path.relative_to(CHECKOUT / "modular_tf")
        for path in (CHECKOUT / "modular_tf").rglob("*")
        if path.suffix in kinds or path.name == "py.typed"
    }
    only_for_the_build = {
        path
        for path in sources
        if (path.suffix == ".h" and "native" in path.parts) or path.name == "build_core.py"
    }
    missing = {path for path in sources - only_for_the_build if not (INSTALLED / path).is_file()}

    assert missing == set()


def test_the_version_is_stated_once():
    assert distribution("modular_tf").version == modular_tf.__version__
