"""`register`: which protocols it takes, which it leaves, and how it says so."""

from __future__ import annotations

import itertools
import pickle
import sys
import types
import warnings

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem, OwnClientWarning, register, registration
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import interrupted

pytestmark = [
    pytest.mark.usefixtures("untouched_registry"),
    pytest.mark.filterwarnings("ignore::modular_tf.fsspec.OwnClientWarning"),
]
MEMORY = "fsspec.implementations.memory.MemoryFileSystem"


def service_of(*schemes):
    """Return a service that serves memory under some schemes."""
    service = PluginService(bundled=False)
    for scheme in schemes:
        service.register_filesystem(scheme, MemoryFileSystem(global_store=False))
    return service


@pytest.fixture
def memory_service():
    """A service that serves memory under names that fsspec knows, and one it does not."""
    with service_of("s3", "memory", "mine") as service:
        yield service


@pytest.fixture
def services():
    """Three services, each with a filesystem of its own for `mine`."""
    made = [service_of("mine") for _ in range(3)]
    yield made
    for service in made:
        service.close()


@pytest.fixture
def s3fs_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)


def opened_by(protocol):
    return fsspec.filesystem(protocol).service


# ---- What is taken ----


def test_every_free_scheme_is_taken(memory_service, s3fs_is_missing):
    taken = register(memory_service).taken

    assert set(taken) == {"s3", "mine"}
    for scheme in taken:
        assert isinstance(fsspec.filesystem(scheme), ModularFileSystem)
    with fsspec.open("s3://bucket/key", "wb") as file:
        file.write(b"by the plugin")
    assert memory_service.filesystem("s3").stat("s3://bucket/key").length == 13


def test_what_works_already_is_left_alone_and_named(memory_service, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", types.ModuleType("s3fs"))
    made = register(memory_service)

    assert set(made.taken) == {"mine"}
    assert made.kept == {"s3": known_implementations["s3"]["class"], "memory": MEMORY}
    assert isinstance(fsspec.filesystem("memory"), MemoryFileSystem)


def test_a_client_that_is_broken_serves_nobody(memory_service, tmp_path, monkeypatch):
    """As with a botocore that does not fit it; the other schemes do not suffer."""
    (tmp_path / "s3fs.py").write_text("import sys; sys.no_such_name")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "s3fs", raising=False)
    assert set(register(memory_service).taken) == {"s3", "mine"}


def test_a_conflict_over_a_named_scheme_is_an_error_that_names_both(memory_service):
    with pytest.raises(errors.AlreadyExistsError) as caught:
        register(memory_service, schemes=["mine", "memory"])

    for word in ("MemoryFileSystem", memory_service.schemes()["memory"], "clobber=True"):
        assert word in str(caught.value)
    assert "mine" not in fsspec.registry  # nothing was taken by halves


def test_only_named_schemes_are_taken(memory_service):
    assert register(memory_service, schemes=["mine"]).taken == ("mine",)
    with pytest.raises(errors.NotFoundError, match="mine"):
        register(memory_service, schemes=["theirs"])


def test_local_files_are_left_alone_unless_they_are_named(service):
    for clobber in (False, True):
        made = register(service, clobber=clobber)
        assert "ram" in made.taken
        assert "" not in made.taken
        assert made.kept == {"file": "fsspec.implementations.local.LocalFileSystem"}
        made.undo()
    made = register(service, clobber=True, schemes=["file"])
    assert made.taken == ("file",)
    made.undo()
    assert isinstance(fsspec.filesystem("file"), LocalFileSystem)


# ---- What is given back ----


def test_clobber_takes_and_undo_gives_back(memory_service):
    fsspec.filesystem("memory")
    made = register(memory_service, clobber=True, schemes=["memory", "mine"])
    assert isinstance(fsspec.filesystem("memory"), ModularFileSystem)
    made.undo()
    made.undo()

    assert isinstance(fsspec.filesystem("memory"), MemoryFileSystem)
    assert "mine" not in fsspec.registry


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_undoing_takes_away_one_registration_wherever_it_is(services, order):
    made = [register(service) for service in services]
    left = [0, 1, 2]
    for number in order:
        made[number].undo()
        made[number].undo()
        left.remove(number)
        if left:
            assert opened_by("mine") is services[left[-1]]
    assert "mine" not in fsspec.registry


class Theirs(MemoryFileSystem):
    protocol = "mine"


@pytest.mark.parametrize(
    ("theirs", "name"),
    [(Theirs, f"{__name__}.Theirs"), (f"{__name__}:Theirs", f"{__name__}:Theirs")],
)
def test_what_others_registered_before_is_left_alone(memory_service, monkeypatch, theirs, name):
    monkeypatch.setitem(known_implementations, "mine", {})  # and away afterwards
    fsspec.register_implementation("mine", theirs, clobber=True)
    made = register(memory_service)

    assert made.kept["mine"] == name
    assert isinstance(fsspec.filesystem("mine"), Theirs)


def test_what_others_registered_in_between_serves_again(services):
    first = register(services[0])
    fsspec.register_implementation("mine", Theirs, clobber=True)
    second = register(services[1], clobber=True)
    first.undo()
    assert opened_by("mine") is services[1]
    second.undo()
    assert isinstance(fsspec.filesystem("mine"), Theirs)


def test_what_others_registered_since_stays(services):
    made = register(services[0])
    fsspec.register_implementation("mine", Theirs, clobber=True)
    made.undo()

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
        assert opened_by("ram") is other


def test_a_registration_that_is_interrupted_takes_nothing(services):
    for made, _ in interrupted(list, lambda made: made.append(register(services[0]))):
        for one in made:
            one.undo()
        assert "mine" not in fsspec.registry


# ---- What it is good for ----


def test_one_call_opens_a_uri_by_its_plugin_also_in_chains(service, ram, ram_path, tmp_path):
    register(service)
    with fsspec.open(f"ram://{ram_path}/x", "wb") as file:
        file.write(b"x")
    (opened,) = fsspec.open_files(f"ram://{ram_path}/*")

    assert opened.path == f"{ram_path}/x"
    assert fsspec.url_to_fs(f"ram://{ram_path}/x") == (ram, f"{ram_path}/x")
    storage = {"cache_storage": str(tmp_path)}
    with fsspec.open(f"simplecache::ram://{ram_path}/x", simplecache=storage) as file:
        assert file.read() == b"x"


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


# ---- Installed libraries that go past fsspec are reported, once and in one line each ----


@pytest.fixture
def reported(monkeypatch):
    """Return what is reported of libraries, of which exactly these are installed, at some calls."""

    def report(installed, *calls, service):
        monkeypatch.setattr(registration, "is_installed", lambda module: module in installed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for options in calls:
                register(service, **options)
        found = [one for one in caught if one.category is OwnClientWarning]
        assert all(one.filename == __file__ and "\n" not in str(one.message) for one in found)
        return [str(one.message) for one in found]

    return report


@pytest.fixture
def stores():
    with service_of("s3", "gs", "mine") as service:
        yield service


ALL = {"clobber": True}


def test_each_library_is_reported_once_for_each_scheme_with_what_to_pass(stores, reported):
    schemes = [{**ALL, "schemes": ["s3", "mine"]}, {**ALL, "schemes": ["s3"]}, ALL]
    pyarrow, duckdb, *again = reported({"pyarrow", "duckdb"}, *schemes, service=stores)

    assert "s3://" in pyarrow
    assert "storage_options={}" in pyarrow
    assert "register_filesystem(fsspec.filesystem(" in duckdb
    assert "mine" not in pyarrow + duckdb
    assert ["gs://" in line and "s3://" not in line for line in again] == [True, True]


def test_nothing_is_reported_where_nobody_has_a_client_or_others_serve_or_nobody_asks(
    stores, reported, monkeypatch
):
    for name in ("s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    quiet = {}, {**ALL, "schemes": ["mine"]}, {**ALL, "warn": False}
    assert reported({"polars"}, *quiet, service=stores) == []
    assert reported((), ALL, service=stores) == []


def test_a_warning_that_is_an_error_takes_nothing(stores, monkeypatch):
    monkeypatch.setattr(registration, "is_installed", lambda module: module == "polars")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OwnClientWarning):
            register(stores, clobber=True)

    assert "mine" not in fsspec.registry
