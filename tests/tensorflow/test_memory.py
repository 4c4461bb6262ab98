"""The bridge keeps nothing of closed files."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.xdist_group("tensorflow")]

_CODE = """
import gc
import fsspec
from modular_tf.tensorflow import bridge

service = started({"other": "ram"})
mtft.register_filesystem("mem", fsspec.filesystem("memory"), service=service)

def resident_kib():
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmRSS")]
    return int(line.split()[1])

def work(root):
    with g.GFile(root + "/file", "wb") as file:
        file.write(b"x" * 3000)
        file.tell()
        file.flush()
    with g.GFile(root + "/file", "rb") as file:
        assert len(file.read()) == 3000
    g.stat(root + "/file")
    g.listdir(root)
    g.glob(root + "/*")
    g.exists(root + "/none")
    try:
        g.GFile(root + "/none", "rb").read()
    except tf.errors.NotFoundError:
        pass
    g.copy(root + "/file", root + "/copy", overwrite=True)
    g.rename(root + "/copy", root + "/moved", overwrite=True)

def round_of_work():
    for _ in range(100):
        work("other://top")
        work("mem://top")
    gc.collect()
    return resident_kib(), len(os.listdir("/proc/self/fd"))

g.makedirs("other://top")
g.makedirs("mem://top")
round_of_work()
rounds = [round_of_work() for _ in range(3)]
assert bridge._files == {}, bridge._files
assert len({descriptors for _, descriptors in rounds}) == 1, rounds
# 200 times a dozen calls: what one of them keeps is seen, were it a hundred bytes.
growth = [after[0] - before[0] for before, after in zip(rounds, rounds[1:])]
assert min(growth) < 50, growth
"""


def test_many_files_leave_nothing_behind(run_bridge):
    run_bridge(_CODE)
