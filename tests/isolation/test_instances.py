"""Instances from their first call to their end: shared ones end when idle, and are bounded."""

from __future__ import annotations

import gc
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from modular_tf.redaction import HIDDEN, redacted
from modular_tf.service import instances as instances_module
from modular_tf.service.instances import Instances
from tests.isolation.conftest import descriptors, isolated, wait_until

_RAM = "ram_filesystem"
_service = partial(isolated, isolation="none")


@pytest.fixture
def service():
    with _service() as made:
        yield made


def _named(service, name, **environment):
    return service.instance("ram", name=name, environment=environment)


def _tenant(service, number):
    return service.shared_instance("ram", {"TENANT": str(number)})


def _is_empty(filesystem):
    return not filesystem.path_exists("ram://x")


def _running(service):
    return sum(bool(worker.pid) for worker in service.workers())


# ---- Named instances ----


def test_an_instance_is_beside_the_plugin_and_gives_its_name_back(service):
    secret = "hush-hush/42"
    one = _named(service, "one", X_TOKEN=secret, URL="x.org")
    one.create_dir("ram://of-one")
    assert one.get_children("ram://") == ["of-one"]
    assert "of-one" not in service.filesystem("ram").get_children("ram://")
    assert service.instances() == {"one": _RAM}
    (record,) = service.workers()
    assert record.instance == "one"
    assert b"hush" not in Path(f"/proc/{record.pid}/environ").read_bytes()
    assert redacted(f"<{secret}> at x.org") == f"<{HIDDEN}> at x.org"
    assert redacted(f"a{secret}b") == f"a{secret}b"
    with pytest.raises(AlreadyExistsError, match="choose another name"):
        _named(service, "one")

    one.close()
    assert (service.instances(), service.workers()) == ({}, [])
    again = _named(service, "one")
    assert again.get_children("ram://") == []
    (record,) = service.workers()
    service.close()
    for use in (partial(again.path_exists, "ram://x"), partial(_named, service, "late")):
        with pytest.raises(ClosedError):
            use()
    assert not Path(f"/proc/{record.pid}").exists()
    del one, again
    gc.collect()
    assert redacted(secret) == secret  # while its instance lived, it was hidden


def test_names_variables_and_schemes_are_checked(service):
    for name in ("", "a/b", "-", "x" * 65):
        with pytest.raises(InvalidArgumentError, match="letters"):
            _named(service, name)
    for environment in ({"A=B": "x"}, {"": "x"}, {"A": 1}, {"A": "hush\0"}):
        with pytest.raises(InvalidArgumentError) as caught:
            service.instance("ram", name="two", environment=environment)
        assert "hush" not in str(caught.value)
    with pytest.raises(UnimplementedError):
        service.instance("nobodys", name="two", environment={})
    service.register_filesystem("mine", SimpleNamespace(path_exists=lambda _: True))
    with pytest.raises(InvalidArgumentError, match="Python object"):
        service.instance("mine", name="one", environment={})


_SHOWN_VARIABLES = """
    import os
    from pathlib import Path
    from modular_tf.service.service import PluginService
    from tests.isolation.conftest import record_of

    with PluginService() as service:
        service.load()
        made = service.instance("ram", name="one", environment={"A_KEY": None})
        print(made.path_exists("ram://x"))
        process = record_of(service, "ram_filesystem").pid
        while process != os.getpid():  # its watcher too, and what forks those
            print(process, Path(f"/proc/{process}/environ").read_text().strip("\\0"))
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
"""


def test_no_process_of_an_instance_shows_the_variables_that_the_application_began_with(run_python):
    """The system shows them of each process, and of those that it forks, whatever they unset."""
    child = run_python(_SHOWN_VARIABLES, env={"A_KEY": "very-secret"})

    is_there, *processes = child.stdout.splitlines()
    assert is_there == "False"
    assert len(processes) >= 2
    assert "very-secret" not in child.stdout


# ---- Shared instances ----


def test_equal_environments_share_an_instance_until_it_is_closed(service):
    shared = partial(service.shared_instance, "ram")
    one = shared({"A": "1"})
    assert shared({"A": "1"}) is one
    assert shared({"A": None}) is not one
    assert shared({"A": "2"}) is not one
    assert len(service.instances()) == 3

    one.close()
    assert shared({"A": "1"}) is not one
    assert _is_empty(shared({"A": "1"}))


def test_the_process_of_a_shared_instance_ends_when_it_is_idle():
    with _service(instance_idle_s=0.5) as service:
        held = _tenant(service, 1)
        assert _is_empty(held)
        (worker,) = service.workers()
        before = len(descriptors())
        wait_until(lambda: service.instances() == {})

        wait_until(lambda: not Path(f"/proc/{worker.pid}/fd/0").exists())
        wait_until(lambda: len(descriptors()) < before)
        assert _is_empty(held)  # who has it may go on, in a new process
        wait_until(lambda: len(service.instances()) == 1)
        (again,) = service.workers()
        assert again.restarts == 0  # no fault
        assert _tenant(service, 1) is held


def test_named_instances_and_open_files_keep_their_processes():
    with _service(instance_idle_s=0.3) as service:
        named = _named(service, "mine")
        named.create_dir("ram://stored")
        busy, idle = _tenant(service, 1), _tenant(service, 2)
        with busy.new_writable_file("ram://file") as file:
            file.append(b"begun ")
            kept = {worker.instance for worker in service.workers() if worker.calls}
            assert len(kept) == 2
            del idle
            wait_until(lambda: set(service.instances()) == kept)
            time.sleep(0.6)  # some more looks
            assert set(service.instances()) == kept
            file.append(b"and ended")
        assert busy.read_file("ram://file") == b"begun and ended"
        wait_until(lambda: list(service.instances()) == ["mine"])
        assert named.path_exists("ram://stored")


def test_more_tenants_than_may_run_make_room_for_each_other():
    with _service(most_instances=2) as service:
        opened = []
        for number in range(6):
            assert _is_empty(_tenant(service, number))
            assert len(service.instances()) <= 2
            assert _running(service) <= 2
            opened.append(len(descriptors()))
        assert max(opened[2:]) == opened[1]
        names = service.instances()
        _tenant(service, 5)  # it runs
        assert service.instances() == names


def test_an_instance_that_is_used_makes_no_room():
    with _service(most_instances=1) as service:
        rested = _tenant(service, 1)
        assert _is_empty(rested)
        other = _tenant(service, 2)
        assert _is_empty(other)
        for one in (rested, other, rested):  # users of those that rest start no more than may run
            assert _is_empty(one)
            assert (_running(service), len(service.instances())) == (1, 1)
        file = rested.new_writable_file("ram://file")
        with pytest.raises(ResourceExhaustedError, match="`most_instances`"):
            _tenant(service, 3)
        with pytest.raises(UnavailableError, match="`most_instances`"):
            other.path_exists("ram://x")
        file.append(b"whole")
        file.close()

        assert _is_empty(other)
        assert not _tenant(service, 3).path_exists("ram://file")
        assert {worker.restarts for worker in service.workers()} == {0}


def test_an_instance_that_is_being_made_takes_its_room(monkeypatch):
    begun, goes_on = threading.Event(), threading.Event()
    opened = instances_module._opened

    def open_late(*given):
        begun.set()
        assert goes_on.wait(30)
        return opened(*given)

    with _service(most_instances=1) as service:
        monkeypatch.setattr(instances_module, "_opened", open_late)
        maker = threading.Thread(target=_tenant, args=(service, 1))
        maker.start()
        assert begun.wait(30)
        try:
            with pytest.raises(ResourceExhaustedError, match="`most_instances`"):
                _tenant(service, 2)
        finally:
            goes_on.set()
            maker.join()


def test_of_instances_that_start_again_together_as_many_run_as_may(monkeypatch):
    """Each counted the other as one that runs, and no call succeeded."""
    starting = threading.Barrier(2)

    def end_excess_for(self, name):
        starting.wait(30)
        try:
            made_room_again(self, name)
        finally:
            starting.wait(30)  # each call is under way until both have asked

    def exists(tenant):
        try:
            return tenant.path_exists("ram://x")
        except UnavailableError:
            return True

    made_room_again = Instances.end_excess_for
    with _service(most_instances=1, instance_idle_s=0.1) as service:
        tenants = [_tenant(service, number) for number in range(2)]
        wait_until(lambda: not service.instances())
        monkeypatch.setattr(Instances, "end_excess_for", end_excess_for)
        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(exists, tenants)) == [False, True]


def test_a_replaced_plugin_gets_an_instance_of_its_own(fixture_plugin, tmp_path):
    library = Path(shutil.copy(fixture_plugin(), tmp_path / "libmine.so"))
    with _service(library, bundled=False) as service:
        shared = partial(service.shared_instance, "fixture", {"TENANT": "1"})
        old = shared()
        assert old.path_exists("fixture://h/")
        assert shared() is old
        replaced = tmp_path / "new"
        replaced.write_bytes(library.read_bytes() + bytes(64))
        replaced.rename(library)
        service.refresh()
        assert old.path_exists("fixture://h/")
        assert shared() is not old
        assert shared().path_exists("fixture://h/")


def test_tenants_leave_nothing_behind(run_forked):
    """In a process of its own: what is counted is its own alone."""
    run_forked(
        """
        import gc
        from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
        from modular_tf.isolation.worker import Worker
        from modular_tf.service.configuration import Config
        from modular_tf.service.service import PluginService
        from tests.isolation.conftest import wait_until

        with PluginService(config=Config(most_instances=3, instance_idle_s=0.2)) as service:
            service.load()

            def use(number):
                tenant = {"TENANT": str(number), "AWS_SECRET_ACCESS_KEY": f"secret of {number}"}
                service.shared_instance("ram", tenant).path_exists("ram://x")

            def settled():
                wait_until(lambda: not service.instances())
                gc.collect()
                kinds = [type(one) for one in gc.get_objects()]
                return kinds.count(PluginFilesystem), kinds.count(Worker)

            use(0)
            before = settled()
            for number in range(12):
                use(number)
            assert settled() == before, (settled(), before)
        """,
        timeout=90,
    )
