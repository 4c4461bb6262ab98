"""Time what a user waits for first: import, listing, and the memory that a listing takes.

Usage: python benchmarks/start_up.py [--json FILE] [--repeat N]

Each figure is the best of several runs of a fresh process; memory is the peak resident
set of the process, plugins included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

PYTHON = [sys.executable]
LIST = [*PYTHON, "-m", "modular_tf", "list", "--json"]
SUBJECTS = {
    "bare interpreter": [*PYTHON, "-c", "pass"],
    "import modular_tf": [*PYTHON, "-c", "import modular_tf"],
    "modular-tf list --json --no-load": [*LIST, "--no-load"],
    "modular-tf list --json": LIST,
    "import tensorflow": [*PYTHON, "-c", "import tensorflow"],
}
TARGETS = {
    "import modular_tf": "<= 40 ms over the bare interpreter",
    "modular-tf list --json": "<= 150 ms, <= 40 MiB beyond the plugins' own",
    "import tensorflow": "2.2 s and 487 MiB where it was measured first",
}


def run_once(command: list[str]) -> tuple[float, float] | None:
    """Return seconds and peak MiB of one run; None where it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
        cwd="/",  # in a checkout, Python would import the sources there, which are not built
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if status else (time.perf_counter() - start, usage.ru_maxrss / 1024)


def measure(command: list[str], repeat: int) -> dict[str, float] | None:
    """Return the best of several runs; None where what it needs is not installed."""
    if run_once(command) is None:  # also warms the page cache
        if "import tensorflow" in command:
            return None
        sys.exit(f"start_up: this command fails: {' '.join(command)}")
    runs = [run for run in (run_once(command) for _ in range(repeat)) if run]
    return {"ms": min(s for s, _ in runs) * 1e3, "peak_mib": min(m for _, m in runs)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    figures: dict[str, dict[str, float] | None] = {}
    for name, command in SUBJECTS.items():
        figures[name] = found = measure(command, 3 if "tensorflow" in name else options.repeat)
        bare = figures["bare interpreter"] or {"ms": 0.0, "peak_mib": 0.0}
        if found is None:
            print(f"{name:36} not installed here")
            continue
        more = {name: found[name] - bare[name] for name in found}
        over = f"+{more['ms']:.0f} ms, +{more['peak_mib']:.0f} MiB"
        target = f"   (target: {TARGETS[name]})" if name in TARGETS else ""
        print(f"{name:36} {found['ms']:8.1f} ms {found['peak_mib']:8.1f} MiB  {over}{target}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
