"""Filesystems that give no answer: TensorFlow gets an error in time, and goes on."""

from __future__ import annotations

import json

import pytest

from modular_tf import RandomAccessFile
from modular_tf.errors import DeadlineExceededError
from modular_tf.tensorflow.open_files import OpenFile
from tests.filesystem.ending import ending_plugin

pytestmark = [pytest.mark.xdist_group("tensorflow")]

_START = """
import json, threading, time
import tensorflow as tf
import modular_tf as mtf
import modular_tf.tensorflow as mtft
from modular_tf import FileStatistics, RandomAccessFile, WritableFile

g = tf.io.gfile
never = threading.Event()
blocked = set()
happened = []

def block(operation):
    if operation in blocked:
        never.wait()
        happened.append(operation)

class Reader(RandomAccessFile):
    uri = "slow://r"
    def readinto(self, offset, buffer):
        block("read")
        memoryview(buffer)[:] = b"x" * memoryview(buffer).nbytes
        return memoryview(buffer).nbytes
    def close(self):
        happened.append("reader closed")

class Writer(WritableFile):
    uri = "slow://w"
    def append(self, data):
        block("append")
    def tell(self):
        return 0
    def close(self):
        block("close")
        happened.append("writer closed")
    def discard(self):
        happened.append("writer discarded")

class Slow:
    def new_random_access_file(self, uri):
        block("open")
        return Reader()
    def new_writable_file(self, uri):
        block("open writer")
        return Writer()
    def stat(self, uri):
        block("stat")
        return FileStatistics(5 << 20, 0, False)
    def get_children(self, uri):
        block("list")
        return ["a"]
    def path_exists(self, uri):
        return True
    def is_directory(self, uri):
        return True

def error_of(call):
    try:
        return f"nothing: {call()!r}"
    except tf.errors.OpError as error:
        return f"{type(error).__name__}: {error.message}"

def wait_for(condition):
    while not condition():
        time.sleep(0.01)
"""
_SERVICE = """
service = mtf.PluginService(call_timeout_s=0.2)
service.load()
mtft.register_filesystem("slow", Slow(), service=service)
"""


@pytest.fixture
def run(run_python, tensorflow_environment):
    """Return what a subject prints last, as JSON."""

    def run(code, service=_SERVICE):
        done = run_python(_START + service + code, env=tensorflow_environment, timeout=120)
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_each_call_gives_deadline_exceeded_and_the_session_goes_on(run):
    found = run("""
def write():
    with g.GFile("slow://w", "w") as file:
        file.write("text")

found = {}
for name, call in {
    "stat": lambda: g.stat("slow://r"),
    "list": lambda: g.listdir("slow://r"),
    "open": lambda: g.GFile("slow://r", "rb").read(10),
    "read": lambda: g.GFile("slow://r", "rb").read(10),
    "open writer": write,
    "append": write,
    "close": write,
}.items():
    blocked.add(name)
    found[name] = error_of(call)
    blocked.clear()
    assert g.GFile("slow://r", "rb").read(10) == b"x" * 10
    assert g.stat("slow://r").length == 5 << 20
print(json.dumps(found))
""")
    for name, operation in {
        "stat": "stat 'slow://r'",
        "list": "get_children 'slow://r'",
        "open": "new_random_access_file 'slow://r'",
        "read": "read 'slow://r'",
        "open writer": "new_writable_file 'slow://w'",
        "append": "append 'slow://w'",
        "close": "close 'slow://w'",
    }.items():
        said = f"DeadlineExceededError: {operation}: 'Slow' gave no answer within 0.2 s"
        assert found[name].startswith(said), (name, found[name])


def test_what_was_opened_too_late_is_closed_and_what_is_incomplete_is_discarded(run):
    happened, again, later = run("""
blocked.add("open")
error_of(lambda: g.GFile("slow://r", "rb").read(10))
blocked.clear()
never.set()
wait_for(lambda: "reader closed" in happened)
never.clear()
blocked.add("open writer")
error_of(lambda: g.GFile("slow://w", "w").write("text"))
blocked.clear()
never.set()
wait_for(lambda: "writer discarded" in happened)
never.clear()
happened.clear()

# A buffer larger than what is gathered is appended at once.
file = g.GFile("slow://w", "wb")
blocked.add("append")
error_of(lambda: file.write(b"x" * 600_000))
blocked.clear()
again = error_of(lambda: file.write(b"x" * 600_000))
never.set()
wait_for(lambda: "append" in happened)
later = error_of(file.close)
wait_for(lambda: "writer discarded" in happened)
assert "writer closed" not in happened
print(json.dumps([happened, again, later]))
""")
    assert happened == ["append", "writer discarded"]
    for said in (again, later):
        assert said.startswith("DeadlineExceededError: "), said
        assert "an earlier call of 'Slow' took longer than 0.2 s" in said
        assert "what was written is lost" in said


def test_a_reader_is_of_use_again_when_the_late_call_has_ended():
    class Reader(RandomAccessFile):
        uri = "slow://r"

        def readinto(self, _offset, _buffer):
            return 0

        def close(self):
            pass

    opened = OpenFile(Reader(), "slow_plugin", 0.2)
    opened.check("read")
    opened.leave_call()
    with pytest.raises(
        DeadlineExceededError, match=r"read 'slow://r': .* took longer than 0\.2 s$"
    ):
        opened.check("read")
    opened.end_call()
    opened.check("read")


def test_calls_that_never_end_are_bounded_in_number(run):
    found = run("""
from modular_tf.tensorflow import limited_calls
limited_calls._MOST_LEFT = 3
blocked.add("stat")
found = [error_of(lambda: g.stat("slow://r")).split(":")[0] for _ in range(5)]
never.set()
wait_for(lambda: len(happened) == 3)
blocked.clear()
wait_for(lambda: not error_of(lambda: g.stat("slow://r")).startswith("ResourceExhausted"))
print(json.dumps(found))
""")
    assert found == ["DeadlineExceededError"] * 3 + ["ResourceExhaustedError"] * 2


def test_a_plugin_in_c_is_left_behind_too(run_python, tensorflow_environment):
    code = f"""
service = mtf.PluginService(plugin_paths=[{str(ending_plugin())!r}], call_timeout_s=0.2)
service.load()
mtft.register(["ending"], service=service)
file = g.GFile("ending://h/1", "w")
file.write("text")
print(json.dumps(error_of(file.close)))
"""
    done = run_python(_START + code, env=tensorflow_environment, timeout=120)
    said = json.loads(done.stdout.splitlines()[-1])

    assert said.startswith("DeadlineExceededError: close 'ending://h/1': '"), said
    assert "gave no answer within 0.2 s" in said


def test_the_configuration_names_the_limit_too(run, tmp_path):
    (tmp_path / "c.toml").write_text("call_timeout_s = 0.1\n")
    said = run(
        """
blocked.add("stat")
print(json.dumps(error_of(lambda: g.stat("slow://r"))))
""",
        service="""
import os
os.environ["MODULAR_TF_CONFIG"] = os.getcwd() + "/c.toml"
mtft.register_filesystem("slow", Slow())
""",
    )
    assert "gave no answer within 0.1 s" in said
