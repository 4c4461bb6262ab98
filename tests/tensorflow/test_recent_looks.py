"""What was found in a store is kept for a second, and forgotten by every change."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.xdist_group("tensorflow"), pytest.mark.wild, pytest.mark.emulator]

_START = """
from modular_tf.filesystem.workarounds.object_store import ObjectStore
from modular_tf.tensorflow import bridge
from tests.fixtures.emulators import ControlledStore, ask

# Nothing may depend on the machine's speed.
bridge.found_here.seconds = bridge._lengths.seconds = 3600

store = ControlledStore(sys.argv[1], sys.argv[2], {})
root = f"{store.base_uri}/{sys.argv[3]}"
plugin = [os.environ["WILD_PLUGIN"]]
service = started({"s3": "s3", "far": "s3", "other": "ram"}, plugin_paths=plugin)

def others(method, uri, data=None):
    "Have another client change the store."
    ask(method, uri.replace("s3://", store.endpoint + "/", 1), data)

def write(uri, text):
    with g.GFile(uri, "w") as file:
        file.write(text)

def requests_of(call):
    store.forget_requests()
    call()
    return sum(store.requests().values())
"""


@pytest.fixture
def run(run_bridge, wild_plugins, distant_s3, request):
    """Return what runs code after `_START`."""
    env = {**distant_s3.environment, "WILD_PLUGIN": str(wild_plugins.io_library)}
    place = distant_s3.endpoint, distant_s3.base_uri, request.node.name
    return lambda code: run_bridge(_START + code, *place, env=env)


def test_a_path_is_looked_at_once(run):
    run("""
others("PUT", f"{root}/file", b"text")
def load():
    assert g.exists(f"{root}/file") and not g.isdir(f"{root}/file")
    assert g.glob(f"{root}/file") == [f"{root}/file"]
    assert g.GFile(f"{root}/file").read() == "text"
    assert g.stat(f"{root}/file").length == 4
    assert g.GFile(f"{root}/file").size() == 4
one_look = requests_of(lambda: service.filesystem("s3").stat(f"{root}/file"))
assert requests_of(load) == one_look + 1
bridge.found_here.seconds = 0
assert requests_of(load) == 6 * one_look + 1
""")


def test_a_change_is_seen_at_once(run):
    run("""
here = f"{root}/directory/file"
def at_once(change, exists, path=here):
    g.exists(here), g.isdir(os.path.dirname(here)), g.exists(path)
    change()
    assert g.exists(path) == exists, (path, exists)

at_once(lambda: write(here, "text"), True)
at_once(lambda: g.remove(here), False)
write(here, "text")
at_once(lambda: g.rename(here, f"{root}/moved"), False)
at_once(lambda: g.copy(f"{root}/moved", here), True)
at_once(lambda: g.rename(os.path.dirname(here), f"{root}/elsewhere"), False)
at_once(lambda: None, False, os.path.dirname(here))
at_once(lambda: g.rename(f"{root}/elsewhere", os.path.dirname(here)), True)
at_once(lambda: g.remove(here.replace("s3:", "far:")), False)
write(here, "text")
at_once(lambda: g.rmtree(f"{root}/directory"), False)
at_once(lambda: g.makedirs(here), True)
at_once(lambda: g.rmtree(here), False)

write(here, "text")
piece = "x" * (1 << 19)  # more than is gathered
writer = g.GFile(here, "w")
for change, length in (
    (lambda: writer.write(piece), 4),
    (writer.flush, len(piece)),
    (lambda: writer.write(piece), len(piece)),
    (writer.close, 2 * len(piece)),
):
    g.stat(here)
    change()
    assert g.stat(here).length == length
""")


def test_what_others_change_is_seen_when_a_look_is_old(run):
    run("""
file = f"{root}/file"
assert not g.exists(file)
others("PUT", file, b"text")
assert g.exists(file)  # that nothing is there is not kept
others("PUT", file, b"longer text")
assert g.stat(file).length == 4
assert g.GFile(file).read() == "longer text"  # the file is as long as it is when it is opened
assert g.stat(file).length == 11
others("DELETE", file)
assert g.exists(file)
bridge.found_here.seconds = 1.0
bridge.found_here.clear()
others("PUT", file, b"text")
assert g.exists(file)
others("DELETE", file)
time.sleep(1.0)
assert not g.exists(file)
""")


def test_no_part_of_a_file_that_others_replaced_is_taken_for_all_of_it(run):
    run("""
file = f"{root}/file"
def records():
    return len(list(tf.data.FixedLengthRecordDataset(file, 10)))
for count in (3, 5, 2):
    others("PUT", file, b"x" * 10 * count)
    if count != 3:
        try:
            raise AssertionError(f"{records()} records of {count}")
        except tf.errors.AbortedError as error:
            assert "was replaced since its length was asked for" in str(error), error
    assert records() == count
    assert g.exists(file) and tf.io.read_file(file).numpy() == b"x" * 10 * count
write(file, "x" * 70)
assert records() == 7  # nobody is told of his own changes
""")


def test_a_look_during_a_change_is_not_kept(run):
    run("""
file = f"{root}/file"
write(file, "text")
asked, changed = threading.Event(), threading.Event()
looked = ObjectStore.stat
def slow(self, uri):
    found = looked(self, uri)
    asked.set()
    assert changed.wait(60)
    return found
ObjectStore.stat = slow
looking = threading.Thread(target=g.exists, args=[file])
looking.start()
assert asked.wait(60)
g.remove(file)
changed.set()
looking.join()
assert not g.exists(file)
""")


def test_a_new_service_and_a_child_ask_themselves(run):
    run("""
file = f"{root}/file"
write(file, "text")
assert g.exists(file)
child = os.fork()
if not child:
    g.remove(file)
    os._exit(g.exists(file))
assert os.waitpid(child, 0)[1] == 0
bridge.found_here.clear()
assert not g.exists(file)
write(file, "text")
assert g.exists(file)
service.close()
try:
    g.exists(file)
    raise AssertionError("a closed service answered")
except tf.errors.FailedPreconditionError:
    pass
others("DELETE", file)
again = started(["s3"], plugin_paths=plugin)
assert not g.exists(file)
""")
