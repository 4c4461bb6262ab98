"""What the process that follows has to serve, and requests that the one before has not read."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from modular_tf.errors import UnavailableError
from modular_tf.filesystem.configuration import Option
from modular_tf.isolation.worker import Worker
from modular_tf.native.preloading import preloaded, with_preloaded
from tests.fixtures.compiler import compile_object, link_library
from tests.isolation.conftest import end_worker, isolated
from tests.isolation.hostile_plugin import hostile_plugin

_KILLED_BEFORE_IT_HAS_READ_A_REQUEST = """
    import ctypes
    import os
    import signal
    import sys
    import modular_tf as mtf
    from tests.isolation.conftest import during_a_call, pid_of, stop_worker

    early = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[1]), "errors_kept_back")
    with mtf.PluginService(isolation="process") as service:
        service.load()
        ram = service.filesystem("ram")
        ram.path_exists("ram://")
        while early.value == 0:  # the process may end by itself, stopped, before it is killed
            pid = stop_worker(service, "ram_filesystem")
            with during_a_call(service, lambda: os.kill(pid, signal.SIGKILL)):
                print(ram.path_exists("ram://"), pid_of(service, "ram_filesystem") != pid)
"""


def _end(service):
    (record,) = service.workers()
    end_worker(service, record.plugin)


def test_a_plugin_that_is_gone_for_a_while_is_missed_and_served_again(fixture_plugin, tmp_path):
    library = Path(shutil.copy(fixture_plugin(), tmp_path))
    aside = tmp_path / "aside"
    with isolated(library, bundled=False) as service:
        fixture = service.filesystem("fixture")
        fixture.set_filesystem_configuration_option(Option("block_size", (512,)))
        library.rename(aside)
        _end(service)

        with pytest.raises(UnavailableError, match=r"not serve 'fixture' any more: .*No such file"):
            fixture.path_exists("fixture://h/")
        aside.rename(library)
        assert fixture.get_filesystem_configuration_option("block_size").values == (512,)


def test_a_process_that_serves_another_scheme_gets_no_call(fixture_plugin, monkeypatch):
    with isolated(fixture_plugin("two-schemes"), bundled=False) as service:
        first, second = service.filesystem("fixture"), service.filesystem("fixture2")
        worker = first.tables.place.worker
        environment = {**worker._job.environment, "FIXTURE_SCHEME_NOW": "other"}
        monkeypatch.setattr(worker, "_job", worker._job._replace(environment=environment))
        _end(service)

        for fs in (first, second):
            with pytest.raises(UnavailableError, match="does not serve 'fixture' any more"):
                fs.path_exists(f"{fs.scheme}://h/")
        monkeypatch.undo()
        assert first.path_exists("fixture://h/")


def test_an_interrupt_while_the_end_of_a_late_close_is_reported_is_raised_by_it(monkeypatch):
    def ended(worker, run, *, is_late):
        if is_late:
            signal.raise_signal(signal.SIGINT)
        return report(worker, run, is_late=is_late)

    report = Worker.ended
    with isolated(hostile_plugin(), bundled=False, call_timeout_s=1.0) as service:
        hostile = service.filesystem("hostile")
        hostile.new_writable_file("hostile://h/data").close()
        reader = hostile.new_random_access_file("hostile://h/deed/release/hang")
        monkeypatch.setattr(Worker, "ended", ended)

        with pytest.raises(KeyboardInterrupt):
            reader.close()
        monkeypatch.undo()
        assert hostile.get_children("hostile://h/") == []


def test_a_request_that_was_not_read_is_made_again_where_the_end_comes_before_its_error(run_python):
    source = Path(__file__).with_name("early_end.c")
    library = link_library("libearly_end.so", [compile_object(source)], ["-ldl"])
    environment = with_preloaded(os.environ, (*preloaded(os.environ), str(library)))
    child = run_python(_KILLED_BEFORE_IT_HAS_READ_A_REQUEST, library, env=environment)
    assert set(child.stdout.splitlines()) == {"True True"}
