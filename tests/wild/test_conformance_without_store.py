"""Checks of a published plugin whose store is not there, and that nobody has named."""

from __future__ import annotations

import json
import os
import socket
import sys

import pytest

from tests.fixtures.emulators import AZURE_ACCOUNT, AZURE_KEY, NO_PROXY
from tests.fixtures.process_group import run_in_group

pytestmark = pytest.mark.wild


@pytest.fixture
def silent_server():
    """Where connections are accepted, and nobody answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(512)
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_two_hangs_end_the_checks_of_a_scheme(silent_server, wild_plugins, tmp_path):
    settings, report = tmp_path / "settings.toml", tmp_path / "report.json"
    settings.write_text('[options]\nschemes = ["az"]\n')
    environment = {
        "TF_AZURE_STORAGE_BLOB_ENDPOINT": f"http://{silent_server}/{AZURE_ACCOUNT}",
        "TF_AZURE_STORAGE_KEY": AZURE_KEY,
        "TF_AZURE_STORAGE_USE_HTTP": "1",
        **NO_PROXY,
    }
    command = [sys.executable, "-m", "modular_tf", "check", str(wild_plugins.io_library)]
    command += ["--settings", str(settings), "--write-json", str(report), "--jobs", "1"]
    command += ["--only", "reading", "--only", "writing", "--patience", "0.2"]
    done = run_in_group(command, cwd=tmp_path, env={**os.environ, **environment}, timeout=280)

    assert report.exists(), done.stderr
    (plugin,) = json.loads(report.read_text())["plugins"]
    verdicts = [check["verdict"] for check in plugin["checks"]]
    assert (verdicts.count("hung"), set(verdicts)) == (2, {"hung", "blocked"}), done.stdout
    assert f"{verdicts.count('blocked')} checks of az:// were not tried" in plugin["remarks"][0]
    assert "--root" in plugin["remarks"][0]
