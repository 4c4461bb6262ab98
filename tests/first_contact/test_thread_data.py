"""A plugin is tried as the application opens it: in a thread that ends before its use."""

import signal
from pathlib import Path

from modular_tf.first_contact.finding import Limits
from modular_tf.loading.task import Task
from tests.first_contact.conftest import PATIENT, find_of
from tests.fixtures.compiler import compile_object, link_library

AT = "at first contact in a child process"
END = "the end of the thread that opened it"


def _plugin(*defines):
    source = Path(__file__).with_name("thread_data.c")
    return str(link_library("libthread_data.so", [compile_object(source, defines)], ["-lpthread"]))


def _incident(*defines, limits=PATIENT):
    return find_of(Task("x", _plugin(*defines), kinds=("filesystem",)), limits).incident


def test_a_pointer_to_data_of_the_opening_thread_leads_nowhere():
    incident = _incident()

    assert (incident.rule.id, incident.signal) == ("LD-060", signal.SIGABRT)
    assert incident.last_call == "cleanup of scheme 'threaddata'"
    assert incident.message.startswith(
        f"aborted with SIGABRT (signal 6) in cleanup of scheme 'threaddata', {AT}"
    )
    assert "; the thread that opened the plugin had ended before" in incident.message


def test_a_destructor_of_the_threads_data_is_named():
    incident = _incident("AT_THREAD_END=*(volatile int*)8=1")

    assert (incident.rule.id, incident.last_call) == ("LD-060", END)
    assert incident.message.startswith(f"crashed with SIGSEGV (signal 11) in {END}, {AT}")


def test_a_destructor_that_hangs_is_asked_where_it_is():
    incident = _incident("AT_THREAD_END=for(;;)pause()", limits=Limits(seconds=2.0))

    assert (incident.rule.id, incident.last_call) == ("LD-061", END)
    assert any("/libthread_data.so " in frame for frame in incident.backtrace)
