"""A plugin that its author has built with a sanitizer: what `modular-tf check` makes of it."""

from __future__ import annotations

import json
import os
import sys

import pytest

from modular_tf.cli.process import Exit
from modular_tf.native.sanitizers import sanitizer_environment
from tests.fixtures.compiler import file_of_compiler
from tests.fixtures.process_group import run_in_group

RUNTIME = "libasan.so"
QUIET = {"ASAN_OPTIONS": "detect_leaks=0"}


@pytest.fixture
def check(sanitized_heap_plugin, tmp_path):
    """Check the plugin, in a process with the runtime or without it."""
    runtime = file_of_compiler(RUNTIME)
    if runtime is None:
        pytest.fail(f"these tests need {RUNTIME}, which comes with gcc", pytrace=False)
    preload = f"{runtime}:{file_of_compiler('libstdc++.so.6')}"

    def run_check(misuse, *words, preloaded=True, **variables):
        variables |= {"FIXTURE_MISUSE": misuse, "LD_PRELOAD": preload if preloaded else ""}
        command = [sys.executable, "-m", "modular_tf", "check", str(sanitized_heap_plugin), *words]
        return run_in_group(command, cwd=tmp_path, env={**os.environ, **variables}, timeout=240)

    return run_check


def test_without_the_runtime_the_report_says_how_to_get_it(check):
    done = check("nowhere", "--only", "LD-*", preloaded=False)

    assert done.returncode == Exit.NO
    (remark,) = (line for line in done.stdout.splitlines() if "LD_PRELOAD=/" in line)
    assert "built with AddressSanitizer" in remark
    assert f"/{RUNTIME}" in remark
    assert "ASAN_OPTIONS=detect_leaks=0" in remark
    assert done.stdout.splitlines()[-1].startswith("libsanitized_heap_plugin.so: does not conform")


def test_with_it_a_good_plugin_conforms(check):
    tried = ("FS-149", "FS-256")
    done = check("nowhere", "--json", *(word for name in tried for word in ("--only", name)))
    (plugin,) = json.loads(done.stdout)["plugins"]

    # How much more is in memory says nothing there.
    assert {(found["check_id"], found["verdict"]) for found in plugin["checks"]} == {
        ("FS-149", "skipped"),
        ("FS-256", "passed"),
    }
    assert plugin["remarks"] == []
    assert "ASAN_OPTIONS=detect_leaks=0" in done.stderr


def test_what_the_sanitizer_reports_is_in_the_report(check):
    done = check("overrun", "--only", "FS-256", "--root", "ram://root", **QUIET)

    assert done.returncode == Exit.NO
    assert ": AddressSanitizer reported heap-buffer-overflow " in done.stdout
    assert "WRITE of size 1" in done.stdout
    assert "in misuse_heap" in done.stdout
    assert "Shadow bytes" not in done.stdout
    assert not done.stderr


def test_options_of_the_user_come_last_and_count():
    made = sanitizer_environment({"UBSAN_OPTIONS": "halt_on_error=0", "A": "b"})

    assert made["UBSAN_OPTIONS"].endswith(":halt_on_error=0")
    assert made["UBSAN_OPTIONS"].startswith("halt_on_error=1:")
    assert made["ASAN_OPTIONS"].startswith("detect_leaks=0")
    assert made["A"] == "b"
