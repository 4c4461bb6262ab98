"""Time `modular-tf list` over a folder of many plugins: the first time, and when all are known.

Usage: python benchmarks/many_plugins.py [--json FILE] [--repeat N] [--count N] [--at-once N]

The plugins are one filesystem plugin, with another scheme and so other bytes in each file. The
first run tries each in a process of its own; `/proc/PID/maps` of the command is looked at all the
time, since none may be mapped there. Processes that start at once share one cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "contrib" / "ram_filesystem" / "src"
PLACEHOLDER = b"scheme00000"
ELSEWHERE = "/"  # in a checkout, Python would import the sources there, which are not built
TARGETS = {
    "first": "<= 5 s for 1000",
    "known": "<= 150 ms for 1000",
    "no plugins": "",
    "at once": "<= 2 x the first",
}


def build(folder: Path, count: int) -> None:
    """Fill a folder with plugins."""
    from modular_tf.headers import include_directory

    original = folder / "original.so"
    subprocess.run(
        [
            *("c++", "-std=c++17", "-O2", "-shared", "-fPIC", "-I", include_directory()),
            f'-DMTF_RAM_SCHEME="{PLACEHOLDER.decode()}"',
            *("-o", str(original), *map(str, SOURCES.glob("*.cc"))),
        ],
        check=True,
    )
    data = original.read_bytes()
    original.unlink()
    for number in range(count):
        scheme = b"scheme%05d" % number
        (folder / f"libmany_{number:05}.so").write_bytes(data.replace(PLACEHOLDER, scheme))


def list_command(folder: Path) -> list[str]:
    """Return the command that is timed."""
    return [sys.executable, "-m", "modular_tf", "--plugin-dir", str(folder), "list", "--json"]


def mapped_plugins(pid: int) -> set[str]:
    """Return the plugins that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return set()
    return {line.split("/")[-1] for line in maps.splitlines() if "libmany_" in line}


def run(folder: Path, home: Path, *, watched: bool = False) -> tuple[float, dict[str, int]]:
    """Run the command; return its seconds and how many plugins it lists in each state."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}
    start = time.perf_counter()
    with subprocess.Popen(
        list_command(folder), stdout=subprocess.PIPE, env=environment, cwd=ELSEWHERE
    ) as process:
        mapped: set[str] = set()
        while watched and process.poll() is None and not mapped:
            mapped = mapped_plugins(process.pid)
            time.sleep(0.01)
            if _has_output(process):
                break
        output = process.stdout.read()
    seconds = time.perf_counter() - start
    if mapped:
        raise SystemExit(f"mapped in the application: {sorted(mapped)[:3]}")
    states: dict[str, int] = {}
    for plugin in json.loads(output)["plugins"]:
        states[plugin["state"]] = states.get(plugin["state"], 0) + 1
    return seconds, states


def _has_output(process: subprocess.Popen[bytes]) -> bool:
    import select

    return bool(select.select([process.stdout], [], [], 0)[0])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        plugins, homes, empty = (Path(name) / part for part in ("plugins", "homes", "empty"))
        for folder in (plugins, homes, empty):
            folder.mkdir()
        build(plugins, options.count)
        figures = measure(plugins, homes, empty, options.repeat)
        figures["at once"] = measure_at_once(plugins, homes / "shared", options.at_once)
    for subject, figure in figures.items():
        target = TARGETS.get(subject, "")
        print(f"{subject:12} {figure['ms']:9.1f} ms  {figure['states']}  {target}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


def measure(plugins: Path, homes: Path, empty: Path, repeat: int) -> dict[str, dict[str, object]]:
    """Return the figures of one command at a time."""
    time.sleep(2.5)  # until the files' times tell any change of them
    first, states = run(plugins, homes / "one", watched=True)
    figures: dict[str, dict[str, object]] = {"first": {"ms": first * 1e3, "states": states}}
    known = [run(plugins, homes / "one") for _ in range(repeat)]
    figures["known"] = {"ms": min(known)[0] * 1e3, "states": known[0][1]}
    nothing = [run(empty, homes / "one") for _ in range(repeat)]
    figures["no plugins"] = {"ms": min(nothing)[0] * 1e3, "states": nothing[0][1]}
    return figures


def measure_at_once(plugins: Path, home: Path, processes: int) -> dict[str, object]:
    """Return the figure of several commands that start at once without a cache."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}
    start = time.perf_counter()
    running = [
        subprocess.Popen(
            list_command(plugins), stdout=subprocess.PIPE, env=environment, cwd=ELSEWHERE
        )
        for _ in range(processes)
    ]
    outputs = {process.communicate()[0] for process in running}
    seconds = time.perf_counter() - start
    if len(outputs) != 1:
        raise SystemExit(f"{len(outputs)} different answers of {processes} processes")
    states: dict[str, int] = {}
    for plugin in json.loads(outputs.pop())["plugins"]:
        states[plugin["state"]] = states.get(plugin["state"], 0) + 1
    return {"ms": seconds * 1e3, "states": states}


if __name__ == "__main__":
    main()
