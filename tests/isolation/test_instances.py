"""Instances from their first call to their end: shared ones end when idle, and are bounded."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

import pytest

from modular_tf.errors import (
    AlreadyExistsError,
    ConfigError,
    ResourceExhaustedError,
    UnavailableError,
)
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.isolation import worker as worker_module
from modular_tf.service import instances as instances_module
from modular_tf.service.configuration import Config, load_config
from modular_tf.service.instances import Instances
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import interrupt, points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.filesystem.filesystem import Filesystem
    from tests.fixtures.children import PythonRunner
    from tests.fixtures.compiled import FilesystemPluginBuilder

_INTERRUPTS_IN_FINALIZERS = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


@contextmanager
def _service(**settings: object) -> Iterator[PluginService]:
    with PluginService(config=Config(**settings)) as made:  # type: ignore[arg-type]
        made.load()
        yield made


def _tenant(service: PluginService, number: int) -> Filesystem:
    return service.shared_instance("ram", {"TENANT": str(number)})


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_closed_instance_gives_its_name_back() -> None:
    with _service() as service:
        one = service.instance("ram", name="one", environment={})
        one.create_dir("ram://of-the-first")
        with pytest.raises(AlreadyExistsError):
            service.instance("ram", name="one", environment={})
        one.close()

        assert service.instances() == {}
        assert service.workers() == []
        again = service.instance("ram", name="one", environment={})
        assert again.get_children("ram://") == []
        assert list(service.instances()) == ["one"]


def test_no_process_of_an_instance_shows_the_variables_that_it_lacks(
    run_python: PythonRunner,
) -> None:
    """The system shows the environment with which the first of them was started."""
    child = run_python(
        """
        import json
        from pathlib import Path
        from modular_tf.service.service import PluginService

        def below(pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                for child in (task / "children").read_text().split():
                    yield child
                    yield from below(child)

        def shown(pid):
            try:
                return Path(f"/proc/{pid}/environ").read_text()
            except ProcessLookupError:  # it has ended, and its parent has not noticed
                return ""

        with PluginService() as service:
            service.load()
            one = service.instance("ram", name="one", environment={"A_KEY": None, "OF_ONE": "1"})
            assert not one.path_exists("ram://x")
            processes = list(below("self"))
            print(json.dumps([shown(pid) for pid in processes]))
        """,
        env={"A_KEY": "very-secret"},
    )

    shown = json.loads(child.stdout)
    assert len(shown) >= 2, "a zygote and a worker"
    assert [text.strip("\0") for text in shown] == [""] * len(shown)


def test_an_application_may_have_a_variable_without_a_name(run_python: PythonRunner) -> None:
    """Programs pass such a variable on, but none can set or unset it."""
    child = run_python(
        """
        from modular_tf.service.service import PluginService

        with PluginService() as service:
            service.load()
            one = service.instance("ram", name="one", environment={"OF_ONE": "1"})
            print(one.path_exists("ram://x"))
        """,
        env={"": "nameless"},
    )

    assert child.stdout == "False\n"


def test_a_shared_instance_that_was_closed_is_made_anew() -> None:
    with _service() as service:
        closed = _tenant(service, 1)
        closed.close()

        assert _tenant(service, 1) is not closed
        assert not _tenant(service, 1).path_exists("ram://x")


def test_the_process_of_a_shared_instance_ends_when_it_is_idle() -> None:
    with _service(instance_idle_s=0.2) as service:
        held = _tenant(service, 1)
        assert not held.path_exists("ram://x")
        (worker,) = service.workers()
        before = _descriptors()
        _wait_until(lambda: service.instances() == {})

        _wait_until(lambda: not Path(f"/proc/{worker.pid}/fd/0").exists())
        _wait_until(lambda: _descriptors() < before)
        assert not held.path_exists("ram://x")  # who has it may go on, in a new process
        _wait_until(lambda: len(service.instances()) == 1)
        (again,) = service.workers()
        assert again.restarts == 0  # no fault
        assert _tenant(service, 1) is held


def test_named_instances_are_their_users() -> None:
    with _service(instance_idle_s=0.1) as service:
        named = service.instance("ram", name="mine", environment={})
        named.create_dir("ram://kept")
        _tenant(service, 1)
        _wait_until(lambda: list(service.instances()) == ["mine"])

        assert named.path_exists("ram://kept")


def test_an_open_file_keeps_the_process() -> None:
    with _service(instance_idle_s=0.1) as service:
        busy, idle = _tenant(service, 1), _tenant(service, 2)
        with busy.new_writable_file("ram://file") as file:
            file.append(b"begun ")
            name = next(w.instance for w in service.workers() if w.calls)
            del idle
            _wait_until(lambda: list(service.instances()) == [name])
            time.sleep(0.3)  # some more looks
            assert list(service.instances()) == [name]
            file.append(b"and ended")
        assert busy.read_file("ram://file") == b"begun and ended"


def test_more_tenants_than_may_run_make_room_for_each_other() -> None:
    with _service(most_instances=2) as service:
        descriptors = []
        for number in range(6):
            assert not _tenant(service, number).path_exists("ram://x")
            assert len(service.instances()) <= 2
            assert sum(bool(worker.pid) for worker in service.workers()) <= 2
            descriptors.append(_descriptors())
        assert max(descriptors[2:]) == descriptors[1]
        names = service.instances()
        _tenant(service, 5)  # it runs
        assert service.instances() == names


def test_an_instance_that_is_used_makes_no_room() -> None:
    with _service(most_instances=1) as service:
        file = _tenant(service, 1).new_writable_file("ram://file")
        with pytest.raises(ResourceExhaustedError, match="`most_instances`"):
            _tenant(service, 2)
        file.append(b"whole")
        file.close()

        assert not _tenant(service, 2).path_exists("ram://file")


def test_calls_go_on_while_processes_end_and_start() -> None:
    with _service(most_instances=6, instance_idle_s=0.05) as service:

        def use(seed: int) -> int:
            dice = random.Random(seed)
            for _ in range(25):
                found = _tenant(service, dice.randrange(9))
                time.sleep(dice.choice((0, 0, 0.06)))
                assert not found.path_exists("ram://x")
            return seed

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(use, range(4))) == [0, 1, 2, 3]
        assert all(not worker.restarts for worker in service.workers())


class _Core:
    """The native core, one of whose functions is watched."""

    def __init__(self, core: object, name: str, after: Callable[[], None]) -> None:
        self._core, self._name, self._after = core, name, after

    def __getattr__(self, name: str) -> object:
        found = getattr(self._core, name)
        if name != self._name:
            return found

        def call(*arguments: object) -> object:
            result = found(*arguments)
            self._after()
            return result

        return call


def test_a_call_that_follows_the_end_at_once_is_told_of_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with _service(most_instances=1) as service:
        held = _tenant(service, 1)
        assert not held.path_exists("ram://x")
        follower = threading.Thread(target=held.path_exists, args=("ram://x",))

        def follow() -> None:
            follower.start()
            follower.join(0.5)

        core = _Core(worker_module.lib, "mtf_worker_rest", follow)
        monkeypatch.setattr(worker_module, "lib", core)
        _tenant(service, 2)
        monkeypatch.undo()
        follower.join()

        assert {worker.restarts for worker in service.workers()} == {0}


def test_an_interrupt_while_room_is_made_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with _service(most_instances=1) as service:
        _tenant(service, 1)
        monkeypatch.setattr(worker_module, "_end_left", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _tenant(service, 2)
        monkeypatch.undo()

        assert not _tenant(service, 3).path_exists("ram://x")


@_INTERRUPTS_IN_FINALIZERS
def test_an_interrupted_instance_leaves_its_name_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with _service() as service:
        spare = service.instance("ram", name="spare", environment={})
        opened: list[SimpleNamespace] = []

        def open_another(*_: object) -> SimpleNamespace:
            opened.append(made := SimpleNamespace(plugin="ram_filesystem", is_open=True))
            made.close = lambda **_: setattr(made, "is_open", False)
            return made

        def is_open(filesystem: SimpleNamespace) -> bool:
            return filesystem is spare or filesystem.is_open

        monkeypatch.setattr(instances_module, "_opened", open_another)
        monkeypatch.setattr(instances_module, "_is_open", is_open)
        add = partial(service.instance, "ram", name="one", environment={})
        for point in points():
            returned: list[Filesystem] = []  # also where a finalizer was interrupted
            more = interrupt(lambda: returned.append(add()), point=point)  # noqa: B023
            for made in returned:
                made.close()
            assert not any(made.is_open for made in opened), point
            if not more:
                break
        assert point > 10
        add().close()
        assert list(service.instances()) == ["spare"]
        monkeypatch.undo()
        service._instances._named.pop("one")  # a stand-in


@_INTERRUPTS_IN_FINALIZERS
def test_an_interrupt_takes_no_room_of_shared_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    with _service(most_instances=1) as service:
        monkeypatch.setattr(instances_module, "_opened", _refuse)
        for point in points():
            more = False
            with suppress(UnavailableError):
                more = interrupt(partial(_tenant, service, point), point=point)
            if not more:
                break
        assert point > 10
        monkeypatch.undo()
        assert not _tenant(service, 1).path_exists("ram://x")


def _refuse(*_: object) -> NoReturn:
    raise UnavailableError("it cannot be opened")


def test_users_of_instances_that_rest_start_no_more_than_may_run() -> None:
    with _service(most_instances=1) as service:
        rested = _tenant(service, 1)
        assert not rested.path_exists("ram://x")
        other = _tenant(service, 2)
        assert not other.path_exists("ram://x")
        for one in (rested, other, rested):
            assert not one.path_exists("ram://x")
            assert sum(bool(worker.pid) for worker in service.workers()) == 1
            assert len(service.instances()) == 1
        file = rested.new_writable_file("ram://file")
        with pytest.raises(UnavailableError, match="`most_instances`"):
            other.path_exists("ram://x")
        file.close()
        assert not other.path_exists("ram://x")
        assert {worker.restarts for worker in service.workers()} == {0}


def test_of_instances_that_start_again_together_as_many_run_as_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each counted the other as one that runs, and no call succeeded."""
    starting = threading.Barrier(2)

    def make_room_again(self: Instances, name: str) -> None:
        starting.wait(30)
        try:
            made_room_again(self, name)
        finally:
            starting.wait(30)  # each call is under way until both have asked

    def exists(tenant: Filesystem) -> bool:
        try:
            return tenant.path_exists("ram://x")
        except UnavailableError:
            return True

    made_room_again = Instances.make_room_again
    with _service(most_instances=1, instance_idle_s=0.1) as service:
        tenants = [_tenant(service, number) for number in range(2)]
        _wait_until(lambda: not service.instances())
        monkeypatch.setattr(Instances, "make_room_again", make_room_again)
        with ThreadPoolExecutor(2) as threads:
            found = list(threads.map(exists, tenants))
        assert sorted(found) == [False, True]


def test_instances_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    closing = threading.Barrier(4)

    def close(self: PluginFilesystem, *, at_exit: bool = False) -> None:
        if self.scheme == "ram" and self.tables.place is not None:
            closing.wait(30)  # passed by all four together
        closed(self, at_exit=at_exit)

    closed = PluginFilesystem.close
    with _service() as service:
        made = [_tenant(service, number) for number in range(3)]
        made.append(service.instance("ram", name="one", environment={}))
        monkeypatch.setattr(PluginFilesystem, "close", close)
    monkeypatch.undo()
    assert not closing.broken


def test_a_replaced_plugin_gets_an_instance_of_its_own(
    fixture_plugin: FilesystemPluginBuilder, tmp_path: Path
) -> None:
    library = Path(shutil.copy(fixture_plugin(), tmp_path / "libmine.so"))
    with PluginService(plugin_paths=[library], bundled=False, config=Config()) as service:
        service.load()
        old = service.shared_instance("fixture", {"TENANT": "1"})
        assert old.path_exists("fixture://h/")
        assert service.shared_instance("fixture", {"TENANT": "1"}) is old
        replaced = tmp_path / "new"
        replaced.write_bytes(library.read_bytes() + bytes(64))
        replaced.rename(library)
        service.refresh()
        assert old.path_exists("fixture://h/")
        new = service.shared_instance("fixture", {"TENANT": "1"})

        assert new is not old
        assert new.path_exists("fixture://h/")


def test_the_keys_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "modular-tf.toml"
    file.write_text("instance_idle_s = 5\nmost_instances = 3\n")
    config = load_config({"MODULAR_TF_CONFIG": str(file)})
    assert (config.instance_idle_s, config.most_instances) == (5, 3)
    file.write_text("most_instances = 0\n")
    with pytest.raises(ConfigError, match="most_instances"):
        load_config({"MODULAR_TF_CONFIG": str(file)})


def test_tenants_leave_nothing_behind(run_python: PythonRunner) -> None:
    """In a process of its own: what is counted is its own alone."""
    run_python(
        """
        import gc, os, threading, time
        from modular_tf.service.configuration import Config
        from modular_tf.service.service import PluginService

        with PluginService(config=Config(most_instances=3, instance_idle_s=0.2)) as service:
            service.load()

            def use(number):
                tenant = {"TENANT": str(number), "AWS_SECRET_ACCESS_KEY": f"secret of {number}"}
                service.shared_instance("ram", tenant).path_exists("ram://x")

            def settled():
                deadline = time.monotonic() + 30
                while service.instances() and time.monotonic() < deadline:
                    time.sleep(0.02)
                gc.collect()
                assert service.instances() == {}
                from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
                from modular_tf.isolation.worker import Worker
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


def test_an_instance_takes_two_processes(run_python: PythonRunner) -> None:
    """Where it has process numbers of its own, and where it has not."""
    run_python(
        """
        import os, time
        from modular_tf.service.service import PluginService

        def below(pid):
            found = []
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as children:
                    for child in map(int, children.read().split()):
                        found += [child, *below(child)]
            return found

        def count():
            try:
                return len(below(os.getpid()))
            except OSError:  # one ends just now
                return -1

        with PluginService() as service:
            service.load()
            for number in range(3):
                service.instance("ram", name=f"n{number}", environment={}).path_exists("ram://x")
            deadline = time.monotonic() + 30
            while (found := count()) != 1 + 3 * 2:  # the zygote has yet to wait for some
                assert time.monotonic() < deadline, found
                time.sleep(0.05)
        """
    )
