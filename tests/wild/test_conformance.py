"""`modular-tf check` finds by itself what is known to be wrong with plugins that people use.

Each row says which check finds a known defect where the plugin's own slots are called; through the
host, whose workarounds are switched off, the same check must have nothing to say.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field

import pytest

from modular_tf.check.filesystem.workspace import write_prepared_files
from modular_tf.check.options import Options
from tests.fixtures.matrices import sampled
from tests.fixtures.process_group import run_in_group
from tests.wild.conftest import STORES

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
class Run:
    """What a run of the checks finds.

    Attributes:
        store: A scheme of `STORES`, or the name of a fixture.
        finds: For each check the verdicts that it may come to, with the number of the defect in
            the table of known ones, or its id.
        environment: What the plugin finds in its environment besides.
        settings: Of the checks.
        patience: Of machines that do something else too; where a check is to hang, it costs.
    """

    store: str
    finds: dict[str, tuple[int | str, set[str]]]
    environment: dict[str, str] = field(default_factory=dict)
    settings: str = ""
    patience: float = 3


_FAILED, _WARNED, _CRASHED, _HUNG = {"failed"}, {"warned"}, {"crashed"}, {"hung"}
_RUNS = {
    "s3": Run(
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
    "az": Run(
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
        settings="[options]\ncreate_roots = false\n",
        patience=1.5,
    ),
    "gs-without-variables": Run("gs", {"FS-156": (4, _CRASHED)}),
    "gs": Run(
        "gs",
        {
            "FS-332": (5, {"crashed", "failed"}),
            "FS-286": (15, _WARNED),
            "FS-334": (17, _WARNED),
            "FS-151": ("gs-directories-do-not-exist", _FAILED),
        },
        environment=_GCS_VARIABLES,
    ),
    "gs-compose": Run(
        "gs", {"FS-193": (6, _FAILED)}, environment={**_GCS_VARIABLES, "GCS_APPEND_MODE": "compose"}
    ),
    "http": Run("http", {"FS-331": (8, _FAILED), "FS-151": (9, _FAILED), "FS-155": (9, _FAILED)}),
    "http-without-ranges": Run("http_store_without_ranges", {"FS-157": (7, _FAILED)}),
    "oss": Run(
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


@pytest.fixture
def checks_of(tmp_path, wild_plugins):
    """Return what runs the command, and returns its report of the plugin."""

    def run(options, settings, environment, library=wild_plugins.io_library):
        written, report = tmp_path / "settings.toml", tmp_path / "report.json"
        written.write_text(settings)
        command = [sys.executable, "-m", "modular_tf", "check", str(library), *options]
        done = run_in_group(
            [*command, "--settings", str(written), "--write-json", str(report)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            timeout=400,
        )
        assert report.exists(), done.stderr
        (plugin,) = json.loads(report.read_text())["plugins"]
        return plugin

    return run


@pytest.mark.parametrize("name", sampled(_RUNS, ["gs-without-variables", "http", "oss"]))
def test_known_defects_are_found(name, request, wild_plugins, checks_of):
    run = _RUNS[name]
    store = request.getfixturevalue(STORES.get(run.store, run.store))
    library = wild_plugins.gcs_library if run.store == "gs" else wild_plugins.io_library
    options = ["--patience", str(run.patience), "--through-host"]
    if store.folder is None:
        options += ["--profile", "object-store", "--root", store.uri("conformance")]
    else:
        write_prepared_files(str(store.folder), Options())
        options += ["--profile", "read-only", "--prepared", "--root", store.base_uri]
    options += [word for check_id in run.finds for word in ("--only", check_id)]
    environment = {**store.environment, **run.environment}
    plugin = checks_of(options, run.settings, environment, library)
    outcomes = {(check["check_id"], check["reached"]): check for check in plugin["checks"]}

    for check_id, (_, verdicts) in run.finds.items():
        raw = outcomes[check_id, "raw"]
        assert raw["verdict"] in verdicts, (check_id, raw["verdict"], raw["message"], raw["found"])
    assert [
        outcome
        for (_, reached), outcome in outcomes.items()
        if reached == "host" and outcome["verdict"] in _BAD
    ] == []
