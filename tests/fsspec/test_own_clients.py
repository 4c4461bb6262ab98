"""`register` tells of installed libraries that go past fsspec, once and in one line each."""

from __future__ import annotations

import sys
import types
import warnings

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modular_tf.fsspec import OwnClientWarning, register, registration
from modular_tf.service.service import PluginService

pytestmark = pytest.mark.usefixtures("untouched_registry")


@pytest.fixture
def memory_service():
    with PluginService(bundled=False) as service:
        for scheme in ("s3", "gs", "mine"):
            service.register_filesystem(scheme, MemoryFileSystem(global_store=False))
        yield service


@pytest.fixture
def installed(monkeypatch):
    """Let exactly these libraries be installed, of those that are known to have clients."""

    def choose(*modules):
        monkeypatch.setattr(registration, "is_installed", lambda module: module in modules)

    return choose


def told(*calls):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in calls:
            call()
    return [one for one in caught if one.category is OwnClientWarning]


def test_each_library_is_told_of_in_one_line_that_says_what_to_pass(memory_service, installed):
    installed("pyarrow", "duckdb")
    pyarrow, duckdb = told(lambda: register(memory_service, clobber=True))

    assert "gs://, s3://" in str(pyarrow.message)
    assert "storage_options={}" in str(pyarrow.message)
    assert "register_filesystem(fsspec.filesystem(" in str(duckdb.message)
    assert not any(
        "\n" in str(one.message) or "mine" in str(one.message) for one in (pyarrow, duckdb)
    )
    assert {one.filename for one in (pyarrow, duckdb)} == {__file__}


def test_it_is_told_once_for_each_scheme(memory_service, installed):
    installed("polars")
    first, second = told(
        lambda: register(memory_service, clobber=True, schemes=["s3", "mine"]),
        lambda: register(memory_service, clobber=True, schemes=["s3"]),
        lambda: register(memory_service, clobber=True),
    )

    assert "s3://" in str(first.message)
    assert "gs://" in str(second.message)
    assert "s3://" not in str(second.message)


def test_nothing_is_told_where_nobody_has_a_client_or_nobody_asks(memory_service, installed):
    installed()
    assert told(lambda: register(memory_service, clobber=True)) == []
    installed("polars")
    assert told(lambda: register(memory_service, clobber=True, schemes=["mine"])) == []
    assert told(lambda: register(memory_service, clobber=True, warn=False)) == []


def test_schemes_that_are_left_to_others_are_not_told_of(memory_service, installed, monkeypatch):
    installed("polars")
    for name in ("s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))

    assert told(lambda: register(memory_service)) == []


def test_a_warning_that_is_an_error_takes_nothing(memory_service, installed):
    installed("polars")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OwnClientWarning):
            register(memory_service, clobber=True)

    assert "mine" not in fsspec.registry


@pytest.mark.beyond_core
def test_the_libraries_are_not_imported(run_python):
    run_python(
        """
        import sys
        from modular_tf.fsspec.registration import OwnClientWarning, warn_of_own_clients
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warn_of_own_clients(["s3"], stacklevel=1)
        assert any("pyarrow" in str(one.message) for one in caught), caught
        assert "pyarrow" not in sys.modules
        """
    )
