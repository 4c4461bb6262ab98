"""Many files of a real store at once, through fsspec: few requests, and every byte right."""

from __future__ import annotations

import ast

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

COUNT = 40

PREPARE = """
import urllib.request

import fsspec

far = mtf.fsspec.ModularFileSystem("s3", service=service)
top = far._strip_protocol(base) + "/many"
files = {f"{top}/f{n:02}": bytes([n]) * 1000 for n in range(40)}
far.pipe(files)
large = bytes(range(256)) * 4096 * 4
far.pipe_file(f"{top}-large", large)

def control(method):
    url = os.environ["S3_ENDPOINT"] + "/-/requests"
    return urllib.request.urlopen(urllib.request.Request(url, method=method)).read()

control("DELETE")
"""


@pytest.fixture
def requests_of(distant_s3, run_subject):
    """Run a program after `PREPARE`; return the requests that it makes, by kind."""

    def requests(program: str) -> dict[str, int]:
        child = run_subject(distant_s3, f"{PREPARE}\n{program}\nprint(control('GET').decode())")
        found: dict[str, int] = ast.literal_eval(child.stdout.strip())["requests"]
        return found

    return requests


def test_many_small_objects_are_read_by_two_requests_each(requests_of):
    assert sum(requests_of("expect(far.cat(list(files)), files)").values()) <= 2 * COUNT


def test_names_that_match_are_not_looked_at(requests_of):
    assert set(requests_of("expect(far.glob(f'{top}/f*'), list(files))")) == {"list"}


def test_sizes_are_a_look_at_each_object(requests_of):
    asked = requests_of("expect({e['size'] for e in far.ls(top)}, {1000})")

    assert asked["HEAD"] == COUNT
    assert sum(asked.values()) <= 2 * COUNT + 1


def test_ranges_near_each_other_need_one_look_and_one_read(requests_of):
    asked = requests_of(
        """
starts = list(range(0, 1 << 20, 20_000))
found = far.cat_ranges([f"{top}-large"] * len(starts), starts, [s + 500 for s in starts])
expect(found, [large[s : s + 500] for s in starts])
"""
    )

    assert sum(asked.values()) <= 4


def test_small_reads_one_after_the_other_are_few_requests(requests_of):
    asked = requests_of(
        """
with far.open(f"{top}-large") as file:
    expect(b"".join(iter(lambda: file.read(10_000), b"")), large)
"""
    )

    assert sum(asked.values()) <= 12


def test_a_tree_goes_down_and_up_and_away(requests_of):
    requests_of(
        """
import pathlib, tempfile

with tempfile.TemporaryDirectory() as folder:
    far.get(top, f"{folder}/down", recursive=True)
    got = pathlib.Path(folder, "down").iterdir()
    expect({f"{top}/{path.name}": path.read_bytes() for path in got}, files)
    far.put(f"{folder}/down", f"{top}-up", recursive=True)
far.copy(f"{top}-up", f"{top}-copy", recursive=True)
expect(len(far.find(f"{top}-copy")), 40)
expect(far.cat_file(f"{top}-copy/f39"), files[f"{top}/f39"])
far.rm([f"{top}-copy", f"{top}-up"], recursive=True)
expect(far.exists(f"{top}-copy"), False)
"""
    )
