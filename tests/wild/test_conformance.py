"""`modular-tf check` finds by itself what is known to be wrong with plugins that people use.

Each row says which check finds a known defect where the plugin's own slots are called; through the
host, whose workarounds are switched off, the same check must have nothing to say.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from modular_tf.check.filesystem.workspace import write_prepared_files
from modular_tf.check.options import Options
from tests.fixtures.matrices import sampled
from tests.fixtures.process_group import run_in_group
from tests.wild.conftest import STORES

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_BAD = {"failed", "warned", "crashed", "hung", "exited"}
_GCS_VARIABLES = {
    "GCS_READ_CACHE_BLOCK_SIZE_MB": "16",
    "GCS_READ_CACHE_MAX_SIZE_MB": "16",
    "GCS_READ_CACHE_MAX_STALENESS": "0",
    "GCS_STAT_CACHE_MAX_AGE": "0",
    "GCS_STAT_CACHE_MAX_ENTRIES": "0",
}


@dataclass(frozen=True)
class Found:
    """What a run finds.

    Attributes:
        store: A scheme of `STORES`, or the name of a fixture.
        finds: For each check the verdicts that it may come to, with the number of the defect in
            the table of known ones, or its id.
        environment: What the plugin finds in its environment besides.
        options: Of the checks.
        patience: Of machines that do something else too; where a check is to hang, it costs.
    """

    store: str
    finds: Mapping[str, tuple[int | str, set[str]]]
    environment: Mapping[str, str] = field(default_factory=dict)
    options: str = ""
    patience: float = 3


_FAILED, _WARNED, _CRASHED, _HUNG = {"failed"}, {"warned"}, {"crashed"}, {"hung"}
_RUNS = {
    "s3": Found(
        "s3",
        {
            "FS-127": ("s3-cleanup-ends-all", _CRASHED),
            "FS-323": (1, _WARNED),
            "FS-160": (10, _WARNED),
            "FS-163": (10, _FAILED),
            "FS-170": (11, _FAILED),
            "FS-192": (11, _FAILED),
            "FS-221": (12, _FAILED),
            "FS-226": (12, _FAILED),
            "FS-237": (12, _FAILED),
            "FS-335": ("s3-rename-takes-siblings-along", _FAILED),
            "FS-334": (17, _WARNED),
            "FS-330": (18, _WARNED),
        },
    ),
    "az": Found(
        "az",
        {
            "FS-333": (2, _CRASHED),
            "FS-241": ("az-rename-to-itself-deletes", _FAILED),
            "FS-336": ("az-forgets-descriptors", _FAILED),
            "FS-330": ("az-hangs-after-fork", _WARNED),
            "FS-244": (3, _HUNG),
            "FS-193": (14, _FAILED),
            # Where create_dir stalls for longer than usual, that is found first.
            "FS-228": ("az-delete-takes-siblings-along", {"failed", "hung"}),
            "FS-268": (14, _FAILED),
            "FS-273": (14, _FAILED),
            "FS-277": (14, _FAILED),
        },
        options="[options]\ncreate_roots = false\n",
        patience=1.5,
    ),
    "gs-without-variables": Found("gs", {"FS-156": (4, _CRASHED)}),
    "gs": Found(
        "gs",
        {
            "FS-332": (5, {"crashed", "failed"}),
            "FS-286": (15, _WARNED),
            "FS-334": (17, _WARNED),
            "FS-151": ("gs-directories-do-not-exist", _FAILED),
        },
        environment=_GCS_VARIABLES,
    ),
    "gs-compose": Found(
        "gs", {"FS-193": (6, _FAILED)}, environment={**_GCS_VARIABLES, "GCS_APPEND_MODE": "compose"}
    ),
    "http": Found("http", {"FS-331": (8, _FAILED), "FS-151": (9, _FAILED), "FS-155": (9, _FAILED)}),
    "http-without-ranges": Found("http_store_without_ranges", {"FS-157": (7, _FAILED)}),
    "oss": Found(
        "oss",
        {
            "FS-158": (16, _FAILED),
            "FS-162": (16, _FAILED),
            "FS-221": ("oss-prefixes-exist", _FAILED),
            "FS-228": ("oss-delete-takes-siblings-along", _FAILED),
            "FS-241": ("oss-rename-to-itself-deletes", _FAILED),
            "FS-259": ("oss-prefixes-exist", _FAILED),
        },
    ),
}
_UNSEEN = {13: "a server that is away: a kit that is given a server cannot take it away"}


def _outcomes(found: Found, request, wild_plugins, folder):
    """Run the command and return what each check came to, by id and pass."""
    store = request.getfixturevalue(STORES.get(found.store, found.store))
    library = wild_plugins.gcs_library if found.store == "gs" else wild_plugins.io_library
    settings, report = folder / "settings.toml", folder / "report.json"
    settings.write_text(found.options)
    options = [
        "--patience",
        str(found.patience),
        "--settings",
        str(settings),
        "--write-json",
        str(report),
        "--through-host",
    ]
    if store.folder is None:
        options += ["--profile", "object-store", "--root", store.uri("conformance")]
    else:
        write_prepared_files(str(store.folder), Options())
        options += ["--profile", "read-only", "--prepared", "--root", store.base_uri]
    for check_id in found.finds:
        options += ["--only", check_id]
    done = run_in_group(
        [sys.executable, "-m", "modular_tf", "check", str(library), *options],
        cwd=folder,
        env={**os.environ, **store.environment, **found.environment},
        timeout=400,
    )
    assert report.exists(), done.stderr
    (plugin,) = json.loads(report.read_text())["plugins"]
    return {(check["check_id"], check["reached"]): check for check in plugin["checks"]}


@pytest.mark.parametrize("name", sampled(_RUNS, _RUNS.keys() - {"az"}))
def test_known_defects_are_found(name, request, wild_plugins, tmp_path):
    found = _RUNS[name]
    outcomes = _outcomes(found, request, wild_plugins, tmp_path)

    for check_id, (_, verdicts) in found.finds.items():
        raw = outcomes[check_id, "raw"]
        assert raw["verdict"] in verdicts, (check_id, raw["verdict"], raw["message"], raw["found"])
    amiss = [
        o for (_, reached), o in outcomes.items() if reached == "host" and o["verdict"] in _BAD
    ]
    assert amiss == []


def test_each_known_defect_has_its_check():
    rows = {row for run in _RUNS.values() for row, _ in run.finds.values() if isinstance(row, int)}

    assert rows | _UNSEEN.keys() == set(range(1, 19))
    assert not rows & _UNSEEN.keys()
