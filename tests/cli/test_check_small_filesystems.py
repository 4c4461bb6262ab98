"""Filesystems that offer little are checked on what they offer, and nothing else counts."""

from pathlib import Path

from tests.architecture.document import blocks
from tests.fixtures.compiler import compile_object, link_library

_CHECKED = Path(__file__).parents[1] / "check"
_DOCS = Path(__file__).parents[2] / "docs"


def test_computed_files_can_reach_a_level(mtf):
    library = link_library(
        "libcomputed_files.so", [compile_object(_CHECKED / "computed_files.c", ("_GNU_SOURCE",))]
    )
    ended = mtf("check", library, "--level", 3, "--json")
    (plugin,) = ended.object["plugins"]
    verdicts = {check["verdict"] for check in plugin["checks"]}

    assert verdicts == {"passed", "warned", "skipped"}
    assert plugin["level_reached"] == 3


def test_init_need_not_set_its_status(mtf, tmp_path):
    """The host lends a status as OK. The sample of the start page does not set it in init."""
    page = (_DOCS / "start" / "plugin-authors.md").read_text(encoding="utf-8")
    (source,) = (block.text for block in blocks(page) if block.language == "c")
    path = tmp_path / "hello.c"
    path.write_text(source, encoding="utf-8")
    options = ("-Wno-unused-parameter", "-Wno-sign-compare")
    library = link_library("libhello.so", [compile_object(path, ("_GNU_SOURCE",), options=options)])
    ended = mtf("check", library, "--only", "FS-132")

    assert "1 check: 1 passed" in ended.lines[-1], ended.lines
    assert ended.err == ""
