"""`register`: which protocols it takes, which it leaves, and how it says so."""

from __future__ import annotations

import itertools
import pickle
import sys
import types

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem, register
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import interrupt, points

pytestmark = [
    pytest.mark.usefixtures("untouched_registry"),
    pytest.mark.filterwarnings("ignore::modular_tf.fsspec.OwnClientWarning"),
]


@pytest.fixture
def memory_service():
    """A service that serves memory under names that fsspec knows, and one it does not."""
    with PluginService(bundled=False) as service:
        for scheme in ("s3", "memory", "mine"):
            service.register_filesystem(scheme, MemoryFileSystem(global_store=False))
        yield service


@pytest.fixture
def s3fs_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)


@pytest.fixture
def s3fs_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", types.ModuleType("s3fs"))


def test_every_free_scheme_is_taken(memory_service, s3fs_is_missing):
    registration = register(memory_service)

    assert set(registration.taken) == {"s3", "mine"}
    for scheme in registration.taken:
        assert isinstance(fsspec.filesystem(scheme), ModularFileSystem)
    with fsspec.open("s3://bucket/key", "wb") as file:
        file.write(b"by the plugin")
    assert memory_service.filesystem("s3").stat("s3://bucket/key").length == 13


def test_what_works_already_is_left_alone_and_named(memory_service, s3fs_is_installed):
    registration = register(memory_service)

    assert set(registration.taken) == {"mine"}
    assert registration.kept == {
        "s3": known_implementations["s3"]["class"],
        "memory": "fsspec.implementations.memory.MemoryFileSystem",
    }
    assert isinstance(fsspec.filesystem("memory"), MemoryFileSystem)


def test_a_conflict_over_a_named_scheme_is_an_error_that_names_both(memory_service):
    with pytest.raises(errors.AlreadyExistsError) as caught:
        register(memory_service, schemes=["mine", "memory"])

    assert "MemoryFileSystem" in str(caught.value)
    assert memory_service.schemes()["memory"] in str(caught.value)
    assert "clobber=True" in str(caught.value)
    assert "mine" not in fsspec.registry  # nothing was taken by halves


def test_clobber_takes_and_undo_gives_back(memory_service):
    fsspec.filesystem("memory")
    registration = register(memory_service, clobber=True, schemes=["memory", "mine"])
    assert isinstance(fsspec.filesystem("memory"), ModularFileSystem)

    registration.undo()
    registration.undo()

    assert isinstance(fsspec.filesystem("memory"), MemoryFileSystem)
    assert "mine" not in fsspec.registry


def test_registering_again_moves_the_schemes_to_the_new_service(memory_service, s3fs_is_missing):
    register(memory_service)
    with PluginService(bundled=False) as other:
        other.register_filesystem("mine", MemoryFileSystem(global_store=False))
        register(other)

        assert fsspec.filesystem("mine").service is other
        assert fsspec.filesystem("s3").service is memory_service


@pytest.fixture
def services():
    """Three services, each with a filesystem of its own for `mine`."""
    made = [PluginService(bundled=False) for _ in range(3)]
    for service in made:
        service.register_filesystem("mine", MemoryFileSystem(global_store=False))
    yield made
    for service in made:
        service.close()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_undoing_takes_away_one_registration_wherever_it_is(services, order):
    made = [register(service) for service in services]
    left = [0, 1, 2]
    for number in order:
        made[number].undo()
        made[number].undo()
        left.remove(number)
        if left:
            assert fsspec.filesystem("mine").service is services[left[-1]]
    assert "mine" not in fsspec.registry


def test_what_others_registered_in_between_serves_again(services):
    class Theirs(MemoryFileSystem):
        protocol = "mine"

    first = register(services[0])
    fsspec.register_implementation("mine", Theirs, clobber=True)
    second = register(services[1], clobber=True)
    first.undo()
    assert fsspec.filesystem("mine").service is services[1]
    second.undo()
    assert isinstance(fsspec.filesystem("mine"), Theirs)


def test_what_others_registered_since_stays(services):
    class Theirs(MemoryFileSystem):
        protocol = "mine"

    registration = register(services[0])
    fsspec.register_implementation("mine", Theirs, clobber=True)
    registration.undo()

    assert isinstance(fsspec.filesystem("mine"), Theirs)


def test_filesystems_on_top_of_a_protocol_follow_its_service(services):
    """fsspec keeps them, by their arguments."""
    wrap = {"dir": {"path": "folder"}, "simplecache": {}}
    for service in services:
        register(service)
        for protocol, options in wrap.items():
            for _ in range(2):
                on_top = fsspec.filesystem(protocol, target_protocol="mine", **options)
                assert on_top.fs.service is service


def test_a_filesystem_stays_with_its_service_and_so_does_what_is_pickled_of_it(service):
    with PluginService() as other:
        other.load()
        first = register(service, schemes=["ram"])
        made = fsspec.filesystem("ram")
        pickled = pickle.dumps(made)
        first.undo()
        register(other, schemes=["ram"])

        assert made.service is service
        assert pickle.loads(pickled).service is service
        assert fsspec.filesystem("ram").service is other


def test_a_registration_that_is_interrupted_takes_nothing(services):
    for point in points():
        registered = []
        more = interrupt(lambda: registered.append(register(services[0])), point=point)  # noqa: B023
        for registration in registered:
            registration.undo()
        assert "mine" not in fsspec.registry
        if not more:
            assert point
            break


def test_undoing_that_is_interrupted_can_be_repeated(services):
    first = register(services[0])
    for point in points():
        second = register(services[1])
        more = interrupt(second.undo, point=point)
        second.undo()
        assert fsspec.filesystem("mine").service is services[0]
        if not more:
            assert point
            break
    first.undo()


def test_only_named_schemes_are_taken(memory_service):
    assert register(memory_service, schemes=["mine"]).taken == ("mine",)


def test_a_scheme_nobody_serves_cannot_be_taken(memory_service):
    with pytest.raises(errors.NotFoundError, match="mine"):
        register(memory_service, schemes=["theirs"])


def test_the_bundled_schemes_are_taken_except_local_files(service):
    registration = register(service)

    assert "ram" in registration.taken
    assert "file" in registration.kept
    assert "" not in registration.taken


def test_clobber_leaves_local_files_alone_unless_they_are_named(service):
    registration = register(service, clobber=True)
    assert "ram" in registration.taken
    assert registration.kept == {"file": "fsspec.implementations.local.LocalFileSystem"}
    registration.undo()

    registration = register(service, clobber=True, schemes=["file"])
    assert registration.taken == ("file",)
    registration.undo()


@pytest.mark.parametrize(
    "at_import", ["import no_such_module_of_it", "sys.no_such_name", "1 / 0", "def"]
)
def test_a_client_that_is_broken_serves_nobody(at_import, memory_service, tmp_path, monkeypatch):
    """As with a botocore that does not fit it; the other schemes do not suffer."""
    (tmp_path / "s3fs.py").write_text(f"import sys\n{at_import}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "s3fs", raising=False)
    assert set(register(memory_service).taken) == {"s3", "mine"}


def test_one_call_opens_a_uri_by_its_plugin(service, ram, ram_path):
    register(service)
    with fsspec.open(f"ram://{ram_path}/x", "wb") as file:
        file.write(b"x")
    (opened,) = fsspec.open_files(f"ram://{ram_path}/*")

    assert opened.path == f"{ram_path}/x"
    assert fsspec.url_to_fs(f"ram://{ram_path}/x") == (ram, f"{ram_path}/x")


def test_a_plugin_takes_part_in_chains_of_urls(service, ram, ram_path, tmp_path):
    register(service)
    ram.pipe_file(f"{ram_path}/x", b"cached")
    with fsspec.open(
        f"simplecache::ram://{ram_path}/x", simplecache={"cache_storage": str(tmp_path)}
    ) as file:
        assert file.read() == b"cached"


def test_a_service_that_was_closed_is_named_as_the_cause():
    with PluginService() as service:
        service.load()
        register(service)
        fs = fsspec.filesystem("ram")

    with pytest.raises(errors.ClosedError, match="'ram' was registered with is closed"):
        fsspec.filesystem("ram")
    with pytest.raises(errors.ClosedError):
        fs.exists("x")


def test_without_registration_the_default_service_serves():
    assert ModularFileSystem("ram").isdir("")
    assert ModularFileSystem("ram").service is ModularFileSystem("file").service
