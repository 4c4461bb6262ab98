"""The list of variants and the sources agree."""

from __future__ import annotations

import re

import pytest

from tests.plugins.matrix import FOLDER, variants


@pytest.mark.parametrize("family", ["filesystem", "device"])
def test_sources_and_list_name_the_same_variants(family):
    sources = "".join(file.read_text() for file in (FOLDER / family).glob("*_variants.c"))
    listed = [name for name, variant in variants(family).items() if variant.in_a_table]

    assert sorted(re.findall(r'^    \{"([^"]+)", ', sources, re.MULTILINE)) == sorted(listed)
