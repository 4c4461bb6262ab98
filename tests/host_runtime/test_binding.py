"""Plugins bind to the host runtime, however they were linked, and nobody gets in between."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SUBJECTS = Path(__file__).parent / "subjects"
OURS = "libmodular_tf_framework.so.2"
THEIRS = "libtensorflow_framework.so.2"
IMPORTS = ["TF_NewStatus", "TF_DeleteStatus", "TF_GetCode", "TF_SetStatusFromIOError", "TF_Log"]


def stand_in_library(
    compile_c: Callable[..., Path], folder: Path, soname: str, version_script: str | None
) -> Path:
    """Return a library to link against: names that a plugin imports, nothing behind them."""
    source = folder / "stand_in.c"
    source.write_text("".join(f"void {name}(void);\nvoid {name}(void) {{}}\n" for name in IMPORTS))
    options = ["-shared", f"-Wl,-soname,{soname}"]
    if version_script is not None:
        script = folder / "stand_in.map"
        script.write_text(version_script)
        options.append(f"-Wl,--version-script={script}")
    return compile_c(f"{folder.name}/{soname}", [source], *options)


def plugin_linked_to(compile_c: Callable[..., Path], library: Path, folder: Path) -> Path:
    source = SUBJECTS / "binding_plugin.c"
    return compile_c(f"{folder.name}/plugin.so", [source], "-shared", str(library))


def version_references(plugin: Path) -> str:
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", "--with-symbol-versions", str(plugin)],
        text=True,
        capture_output=True,
        check=True,
    )
    return "\n".join(line for line in listing.stdout.splitlines() if " TF_" in line)


@pytest.fixture
def run_host(compile_c: Callable[..., Path], runtime: Path) -> Callable[..., str]:
    """Return a function that runs a plugin in the small host and returns what it logged."""
    host = compile_c("binding_host", [SUBJECTS / "binding_host.c"], "-ldl")

    def run(plugin: Path, *more: str, status: int = 0) -> str:
        child = subprocess.run(
            [str(host), str(runtime), str(plugin), *more],
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert child.returncode == status, child.stderr
        return child.stderr

    return run


def test_a_plugin_linked_without_versions(
    compile_c: Callable[..., Path], run_host: Callable[..., str], tmp_path: Path
) -> None:
    stand_in = stand_in_library(compile_c, tmp_path, OURS, None)
    plugin = plugin_linked_to(compile_c, stand_in, tmp_path)

    assert "@" not in version_references(plugin)
    assert "I plugin] from the plugin" in run_host(plugin)


def test_a_plugin_linked_to_the_runtime_itself(
    compile_c: Callable[..., Path], run_host: Callable[..., str], runtime: Path, tmp_path: Path
) -> None:
    plugin = plugin_linked_to(compile_c, runtime, tmp_path)

    assert "TF_NewStatus@tensorflow" in version_references(plugin)
    assert "I plugin] from the plugin" in run_host(plugin)


@pytest.mark.parametrize("script", [None, "tensorflow { *; };"], ids=["2.21", "2.22"])
def test_a_plugin_linked_to_tensorflow_and_renamed(
    compile_c: Callable[..., Path],
    run_host: Callable[..., str],
    tmp_path: Path,
    script: str | None,
) -> None:
    """Both names have one length, so that the one string in the file can be replaced in place."""
    stand_in = stand_in_library(compile_c, tmp_path, THEIRS, script)
    plugin = plugin_linked_to(compile_c, stand_in, tmp_path)
    assert version_references(plugin).count("@tensorflow") == (5 if script else 0)
    contents = plugin.read_bytes()
    assert contents.count(THEIRS.encode()) == 1
    plugin.write_bytes(contents.replace(THEIRS.encode(), OURS.encode()))

    log = run_host(plugin)

    assert "I plugin] from the plugin" in log
    assert "no version information" not in log


@pytest.fixture
def impostor(compile_c: Callable[..., Path]) -> str:
    source = SUBJECTS / "impostor.c"
    return str(compile_c(f"impostor/{THEIRS}", [source], "-shared", f"-Wl,-soname,{THEIRS}"))


def test_a_global_tensorflow_catches_a_plugin_that_is_not_bound_deep(
    compile_c: Callable[..., Path], run_host: Callable[..., str], tmp_path: Path, impostor: str
) -> None:
    """The fact that the loader's deep binding is for: were it gone, so could the binding."""
    stand_in = stand_in_library(compile_c, tmp_path, OURS, None)
    plugin = plugin_linked_to(compile_c, stand_in, tmp_path)

    run_host(plugin, impostor, status=99)


def test_a_global_tensorflow_does_not_reach_into_the_runtime(
    compile_c: Callable[..., Path],
    run_host: Callable[..., str],
    runtime: Path,
    tmp_path: Path,
    impostor: str,
) -> None:
    """The runtime calls exported functions of its own, here TF_SetStatus from another one."""
    plugin = plugin_linked_to(compile_c, runtime, tmp_path)

    assert "I plugin] from the plugin" in run_host(plugin, impostor, "deep")
