"""Builds and runs the fuzzer of the protocol (`protocol_fuzzer.cc`), under sanitizers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_program

_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"
_CORE = _NATIVE / "core"
_SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-O0", "-g1")
HOST_SOURCES = (
    "call_counts",
    "call_trace",
    "error",
    "fd_message",
    "filesystem",
    "filesystem_operations",
    "float_state",
    "fork_lock",
    "library",
    "stream_guard",
    "worker_call",
    "worker_options",
    "worker_proxies",
)
"""The units of the native core that are the host's side of the protocol, and what they need."""
# Whoever believes a length asks for more at once; so does an allocation without an end.
_LIMITS = "detect_leaks=1:max_allocation_size_mb=256:hard_rss_limit_mb=3000"
_TIMEOUT_S = 3600


def build():
    folders = [_CORE, _NATIVE / "host_runtime"]
    sources = [_CORE / f"{name}.cc" for name in HOST_SOURCES]
    sources += [_NATIVE / "host_runtime" / "status.c", Path(__file__).with_suffix(".cc")]
    options = (*_SANITIZED, "-D_GNU_SOURCE")  # for the one that is C
    objects = [compile_object(path, (), folders, options) for path in sources]
    return link_program("protocol_fuzzer", objects, [*_SANITIZED, "-ldl", "-lpthread"])


def run(program, messages, seed):
    """Have so many messages sent, and return the program that has ended."""
    environment = {**os.environ, "ASAN_OPTIONS": _LIMITS}
    environment.pop("LD_PRELOAD", None)
    return subprocess.run(
        [program, str(messages), str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
