"""Plugins bind to the host runtime, however they were linked, and nobody gets in between."""

from __future__ import annotations

import subprocess

import pytest

from tests.fixtures.compiler import link_library, link_program
from tests.host_runtime.conftest import RUNTIME, SUBJECTS, compiled

OURS = "libmodular_tf_framework.so.2"
THEIRS = "libtensorflow_framework.so.2"
IMPORTS = ["TF_NewStatus", "TF_DeleteStatus", "TF_GetCode", "TF_SetStatusFromIOError", "TF_Log"]


def plugin_linked_to_stand_in(folder, soname, version_script=None):
    """Return a plugin, linked to a library with the names that it imports, and nothing behind."""
    source, script = folder / "stand_in.c", folder / "stand_in.map"
    source.write_text("".join(f"void {name}(void);\nvoid {name}(void) {{}}\n" for name in IMPORTS))
    options = [f"-Wl,-soname,{soname}"]
    if version_script is not None:
        script.write_text(version_script)
        options.append(f"-Wl,--version-script={script}")
    return plugin_linked_to(link_library(soname, [compiled(source)], options))


def plugin_linked_to(library):
    return link_library("plugin.so", [compiled(SUBJECTS / "binding_plugin.c")], [str(library)])


def version_references(plugin):
    command = ["nm", "-D", "--undefined-only", "--with-symbol-versions", str(plugin)]
    listing = subprocess.run(command, text=True, capture_output=True, check=True)
    return "\n".join(line for line in listing.stdout.splitlines() if " TF_" in line)


def run_host(plugin, *more, status=0):
    """Run a plugin in the small host and return what it logged."""
    host = link_program("binding_host", [compiled(SUBJECTS / "binding_host.c")], ["-ldl"])
    child = subprocess.run(
        [host, RUNTIME, plugin, *more], text=True, capture_output=True, timeout=60, check=False
    )
    assert child.returncode == status, child.stderr
    return child.stderr


def test_a_plugin_linked_without_versions_or_to_the_runtime_itself(tmp_path):
    without, itself = plugin_linked_to_stand_in(tmp_path, OURS), plugin_linked_to(RUNTIME)

    assert "@" not in version_references(without)
    assert "TF_NewStatus@tensorflow" in version_references(itself)
    for plugin in (without, itself):
        assert "I plugin] from the plugin" in run_host(plugin)


@pytest.mark.parametrize("script", [None, "tensorflow { *; };"], ids=["2.21", "2.22"])
def test_a_plugin_linked_to_tensorflow_and_renamed(tmp_path, script):
    """Both names have one length, so that the one string in the file can be replaced in place."""
    linked = plugin_linked_to_stand_in(tmp_path, THEIRS, script)
    assert version_references(linked).count("@tensorflow") == (5 if script else 0)
    contents = linked.read_bytes()
    assert contents.count(THEIRS.encode()) == 1
    plugin = tmp_path / "plugin.so"
    plugin.write_bytes(contents.replace(THEIRS.encode(), OURS.encode()))

    log = run_host(plugin)

    assert "I plugin] from the plugin" in log
    assert "no version information" not in log


@pytest.fixture
def impostor():
    return link_library(THEIRS, [compiled(SUBJECTS / "impostor.c")], [f"-Wl,-soname,{THEIRS}"])


def test_a_global_tensorflow_catches_a_plugin_that_is_not_bound_deep(tmp_path, impostor):
    """The fact that the loader's deep binding is for: were it gone, so could the binding."""
    run_host(plugin_linked_to_stand_in(tmp_path, OURS), impostor, status=99)


def test_a_global_tensorflow_does_not_reach_into_the_runtime(impostor):
    """The runtime calls exported functions of its own, here TF_SetStatus from another one."""
    assert "I plugin] from the plugin" in run_host(plugin_linked_to(RUNTIME), impostor, "deep")
