"""The page about Ray, which takes minutes: scripts/try_ray runs this file, no other test does."""

from pathlib import Path

import pytest

from tests.architecture.samples import run_samples
from tests.fixtures.clients import client_libraries, with_places

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-ray.md"


@pytest.mark.wild
@pytest.mark.emulator
def test_the_sample_runs_and_prints_what_is_said(tmp_path, wild_plugins, s3_store, monkeypatch):
    for name, value in with_places(wild_plugins.site_dir, client_libraries("ray")).items():
        monkeypatch.setenv(name, value)
    run_samples(PAGE.read_text(encoding="utf-8"), tmp_path, wild_plugins, s3_store)
