"""Many processes use one cache at once, and each recalls only what is true."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.scan_cache.sharing_process import is_true, kind_of, open_cache, write

CHECKOUT = Path(__file__).parents[2]
PROCESSES = 16


def test_sixteen_processes_share_it(tmp_path: Path):
    names = [f"{name}{n}.so" for name in ("kept", "changing") for n in range(12)]
    plugins = [tmp_path / "plugins" / name for name in names]
    for number, path in enumerate(plugins):
        write(path, ("filesystem", "device")[number % 2])
    start = tmp_path / "start"
    command = [sys.executable, "-m", "tests.scan_cache.sharing_process"]
    running = [
        subprocess.Popen(
            [*command, str(number), str(tmp_path / "plugins"), str(start)],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    while len(list(tmp_path.glob("ready-*"))) < PROCESSES:
        assert all(process.poll() is None for process in running)
        time.sleep(0.01)
    start.touch()
    ended = [(process.communicate(), process.returncode) for process in running]

    assert [errors for (_, errors), status in ended if status] == []
    assert sum(int(output) for (output, _), _ in ended) > 0
    cache = open_cache(tmp_path)
    known = {path: cache.recall(str(path)) for path in plugins}
    false = [path for path, found in known.items() if found and not is_true(found, kind_of(path))]
    assert false == []
    assert all(known[path] is not None for path in plugins if path.name.startswith("kept"))
