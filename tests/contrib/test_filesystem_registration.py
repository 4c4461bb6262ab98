"""What the plugins register: schemes, versions, NULL slots, and libraries that show one symbol."""

from __future__ import annotations

import subprocess

import pytest

from tests.contrib.plugin_process import PluginProcess, installed_plugin

OURS = {
    "posix_filesystem": ("file", ["", "file"], "TF_InitPlugin"),
    "ram_filesystem": ("ram", ["ram"], "TF_InitPlugin"),
    "host_device": ("", [], "SE_InitPlugin"),
}
TRANSACTIONS = {f"transaction_{number}" for number in range(6)}
OPTIONS = {f"configuration_{number}" for number in range(5)}
NULL_SLOTS = {
    "posix_filesystem": {"paths_exist", "translate_name", "flush_caches"} | TRANSACTIONS | OPTIONS,
    "ram_filesystem": {"get_matching_paths", "flush_caches"} | TRANSACTIONS | OPTIONS,
}


def _symbols(name: str, *options: str) -> list[str]:
    """Names from nm; host runtime symbols for undefined ones."""
    command = ["nm", "-D", *options, str(installed_plugin(name))]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split()[-1] for line in lines]


@pytest.mark.parametrize("name", OURS)
def test_only_the_entry_point_is_exported(name: str) -> None:
    """Row 4."""
    assert _symbols(name, "--defined-only") == [OURS[name][2]]


@pytest.mark.parametrize("name", OURS)
def test_only_documented_host_functions_are_imported(name: str) -> None:
    """Row 3."""
    imported = {symbol for symbol in _symbols(name, "--undefined-only") if "TF_" in symbol}
    assert imported <= {
        "TF_NewStatus",
        "TF_DeleteStatus",
        "TF_SetStatus",
        "TF_SetStatusFromIOError",
        "TF_GetCode",
        "TF_Message",
    }


@pytest.mark.parametrize("name", OURS)
def test_no_library_of_a_host_is_needed(name: str) -> None:
    """Row 3."""
    command = ["readelf", "-d", str(installed_plugin(name))]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    needed = [line for line in text.splitlines() if "NEEDED" in line]
    assert needed
    assert not [line for line in needed if "tensorflow" in line or "modular_tf" in line]


@pytest.mark.parametrize("name", NULL_SLOTS)
def test_registration(name: str) -> None:
    """Rows 18, 19, 26, 27: the harness frees and overwrites the tables before it uses any slot."""
    scheme, schemes, _ = OURS[name]
    plugin = PluginProcess("filesystem", installed_plugin(name), scheme)
    facts = plugin.facts()
    assert facts["schemes"] == schemes
    assert facts["sizes"] == [(264, 16, 48, 24)] * len(schemes)
    assert set(facts["null"]) == NULL_SLOTS[name]
    assert plugin.close() == 0


@pytest.mark.parametrize("name", NULL_SLOTS)
def test_start_and_end_again_and_again(name: str) -> None:
    """Row 35."""
    plugin = PluginProcess("filesystem", installed_plugin(name), OURS[name][0])
    before = plugin.descriptors()
    for _ in range(50):
        plugin.end()
    assert plugin.descriptors() == before
    assert plugin.close() == 0
