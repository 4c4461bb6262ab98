"""What plugins log becomes events, whoever they are and whenever they do."""

import re
import signal
from pathlib import Path

import pytest

from tests.log_output.conftest import events_in, messages_in


def test_messages_become_events_with_all_that_is_known(run_listening, talking_plugin):
    code = """
listen()
import threading
print(threading.get_native_id())
with service() as made:
    tell(made, "log", 1)
    tell(made, "thread", 1000)
"""
    child = run_listening(code)
    thread = int(child.stdout)
    events = [e for e in events_in(child.stderr) if e["event"] == "plugin.message"]

    assert [e["message"] for e in events[:2]] == ["mapped", "initialised"]
    (said,) = (e for e in events if e["message"].startswith("said"))
    assert said.pop("timestamp").endswith("Z")
    assert said.pop("written") > 1_700_000_000
    assert said == {
        "level": "warning",
        "event": "plugin.message",
        "logger": "modular_tf.plugin_messages",
        "plugin": "talking",
        "message": "said\x1b \udcff 1",
        "severity": "warning",
        "vlog": None,
        "source": None,
        "line": None,
        "library": str(talking_plugin),
        "thread": thread,
    }

    # Those of a thread of the plugin's own name that thread.
    lines = [e for e in events if "of a thread" in e["message"]]
    assert [e["message"] for e in lines] == [f"line {i} of a thread" for i in range(1000)]
    assert {e["plugin"] for e in lines} == {"talking"}
    assert len({e["thread"] for e in lines}) == 1
    assert lines[0]["thread"] != thread


def test_a_plugin_that_is_mapped_from_a_copy_is_named_by_its_file(
    run_listening, talking_tensorflow_plugin
):
    code = """
listen()
service().close()
"""
    child = run_listening(code, plugin=talking_tensorflow_plugin)
    events = [e for e in events_in(child.stderr) if e["event"] == "plugin.message"]

    assert {e["plugin"] for e in events} == {"talking_of_tensorflow"}
    # While it is being mapped, only the name of the copy is known.
    assert {Path(e["library"]).name for e in events} == {talking_tensorflow_plugin.name}
    assert events[-1]["library"] == str(talking_tensorflow_plugin)


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", {"debug", "info", "warning", "error"}),
        ("error", {"error"}),
    ],
)
def test_the_level_chooses(run_listening, level, shown):
    code = """
listen(level=sys.argv[2])
with service() as made:
    tell(made, "vlog", 2)
    for level in (0, 1, 2, 7):
        tell(made, "log", level)
    tell(made, "stream", 7)
"""
    child = run_listening(code, level, env={"TF_CPP_MAX_VLOG_LEVEL": "2"})
    events = [e for e in events_in(child.stderr) if e["event"] == "plugin.message"]

    assert {e["level"] for e in events} == shown
    assert [e["severity"] for e in events if e["source"] == "stream.cc"] == ["error"]
    assert [e["vlog"] for e in events if e["severity"] == "vlog"] == [2] * ("debug" in shown)


def test_while_nobody_listens_plugins_write_as_tensorflows_do_and_there_is_no_thread(run_listening):
    code = """
import threading
made = service()
assert threading.active_count() == 1, threading.enumerate()
listen()
tell(made, "log", 1)
mtf.configure_logging("off")
tell(made, "log", 2)
listen()
tell(made, "log", 1)
mtf.configure_logging("off")
assert threading.active_count() == 1, threading.enumerate()
os._exit(0)
"""
    *_, before, said, raw, again = run_listening(code).stderr.splitlines()

    assert "I plugin] initialised" in before
    assert "{" not in before + raw
    assert messages_in(f"{said}\n{again}") == ["said\x1b \udcff 1"] * 2
    assert "E plugin] said" in raw


def test_a_burst_drops_what_has_no_room_and_says_so(run_listening):
    """Nothing is fetched during the burst, so exactly three quarters of the room fill up."""
    code = """
import logging, threading
go_on = threading.Event()

class Slow(logging.Handler):
    def emit(self, record):
        if record.event["event"] == "plugin.message":
            go_on.wait()
        said.append(record.event)

said = []
logging.getLogger("modular_tf.plugin_messages").addHandler(Slow())
listen("records")
with service() as made:
    tell(made, "burst", 100_000)
    go_on.set()
    mtf.configure_logging("off")
from modular_tf.native.plugin_messages import MOST_WAITING
lines = [e["message"] for e in said if e["event"] == "plugin.message"]
dropped = [e["count"] for e in said if e["event"] == "plugin.messages_dropped"]
kept = [line for line in lines if "of a burst" in line]
assert kept == [f"line {i} of a burst" for i in range(len(kept))], kept[:3]
assert "the burst is over" in lines
assert MOST_WAITING // 4 * 3 - 3 <= len(kept) <= MOST_WAITING // 4 * 3, len(kept)
assert sum(dropped) == 100_000 - len(kept), (dropped, len(kept))
"""
    run_listening(code)


# A handler that blocks for good.
STUCK = """
import logging, threading
class Stuck(logging.Handler):
    def handle(self, record):
        threading.Event().wait()
logging.getLogger("modular_tf.plugin_messages").addHandler(Stuck())
listen("records")
made = service()
"""


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ('tell(made, "burst", 1000)', 0, ["W plugin] the burst is over"]),
        (
            'tell(made, "log", 1); tell(made, "fatal")',
            -signal.SIGABRT,
            ["W plugin] said", "F plugin] the end"],
        ),
    ],
    ids=["at the end", "fatal"],
)
def test_neither_a_plugin_nor_the_end_waits_for_a_stuck_listener(run_listening, code, status, said):
    child = run_listening(STUCK + code, status=status)

    assert all(line in child.stderr for line in said)


@pytest.mark.parametrize(
    ("words", "status", "last"),
    [
        ([], 0, ['"the burst is over"', '"cleaned up"', "I plugin] unmapped"]),
        (["fatal"], -signal.SIGABRT, ['"the end"', '"severity": "fatal"', '"level": "critical"']),
        (["exit"], 0, ["leaving"]),
    ],
)
def test_nothing_is_lost_at_the_end(run_listening, words, status, last):
    """Neither what was queued, nor what cleanups say, nor what destructors say after Python."""
    code = """
listen()
made = service()
tell(made, "burst", 100)
for word in sys.argv[2:]:
    tell(made, word)
"""
    said = run_listening(code, *words, status=status).stderr

    lines = [int(number) for number in re.findall(r"line (\d+) of a burst", said)]
    assert sorted(lines) == list(range(100))
    assert all(text in said for text in last)


def test_a_line_after_the_interpreter_does_no_harm(run_listening):
    """The thread logs while a destructor of C keeps the process alive."""
    code = """
import ctypes, atexit
listen()
made = service()
tell(made, "after", 200)
library = ctypes.CDLL(None)
library.on_exit(ctypes.cast(library.sleep, ctypes.c_void_p), None)
sys.exit(1)
"""
    child = run_listening(code, status=1)

    assert "W plugin] late" in child.stderr


def test_forked_children_are_heard_and_repeat_nothing(run_listening):
    """That of `multiprocessing` too, which runs none of `atexit`'s functions."""
    code = """
import multiprocessing, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
listen()
made = service()
tell(made, "burst", 100)
child = os.fork()
if child == 0:
    tell(made, "log", 1)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
tell(made, "log", 2)
worker = multiprocessing.get_context("fork").Process(target=tell, args=(made, "burst", 3000))
worker.start()
worker.join()
assert worker.exitcode == 0
"""
    messages = messages_in(run_listening(code).stderr)

    assert messages.count("line 0 of a burst") == 2
    assert messages.count("line 2999 of a burst") == 1
    assert messages.count("the burst is over") == 2
    assert messages.count("said\x1b \udcff 1") == 1
    assert messages.count("said\x1b \udcff 2") == 1
    assert messages.count("initialised") == 1


def test_a_fork_does_not_wait_for_a_thread_that_waits_for_its_lock_of_logging(run_listening):
    """A handler is busy with the first message until `go`, then takes a lock of `logging`."""
    code = """
from modular_tf.service import log_output  # before `logging`, as where nobody else imports that
import logging, threading
log_output._TIMEOUT_S = 20
entered, go = threading.Event(), threading.Event()
class Busy(logging.Handler):
    def emit(self, record):
        entered.set()
        go.wait(30)
        logging.getLogger("another")
logging.getLogger("modular_tf.plugin_messages").addHandler(Busy())
listen("records")
made = service()
entered.wait(30)
join, left = threading.Thread.join, []
def join_and_note(thread, timeout=None):
    go.set()
    join(thread, timeout)
    left.append(thread.is_alive())
threading.Thread.join = join_and_note
child = os.fork()
if child == 0:
    tell(made, "log", 1)  # no child hangs on a lock that nobody will release
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
threading.Thread.join = join
assert left == [False], left
"""
    run_listening(code)
