"""How many requests the same work costs on each store, beside s3: what is more is the plugins'."""

from __future__ import annotations

import json

import pytest

from tests.fixtures.emulators import proxied
from tests.wild.conftest import STORES

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_WORK = """
    import json, sys, urllib.request
    from modular_tf.fsspec import ModularFileSystem
    proxy = os.environ["PROXY"]
    scheme, _, root = base.partition("://")
    s = ModularFileSystem(scheme, service=service)
    names = [f"{root}/f{number}" for number in range(10)]

    def requests():
        with urllib.request.urlopen(f"{proxy}/-/requests") as answer:
            found = json.load(answer)["requests"]
        forget = urllib.request.Request(f"{proxy}/-/requests", method="DELETE")
        urllib.request.urlopen(forget).close()
        return found

    def read():
        with s.open(names[0], "rb") as file:
            return file.read()

    def write():
        with s.open(names[0], "wb") as file:
            file.write(b"x" * 1000)

    writes = {
        "write": write,
        "write whole": lambda: s.pipe_file(names[0], b"x" * 1000),
        "copy": lambda: s.cp_file(names[0], f"{root}/copied"),
        "move": lambda: s.mv(f"{root}/copied", f"{root}/moved"),
        "remove": lambda: s.rm_file(f"{root}/moved"),
        "remove folder of 10": lambda: s.rm(root, recursive=True),
    }
    reads = {
        "read whole": lambda: s.cat_file(names[0]),
        "open and read": read,
        "read a part": lambda: s.cat_file(names[0], 10, 20),
        "cat 10": lambda: s.cat(names),
        "10 ranges": lambda: s.cat_ranges(names, [5] * 10, [50] * 10),
        "info": lambda: s.info(names[0]),
        "exists": lambda: s.exists(names[0]),
        "exists, missing": lambda: s.exists(f"{root}/missing"),
        "list names of 10": lambda: s.ls(root, detail=False),
        "list 10 with sizes": lambda: s.ls(root, detail=True),
        "find 10": lambda: s.find(root),
    }
    if "WILD_FOLDER" in os.environ:
        work = {name: call for name, call in reads.items() if "list" not in name}
        del work["find 10"]
    else:
        for name in names:
            s.pipe_file(name, b"x" * 1000)
        work = {**reads, **writes}
    s.exists(names[0])  # what a plugin asks once for all
    requests()
    found = {}
    for name, call in work.items():
        call()
        found[name] = requests()
    print(json.dumps(found))
    """


@pytest.fixture(scope="module")
def requests_of(request, tmp_path_factory):
    """Return what counts the work on a scheme, once."""
    known = {}

    def count(scheme, run_subject):
        if scheme not in known:
            store = request.getfixturevalue(STORES[scheme])
            with proxied(store, tmp_path_factory.mktemp(scheme)) as proxy:
                env = {"PROXY": proxy.endpoint}
                if proxy.folder is not None:
                    env["WILD_FOLDER"] = str(proxy.folder)
                    (proxy.folder / "counted").mkdir()
                    for number in range(10):
                        (proxy.folder / "counted" / f"f{number}").write_bytes(b"x" * 1000)
                child = run_subject(proxy, _WORK, folder="counted", env=env)
            known[scheme] = json.loads(child.stdout)
        return known[scheme]

    return count


# What is left is the plugins' own code. A look-up of a file is HEAD and a listing for s3; for az it
# is 4 HEAD; for gs 2 GET and a listing. A read of az is HEAD and GET, and HEAD again where it ends
# at the end: the file may have changed in between.
_TIMES_S3 = {"az": 3.0, "gs": 1.5, "http": 1.0}


@pytest.mark.parametrize("scheme", ["az", "gs", "http"])
def test_the_same_work_needs_few_requests_beside_s3(scheme, requests_of, run_subject):
    s3 = requests_of("s3", run_subject)
    found = requests_of(scheme, run_subject)

    more = {}
    for name, kinds in found.items():
        needed, most = sum(kinds.values()), sum(s3[name].values())
        print(f"{scheme:5}{name:22}{needed:4}  s3 {most:4}  {kinds}  s3 {s3[name]}")
        if needed > most * _TIMES_S3[scheme]:
            more[name] = needed, most
    assert not more
