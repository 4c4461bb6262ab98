"""Filesystems that offer little are checked on what they offer, and nothing else counts."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library

_CHECKED = Path(__file__).parents[1] / "check"


def test_computed_files_can_reach_a_level(mtf):
    library = link_library(
        "libcomputed_files.so", [compile_object(_CHECKED / "computed_files.c", ("_GNU_SOURCE",))]
    )
    ended = mtf("check", library, "--level", 3, "--json")
    (plugin,) = ended.object["plugins"]
    verdicts = {check["verdict"] for check in plugin["checks"]}

    assert verdicts == {"passed", "warned", "skipped"}
    assert plugin["level_reached"] == 3
