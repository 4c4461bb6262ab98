"""What the process that follows has to serve, and interrupts while the end of one is told."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.errors import UnavailableError
from modular_tf.filesystem.configuration import Option
from modular_tf.isolation.worker import Worker
from modular_tf.native.preloading import preloaded, with_preloaded
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library
from tests.isolation.hostile_plugin import hostile_plugin

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner
    from tests.fixtures.compiled import FilesystemPluginBuilder

_KILLED_BEFORE_IT_HAS_READ_A_REQUEST = """
    import ctypes
    import os
    import signal
    import sys
    import threading
    import time
    import modular_tf as mtf

    early = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[1]), "errors_kept_back")
    with mtf.PluginService(isolation="process") as service:
        service.load()
        ram = service.filesystem("ram")
        ram.path_exists("ram://")

        def state():
            return next(found for found in service.workers() if found.plugin == "ram_filesystem")

        while early.value == 0:  # the process may end by itself, stopped, before it is killed
            before = state()
            os.kill(before.pid, signal.SIGSTOP)

            def kill():
                while not state().in_flight:
                    time.sleep(0.01)
                os.kill(before.pid, signal.SIGKILL)

            killer = threading.Thread(target=kill)
            killer.start()
            print(ram.path_exists("ram://"), state().pid != before.pid)
            killer.join()
"""


def _service_with(library: Path, call_timeout_s: float | None = None) -> PluginService:
    config = Config(isolation="process", most_worker_faults=0, call_timeout_s=call_timeout_s)
    service = PluginService(plugin_paths=[library], bundled=False, config=config)
    service.load()
    return service


def _end_worker(service: PluginService) -> None:
    (pid,) = [found.pid for found in service.workers()]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/fd/0").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_plugin_that_is_gone_for_a_while_is_missed_and_served_again(
    fixture_plugin: FilesystemPluginBuilder, tmp_path: Path
) -> None:
    library = Path(shutil.copy(fixture_plugin(), tmp_path))
    aside = tmp_path / "aside"
    with _service_with(library) as service:
        fixture = service.filesystem("fixture")
        fixture.set_filesystem_configuration_option(Option("block_size", (512,)))
        library.rename(aside)
        _end_worker(service)

        with pytest.raises(UnavailableError, match=r"not serve 'fixture' any more: .*No such file"):
            fixture.path_exists("fixture://h/")
        aside.rename(library)
        assert fixture.get_filesystem_configuration_option("block_size").values == (512,)


def test_a_process_that_serves_another_scheme_gets_no_call(
    fixture_plugin: FilesystemPluginBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _service_with(fixture_plugin("two-schemes")) as service:
        first, second = service.filesystem("fixture"), service.filesystem("fixture2")
        worker = first.tables.place.worker  # type: ignore[attr-defined]
        environment = {**worker._job.environment, "FIXTURE_SCHEME_NOW": "other"}
        job = worker._job._replace(environment=environment)
        monkeypatch.setattr(worker, "_job", job)
        _end_worker(service)

        for fs in (first, second):
            with pytest.raises(UnavailableError, match="does not serve 'fixture' any more"):
                fs.path_exists(f"{fs.scheme}://h/")
        monkeypatch.undo()
        assert first.path_exists("fixture://h/")


def test_schemes_keep_their_places_where_the_next_process_serves_more(
    fixture_plugin: FilesystemPluginBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the store of the first scheme was down when the plugin was loaded."""
    with _service_with(fixture_plugin("two-schemes")) as service:
        first = service.filesystem("fixture")
        worker = first.tables.place.worker  # type: ignore[attr-defined]
        offer = worker._offer
        found = offer.finding._replace(offer=offer.finding.offer._replace(schemes=("fixture2",)))
        monkeypatch.setattr(worker, "_offer", offer._replace(finding=found))
        _end_worker(service)

        assert first.path_exists("fixture://h/")  # a call of the only place that there is
        assert worker._process.offer.schemes == ("fixture2",)


def test_an_interrupt_while_the_end_of_a_late_close_is_told_is_raised_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ended(worker: Worker, run: int, *, is_late: bool) -> str:
        if is_late:
            signal.raise_signal(signal.SIGINT)
        return told(worker, run, is_late=is_late)

    told = Worker.ended
    with _service_with(hostile_plugin(), call_timeout_s=1.0) as service:
        hostile = service.filesystem("hostile")
        hostile.new_writable_file("hostile://h/data").close()
        reader = hostile.new_random_access_file("hostile://h/deed/release/hang")
        monkeypatch.setattr(Worker, "ended", ended)

        with pytest.raises(KeyboardInterrupt):
            reader.close()
        assert hostile.get_children("hostile://h/") == []


def test_a_request_that_was_not_read_is_made_again_where_the_end_comes_before_its_error(
    run_python: PythonRunner,
) -> None:
    source = Path(__file__).with_name("early_end.c")
    library = link_library("libearly_end.so", [compile_object(source)], ["-ldl"])
    environment = with_preloaded(os.environ, (*preloaded(os.environ), str(library)))
    child = run_python(_KILLED_BEFORE_IT_HAS_READ_A_REQUEST, library, env=environment)
    assert set(child.stdout.splitlines()) == {"True True"}
