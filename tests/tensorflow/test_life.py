"""Closed services, forks, interrupts, and ends of processes, while TensorFlow has files open."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.native.ffi import ffi, lib
from modular_tf.tensorflow import bridge
from tests.filesystem.ending import ending_plugin
from tests.fixtures.matrices import BEYOND_THE_SAMPLE, sampled
from tests.tensorflow import ends

pytestmark = [pytest.mark.xdist_group("tensorflow")]

_START = """
def write_records(path, count=2000):
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(count):
            writer.write(b"x" * 1000)

OURS = {"other": "ram", "disk": "file"}
service = started(OURS)
"""


# Those in which a plugin hangs take seconds, and are tried by scripts/try_tensorflow_exits too.
_ENDS = ["normal", "abandoned iterators with open files", "closed service", "filesystem that hangs"]


@pytest.fixture
def run(run_bridge):
    """Return what runs code after `_START`, and returns what it prints."""
    return lambda code, *arguments: run_bridge(_START + code, *arguments).stdout


def test_a_closed_service_gives_failed_precondition_and_a_new_one_serves_again(run):
    run("""
write_records("other://records")
iterator = iter(tf.data.TFRecordDataset("other://records", buffer_size=100))
next(iterator)
reader = g.GFile("other://records", "rb")
reader.read(10)
writer = tf.io.TFRecordWriter("disk://" + os.getcwd() + "/kept")
writer.write(b"kept")
writer.flush()
service.close()
try:
    for _ in iterator:
        pass
    raise AssertionError("the iterator went on")
except tf.errors.FailedPreconditionError as error:
    assert "closed" in str(error), error
try:
    g.exists("other://records")
    raise AssertionError("it exists")
except tf.errors.FailedPreconditionError as error:
    pass
assert os.path.getsize("kept") > 4

service = started(OURS)
g.GFile("other://new", "w").write("a")
g.GFile("disk://" + os.getcwd() + "/new", "w").close()
assert [r.numpy() for r in tf.data.TFRecordDataset("disk://" + os.getcwd() + "/kept")] == [b"kept"]
""")


def test_a_forked_child_reads(run):
    run("""
write_records("disk://" + os.getcwd() + "/records")
assert len(g.GFile("disk://" + os.getcwd() + "/records", "rb").read()) > 2_000_000
child = os.fork()
if child == 0:
    data = g.GFile("disk://" + os.getcwd() + "/records", "rb").read()
    os._exit(0 if len(data) > 2_000_000 else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert g.exists("disk://" + os.getcwd() + "/records")
""")


def test_an_interrupt_in_an_upcall_is_not_lost(run):
    printed = run("""
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)

class Slow:
    def path_exists(self, uri):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            print("interrupted within", flush=True)
            raise

    def new_random_access_file(self, uri):
        raise FileNotFoundError(uri)

mtft.register_filesystem("slow", Slow(), service=service)
try:
    try:
        g.exists("slow://x")
    except tf.errors.CancelledError:
        print("cancelled")
    time.sleep(600)  # which the interrupt ends
    print("lost")
except KeyboardInterrupt:
    print("raised")
assert not g.exists("other://none")
""")
    assert printed.split() in (
        ["interrupted", "within", "cancelled", "raised"],
        ["interrupted", "within", "raised"],  # on a machine that is slow
    )


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_signal_handler_cannot_use_the_file_whose_call_it_interrupted(kind, run):
    """It would wait for itself."""
    printed = run(
        """
import faulthandler
from modular_tf.filesystem.files import RandomAccessFile, WritableFile

faulthandler.dump_traceback_later(60, exit=True)

def handle(*_):
    now = steps[:]
    steps.clear()
    for step in now:
        try:
            step()
        except tf.errors.FailedPreconditionError as error:
            print("signal handler" in str(error), flush=True)

def interrupt():
    if steps:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert not steps  # the handler has run

class Reader(RandomAccessFile):
    def __init__(self, uri):
        self.uri = uri

    def readinto(self, offset, buffer):
        interrupt()
        data = b"0123456789"[offset : offset + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        pass

class Writer(WritableFile):
    def __init__(self, uri):
        self.uri, self.data = uri, b""

    def append(self, data):
        interrupt()
        self.data += bytes(data)

    def tell(self):
        return len(self.data)

    def close(self):
        print(len(self.data), flush=True)

class Interrupted:
    def new_random_access_file(self, uri):
        return Reader(uri)

    def new_writable_file(self, uri):
        return Writer(uri)

    def get_file_size(self, uri):
        return 10

    def path_exists(self, uri):
        pass

steps = []
signal.signal(signal.SIGUSR1, handle)
mtft.register_filesystem("interrupted", Interrupted(), service=service)
if sys.argv[1] == "write":
    file = g.GFile("interrupted://f", "wb")
    file.write(b"x")
    steps += [lambda: file.write(b"y"), file.flush, file.tell, file.close]
    file.write(b"x" * 300_000)
    file.close()
else:
    from tensorflow.python.lib.io._pywrap_file_io import BufferedInputStream

    # A buffer of 16 bytes lies in TensorFlow's stream. A longer one would be freed by the read in
    # the handler, while the read that it interrupts still writes to it.
    file = BufferedInputStream("interrupted://f", 16)
    other = g.GFile("interrupted://g", "rb")
    steps += [lambda: print(other.read(3)), lambda: file.read(1)]
    print(len(file.read(4)))  # what is in the buffer then is TensorFlow's
""",
        kind,
    )
    told = {"write": ["True"] * 4 + ["300001"], "read": ["b'012'", "True", "4"]}
    assert printed.splitlines() == told[kind]


@pytest.mark.parametrize("name", sampled(ends.ends, _ENDS))
def test_an_end_of_the_process_is_clean(name, run_tensorflow, tmp_path):
    (tmp_path / "files").mkdir()
    ended = run_tensorflow(Path(ends.__file__), name, tmp_path / "files", ending_plugin())
    assert [word for word in ends.NOISE if word in ended.stderr] == []


@BEYOND_THE_SAMPLE
@pytest.mark.parametrize("name", ends.ends)
def test_an_end_of_an_interpreter_is_clean(name, tensorflow_environment, run_python, tmp_path):
    """Its last collection sees what it has imported, which that of a fork does not."""
    (tmp_path / "files").mkdir()
    program = Path(ends.__file__)
    given = name, tmp_path / "files", ending_plugin()
    ended = run_python(program, *given, env=tensorflow_environment, timeout=240)
    assert [word for word in ends.NOISE if word in ended.stderr] == []


def test_files_that_nobody_closes_keep_their_bytes(run, tmp_path):
    run("""
kept = tf.io.TFRecordWriter("disk://" + os.getcwd() + "/records")
kept.write(b"kept")
file = g.GFile("disk://" + os.getcwd() + "/text", "w")
file.write("kept")
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
assert os.path.getsize("text") == 0, "the child wrote what its parent gathered"
""")
    assert (tmp_path / "text").read_text() == "kept"
    assert (tmp_path / "records").stat().st_size == 20


def test_an_interrupt_in_a_registration_leaves_the_scheme_ours(run):
    run("""
register_plugin = tf.experimental.register_filesystem_plugin
def interrupted(path):
    register_plugin(path)
    raise KeyboardInterrupt
tf.experimental.register_filesystem_plugin = interrupted
try:
    mtft.register({"third": "ram"}, service=service)
    raise AssertionError("no interrupt")
except KeyboardInterrupt:
    pass
(row,) = mtft.register({"third": "ram"}, service=service).rows
assert row.is_served, row
g.GFile("third://file", "w").write("a")
""")


def test_threads_write_to_one_file(run):
    run("""
file = g.GFile("disk://" + os.getcwd() + "/many", "wb")
file.write(b"")
def write(mark):
    for _ in range(3000):
        file.write(mark * 100)
threads = [threading.Thread(target=write, args=(bytes([97 + n]),)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file.close()
with open("many", "rb") as stream:
    parts = iter(lambda: stream.read(100), b"")
    counts = [part[:1] for part in parts if part == part[:1] * 100]
assert len(counts) == 8 * 3000, len(counts)
""")


def test_threads_of_tensorflow_read_at_once(run):
    run("""
import fsspec
memory = fsspec.filesystem("memory")
mtft.register_filesystem("mem", memory, service=service)
names = []
for number in range(8):
    for scheme in ("other", "mem"):
        names.append(f"{scheme}://records-{number}")
        write_records(names[-1], 300)
dataset = tf.data.Dataset.from_tensor_slices(names).interleave(
    lambda name: tf.data.TFRecordDataset(name, buffer_size=1000),
    cycle_length=16, num_parallel_calls=8)
assert sum(1 for _ in dataset) == 16 * 300
""")


@pytest.mark.parametrize("what", ["nothing", "fails", "is interrupted"])
def test_a_store_keeps_nothing_of_a_file_that_lacks_bytes(what, run, tmp_path):
    """What nobody closed is stored where all writes came in, as by TensorFlow itself."""
    run(
        """
import gc
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

what = sys.argv[1]

class File(AbstractBufferedFile):
    def _initiate_upload(self):
        self.parts = b""

    def _upload_chunk(self, final=False):
        self.parts += self.buffer.getvalue()
        if final:
            with open(self.path.rpartition("/")[2], "wb") as file:
                file.write(self.parts)
        return True

    def write(self, data):
        if what != "nothing" and fs.is_failing:
            fs.is_failing = False
            raise OSError("no space left") if what == "fails" else KeyboardInterrupt
        return super().write(data)

class Store(MemoryFileSystem):
    protocol = "kept-store"
    is_failing = False

    def _open(self, path, mode="rb", **options):
        return File(self, path, mode)

fs = Store()
mtft.register_filesystem("kept", fs, service=service)

def write(how):
    file = g.GFile(f"kept://{how}", "wb")
    file.write(b"x" * 300_000)
    fs.is_failing = True
    for _ in range(2):
        try:
            file.write(b"y" * 300_000)
        except tf.errors.OpError:
            pass
    return file

file = None
for how in ("closed", "collected", "left-at-the-end"):
    try:
        file = write(how)
        if how == "closed":
            try:
                file.close()
                assert what == "nothing"
            except tf.errors.DataLossError as error:
                assert "earlier write" in str(error)
                assert what != "nothing"
        if how == "collected":
            file = None
            gc.collect()
        if how != "left-at-the-end":
            assert os.path.exists(how) == (what == "nothing")
        if what == "is interrupted":
            time.sleep(60)  # it comes a moment later
            raise AssertionError("no interrupt")
    except KeyboardInterrupt:
        assert what == "is interrupted"
""",
        what,
    )
    for how in ("closed", "collected", "left-at-the-end"):
        assert (tmp_path / how).exists() == (what == "nothing")


def test_an_interrupt_while_a_text_is_freed_leaves_no_pointer_to_it(monkeypatch):
    """It would be freed twice."""

    class Interrupted:
        mtf_bridge_copy = staticmethod(lib.mtf_bridge_copy)

        @staticmethod
        def mtf_string_free(text):
            lib.mtf_string_free(text)
            raise KeyboardInterrupt

    answer = ffi.new("mtf_bridge_answer *")
    answer.text = lib.mtf_bridge_copy(b"old", 3)
    monkeypatch.setattr(bridge, "lib", Interrupted)

    with pytest.raises(KeyboardInterrupt):
        bridge._set_text(answer, b"new")

    assert ffi.string(answer.text) == b"new"
    lib.mtf_string_free(answer.text)
