"""Time `modular-tf check` as its users wait for it: whole commands, on the bundled plugins.

Usage: python benchmarks/conformance.py [--json FILE] [--repeat N]

The figures are wall time of the command, the best of several rounds, and how many checks came to an
answer in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

RUNS = (
    ("first answer: level 2, files in memory", ("ram_filesystem", "--level", "2"), "under 2 s"),
    ("level 4, files in memory", ("ram_filesystem", "--level", "4"), "under 30 s"),
    ("level 4, local files", ("posix_filesystem", "--level", "4"), ""),
    ("level 4, host device", ("host_device", "--level", "4"), ""),
    ("level 5, files in memory", ("ram_filesystem", "--level", "5"), ""),
)
PEER = "a bare interpreter"


def checked(words: tuple[str, ...]) -> tuple[float, int]:
    """Run one command and return its seconds and the number of checks that had an answer."""
    begun = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "modular_tf", "check", *words, "--json"],
        capture_output=True, check=True, text=True,
        cwd="/",  # in a checkout, Python would import the sources there, which are not built
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    summary = json.loads(ended.stdout)["summary"]
    return seconds, sum(summary.values()) - summary["skipped"] - summary["blocked"]


def bare() -> float:
    """Start an interpreter that does nothing, and return its seconds."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", ""], check=True)
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each")
    options = parser.parse_args()
    figures = {PEER: {"s": min(bare() for _ in range(options.repeat))}}
    print(f"{PEER:42} {figures[PEER]['s']:7.2f} s")
    for name, words, target in RUNS:
        rounds = [checked(words) for _ in range(options.repeat)]
        seconds, answers = min(rounds)
        figures[name] = {"s": seconds, "checks": answers}
        print(f"{name:42} {seconds:7.2f} s  {answers:4} checks  {target}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
