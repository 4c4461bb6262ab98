"""What clients of others are asked for names and sizes, and that no answer is an old one."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.emulators.conversation import ask
from tests.fsspec.test_clients_behind_schemes import MAKE, _install_hook, _with_client

pytestmark = pytest.mark.emulator

COUNT = 1200  # two pages of a listing
# What obstore.fsspec lists has no time of modification.
LIST_TIMES = sorted(MAKE.keys() - {"obstore.fsspec"})
RUN = """
    import contextlib, io, json, sys
    from modular_tf.cli.main import run

    for words in sys.argv[1:]:
        print(f"== {words}", int(run(["fs", *words.split()])))
"""


@pytest.fixture(scope="module")
def filled(distant_s3):
    for number in range(COUNT):
        key = f"{distant_s3.endpoint}/fixture/many/f{number:04}"
        assert ask("PUT", key, b"x" * number).status == 200
    return distant_s3


@pytest.fixture
def environment(filled, tmp_path):
    def of(client):
        _install_hook(tmp_path, f"endpoint = {filled.endpoint!r}\n{dedent(MAKE[client])}")
        return {**filled.environment, **_with_client(client, tmp_path)}

    return of


@pytest.mark.parametrize("client", LIST_TIMES)
def test_no_object_is_asked_for_its_size(client, filled, environment, run_python, tmp_path):
    local = tmp_path / "local"
    local.mkdir()
    for number in range(COUNT):
        (local / f"f{number:04}").write_bytes(b"x" * number)
    uri, variables = "mine://fixture/many", environment(client)
    for words in (
        f"ls -l {uri}",
        f"du {uri}",
        f"find --min-size 1000 {uri}",
        f"sync --size-only {local} {uri}",
        f"sync --size-only {uri} {local}",
        f"rm -r -n {uri}",
    ):
        filled.forget_requests()
        done = run_python(RUN, words, env=variables, timeout=120)
        requests = filled.requests()

        assert f"== {words} 0" in done.stdout
        # The root is looked at as a file and as a directory; a listing has two pages.
        assert sum(requests.values()) <= 12, (words, requests)


@pytest.mark.parametrize("client", LIST_TIMES)
def test_names_of_the_faces_are_asked_by_listings(client, filled, environment, run_python):
    subject = """
        import json, sys, urllib.request
        import modular_tf as mtf
        from modular_tf import gfile
        from modular_tf.fsspec import ModularFileSystem

        def requests():
            with urllib.request.urlopen(f"{sys.argv[1]}/-/requests") as answer:
                found = sum(json.load(answer)["requests"].values())
            request = urllib.request.Request(f"{sys.argv[1]}/-/requests", method="DELETE")
            urllib.request.urlopen(request).close()
            return found

        service = mtf.default_service()
        service.load()
        fs = ModularFileSystem("mine", service=service)
        sizes = {f"fixture/many/f{number:04}": number for number in range(1200)}
        requests()
        for name, call in {
            "ls": lambda: {one["name"]: one["size"] for one in fs.ls("fixture/many")},
            "find": lambda: {k: e["size"] for k, e in fs.find("fixture/many", detail=True).items()},
            "du": lambda: fs.du("fixture/many", total=False),
            "walk": lambda: {
                f"{top}/{name}": entry["size"]
                for top, _, files in fs.walk("fixture/many", detail=True)
                for name, entry in files.items()
            },
            "gfile.walk": lambda: {
                f"{top}/{name}".removeprefix("mine://"): sizes[f"fixture/many/{name}"]
                for top, _, names in gfile.walk("mine://fixture/many")
                for name in names
            },
        }.items():
            assert call() == sizes, name
            asked = requests()
            assert asked <= 9, (name, asked)
        some = fs.ls("fixture/many")[7]
        stat = fs.filesystem.stat("mine://" + some["name"])
        assert (some["size"], some["mtime_ns"] // 10**9) == (stat.length, stat.mtime_nsec // 10**9)
    """
    run_python(dedent(subject), filled.endpoint, env=environment(client), timeout=120)


@pytest.mark.parametrize("client", MAKE)
def test_a_change_by_others_and_an_own_one_are_seen(client, filled, environment, run_python):
    subject = """
        import sys, urllib.request
        from modular_tf import gfile

        ROOT = "mine://fixture/changing"

        def put(name, data):
            url = f"{sys.argv[1]}/fixture/changing/{name}"
            urllib.request.urlopen(urllib.request.Request(url, data, method="PUT")).close()

        def seen():
            names = gfile.listdir(ROOT)
            assert [name for _, _, files in gfile.walk(ROOT) for name in files] == names
            return {name: gfile.stat(f"{ROOT}/{name}").length for name in names}

        put("a", b"1")
        assert seen() == {"a": 1}
        put("a", b"22")
        assert gfile.stat(f"{ROOT}/a").length == 2
        put("b", b"")
        assert gfile.exists(f"{ROOT}/b")
        assert seen() == {"a": 2, "b": 0}
        with gfile.GFile(f"{ROOT}/a", "wb") as file:
            file.write(b"4444")
        assert gfile.stat(f"{ROOT}/a").length == 4
        with gfile.GFile(f"{ROOT}/a", "rb") as file:
            assert file.read() == b"4444"
        gfile.remove(f"{ROOT}/b")
        assert seen() == {"a": 4}
    """
    run_python(dedent(subject), filled.endpoint, env=environment(client), timeout=120)


# Of a file of pyarrow that fsspec hands on nobody knows when it is stored.
@pytest.mark.parametrize("client", sorted(MAKE.keys() - {"pyarrow.by.fsspec"}))
def test_a_file_is_replaced_by_its_own_name(client, filled, environment, run_python, tmp_path):
    """No other object is stored, copied and deleted for it."""
    local = tmp_path / "new"
    local.write_bytes(b"new")
    assert ask("PUT", f"{filled.endpoint}/fixture/one", b"old one").status == 200
    variables = environment(client)
    filled.forget_requests()
    done = run_python(RUN, f"cp {local} mine://fixture/one", env=variables, timeout=120)
    requests = filled.requests()

    assert "mine://fixture/one 0" in done.stdout
    assert requests.pop("HEAD") <= 2
    assert requests in ({"PUT": 1}, {"POST upload": 2, "PUT upload": 1})
