"""Calls into plugins are counted, where a service asks for it."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.errors import DataLossError, FailedPreconditionError, UnknownError
from modular_tf.service.service import PluginService
from modular_tf.service.statistics import OperationStatistics, ServiceStatistics

_PATIENCE_S = 30.0
_FILE = "fixture://host/file"
_NOTHING = OperationStatistics("", "", 0)


def _of(service, plugin):
    return {one.operation: one for one in service.statistics().operations if one.plugin == plugin}


def _more(before, after, operation):
    """Return how many calls and bytes came in between."""
    one, other = before.get(operation, _NOTHING), after[operation]
    return other.calls - one.calls, other.bytes - one.bytes


def test_calls_and_bytes_are_counted(service):
    fs = service.filesystem("ram")
    before = _of(service, "ram_filesystem")

    fs.recursively_create_dir("ram://counted")
    with fs.new_writable_file("ram://counted/file") as file:
        file.append(b"a" * 1000)
        file.append(b"b" * 24)
    assert len(fs.read_file("ram://counted/file")) == 1024
    with fs.new_random_access_file("ram://counted/file") as reader:
        assert len(reader.read(1000, 100)) == 24
    with fs.new_read_only_memory_region_from_file("ram://counted/file") as region:
        assert len(region) == 1024

    after = _of(service, "ram_filesystem")
    assert _more(before, after, "append") == (2, 1024)
    assert _more(before, after, "read") == (2, 1024 + 24)
    assert _more(before, after, "new_random_access_file") == (2, 0)
    assert _more(before, after, "reader cleanup") == (2, 0)
    assert _more(before, after, "data or length of a region") == (1, 1024)
    assert "plugin_memory_free" not in after
    statistics = service.statistics()
    assert isinstance(statistics, ServiceStatistics)
    assert pickle.loads(pickle.dumps(statistics)) == statistics


def test_times_fill_the_buckets_and_statuses_are_counted(service):
    fs = service.filesystem("ram")
    before = _of(service, "ram_filesystem").get("path_exists", _NOTHING)

    assert not fs.path_exists("ram://nothing")
    assert fs.path_exists("ram://")

    after = _of(service, "ram_filesystem")["path_exists"]
    assert after.calls - before.calls == 2
    assert after.failures[Code.NOT_FOUND] - before.failures.get(Code.NOT_FOUND, 0) == 1
    assert sum(after.durations) == after.calls
    shortest = sum(n * (2**i // 2) for i, n in enumerate(after.durations[:-1]))
    longest = sum(n * 2**i for i, n in enumerate(after.durations[:-1]))
    assert shortest <= after.time_ns <= longest


@pytest.fixture
def fixture_service(fixture_plugin):
    """Services that count, with a variant of the fixture plugin alone and a file in it."""
    with ExitStack() as opened:

        def made(variant):
            plugin = fixture_plugin(variant)
            service = PluginService(bundled=False, plugin_paths=[plugin], statistics=True)
            opened.enter_context(service).load()
            with service.filesystem("fixture").new_writable_file(_FILE) as writer:
                writer.append(b"hello")
            return service

        yield made


def test_failures_are_counted_by_their_codes_and_without_bytes(fixture_service):
    for variant in ("code-99", "code-minus-one"):  # no codes: counted as UNKNOWN
        service = fixture_service(variant)
        with pytest.raises(UnknownError):
            service.filesystem("fixture").path_exists(_FILE)
        (counted,) = [one for one in service.statistics().operations if one.failures]
        assert (counted.operation, counted.failures) == ("path_exists", {Code.UNKNOWN: 1})
        own = {one.plugin for one in service.statistics().operations}
        assert own == {counted.plugin}  # of other services there are more

    service = fixture_service("read-error-with-data")
    reader = service.filesystem("fixture").new_random_access_file(_FILE)
    with reader, pytest.raises(DataLossError):
        reader.read(0, 5)
    (counted,) = [one for one in service.statistics().operations if one.failures]
    assert (counted.operation, counted.bytes) == ("read", 0)
    assert counted.failures == {Code.DATA_LOSS: 1}


def test_devices_are_counted(service):
    def allocations():
        counted = _of(service, "host_device")
        return counted["allocate"].calls if "allocate" in counted else 0

    before = allocations()
    with service.device("CPU:0").put(b"abc"):
        assert allocations() > before


def test_calls_under_way_are_seen_from_another_thread(fixture_service):
    service = fixture_service("read-in-company")

    def under_way():
        return sum(one.under_way for one in service.statistics().operations)

    fs = service.filesystem("fixture")
    with fs.new_random_access_file(_FILE) as reader, ThreadPoolExecutor(1) as pool:
        other = pool.submit(reader.read, 0, 5)
        deadline = time.monotonic() + _PATIENCE_S
        while under_way() == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert under_way() == 1
        assert reader.read(0, 5) == other.result() == b"hello"
    assert under_way() == 0


def test_no_call_of_many_threads_is_lost(service):
    fs = service.filesystem("ram")
    before = _of(service, "ram_filesystem").get("path_exists", _NOTHING)

    def ask(_):
        for _ in range(500):
            fs.path_exists("ram://")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))

    after = _of(service, "ram_filesystem")["path_exists"]
    assert after.calls - before.calls == 8 * 500
    assert after.under_way == 0


def test_nothing_is_counted_when_the_last_service_that_counts_is_closed(service):
    with PluginService(statistics=True) as other:
        other.load()
    with PluginService() as silent:
        silent.load()
        with pytest.raises(FailedPreconditionError, match=r"PluginService\(statistics=True\)"):
            silent.statistics()
        fs = silent.filesystem("ram")
        fs.path_exists("ram://")
        while_open = _of(service, "ram_filesystem")["path_exists"].calls
        service.close()
        fs.path_exists("ram://")
    assert while_open == _of(service, "ram_filesystem")["path_exists"].calls > 0


def test_a_forked_child_begins_with_nothing(run_forked):
    code = """
        import os
        import modular_tf as mtf

        def calls():
            counted = service.statistics().operations
            return [one.calls for one in counted if one.operation == "path_exists"]

        with mtf.PluginService(statistics=True) as service:
            service.load()
            fs = service.filesystem("ram")
            for _ in range(7):
                fs.path_exists("ram://")
            if os.fork() == 0:
                print(calls(), fs.path_exists("ram://"), calls(), flush=True)
                os._exit(0)
            os.wait()
            print(calls())
    """
    assert run_forked(code).stdout == "[] True [1]\n[7]\n"
