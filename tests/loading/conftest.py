"""Libraries with bytes and traces of their own."""

import json
import os
import shutil
from pathlib import Path

import pytest

from modular_tf.discovery.candidate import LoadFacts
from modular_tf.discovery.file_identity import SETTLED_AFTER_NS, see
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import probe
from modular_tf.loading.binding import map_file
from modular_tf.loading.bound_files import bound_files
from tests.discovery.conftest import make_candidate
from tests.fixtures.compiler import compile_object, link_library


def put(library, place):
    """Put a library into a folder or a file, with bytes of its own, so that each is mapped."""
    if place.is_file():
        place.unlink()  # it may be mapped
    place = Path(shutil.copy(library, place))
    with place.open("ab") as stream:  # where no linker looks
        stream.write(os.urandom(16))
    return place


def settled(path):
    """Return a file as seen long after its last change, when its times say all."""
    seen = see(str(path))
    return seen._replace(seen_ns=seen.identity.ctime_ns + SETTLED_AFTER_NS + 1, sha256=None)


def load_seen(path, *companions, age="fresh", **options):
    """Map a library that was seen just now, or long after its last change."""
    look = settled if age == "settled" else lambda file: see(str(file))
    checked = [look(file) for file in (path, *companions)]
    return map_file(str(path), [str(file) for file in companions], checked=checked, **options)


def facts_of(plugin):
    """Return what a probe finds out for the load."""
    found = probe(make_candidate(plugin), host_exports())
    assert found.loadable, found.problems
    return LoadFacts.of(found)


def load_probed(plugin):
    """Map a library as its probe says."""
    facts = facts_of(plugin)
    return map_file(str(plugin), facts.companions, facts.absent)


def odd_plugin(*oddities, scheme=None):
    """Build `odd_plugin.c` with macros of its own."""
    macros = [*oddities, *([f'SCHEME="{scheme}"'] if scheme is not None else [])]
    compiled = compile_object(Path(__file__).with_name("odd_plugin.c"), macros)
    return link_library("libodd.so", [compiled])


@pytest.fixture
def folder(tmp_path):
    """Return a folder for libraries."""
    path = tmp_path / "folder"
    path.mkdir()
    return path


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Have folders made in a directory of the test."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    bound_files.mirrors.remove()
    yield path
    bound_files.mirrors.remove()


_LOAD = """
    import json, sys
    from modular_tf.service.service import PluginService

    with PluginService(plugin_paths=sys.argv[1:]) as service:
        odd, *others = service.load().plugins
        assert {"", "file", "ram"} <= set(service.schemes())
        reasons = [{**reason.as_dict(), "fatal": reason in odd.reasons}
                   for reason in (*odd.reasons, *odd.warnings)]
    print(json.dumps({"schemes": odd.schemes, "state": odd.state.value, "reasons": reasons}))
"""


@pytest.fixture
def load_in_child(run_forked):
    """Load a library that may end the process in a process of its own; return what became of it."""
    return lambda library: json.loads(run_forked(_LOAD, library).stdout)
