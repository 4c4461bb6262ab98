"""Schemes that no plugin serves: clients of fsspec that are installed serve them."""

from __future__ import annotations

import sys

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry, known_implementations

import modular_tf.fsspec as our_fsspec
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.errors import (
    FailedPreconditionError,
    NotFoundError,
    UnimplementedError,
)
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service import configured_filesystems
from modular_tf.service.configuration import Config

_CLIENT = """
print("imported")
from fsspec.implementations.memory import MemoryFileSystem

class Client(MemoryFileSystem):
    protocol = "fixture"
"""
_REFUSING = """
class Client:
    def __init__(self):
        raise ValueError("no account")
"""
SAID = "scheme 'fixture' is served by a_client, since no plugin serves it"


@pytest.fixture(autouse=True)
def stores_alone(monkeypatch):
    """Have the fallback serve what a test brings, and nothing that others have imported."""
    monkeypatch.setitem(configured_filesystems.known_clients(), "not_stores", {"protocols": []})
    monkeypatch.setitem(configured_filesystems.known_clients(), "own", {})
    for protocol in ("s3", "s3a", "gs", "gcs", "abfs", "az", "hf"):
        monkeypatch.delitem(_registry, protocol, raising=False)


@pytest.fixture
def client(monkeypatch, tmp_path):
    """A package that has a client for `fixture`, which fsspec knows and has not imported."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "a_client.py").write_text(_CLIENT)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "a_client", raising=False)
    monkeypatch.setitem(known_implementations, "fixture", {"class": "a_client.Client"})
    return folder


@pytest.fixture
def falling_back(make_service):
    """Make a service that goes to fsspec."""
    return lambda *paths, **options: make_service(*paths, fsspec_fallback=True, **options)


def test_an_installed_client_serves_what_no_plugin_serves(client, falling_back):
    service = falling_back()
    assert service.schemes()["fixture"] == "fsspec.fixture"
    assert service.fallback_schemes()["fixture"] == SAID
    assert SAID in service.why("fixture").lines
    with service.filesystem_for("fixture://a/b").open("fixture://a/b", "w") as file:
        file.write("x")
    assert service.filesystem("fixture") is service.filesystem("fixture")
    assert service.filesystem("fixture").get_file_size("fixture://a/b") == 1


def test_a_list_of_schemes_is_what_an_import_of_fsspec_gives_and_imports_nothing(
    client, run_python
):
    """fsspec's files are read: its own protocols, and the entry points of installed packages."""
    metadata = client / "a_client-1.5.dist-info"
    metadata.mkdir()
    lines = ["[other]", "fixture = nothing", "[fsspec.specs]", "fixture = a_client:Client"]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    done = run_python(
        """
        import json, sys
        sys.path.insert(0, sys.argv[1])
        import modular_tf as mtf
        from modular_tf.service.configured_filesystems import _tables
        with mtf.PluginService() as service:
            service.load()
            service.plugins()
            found = service.fallback_schemes()
            imported, known = _tables()
            assert not imported and "fsspec" not in sys.modules
            import fsspec
            assert service.fallback_schemes() == found
            classes = {name: entry["class"] for name, entry in known.items()}
            _, known = _tables()
            assert {name: entry["class"] for name, entry in known.items()} == classes
            assert service.schemes()["fixture"] == "fsspec.fixture"
            print(found["fixture"])
            assert service.filesystem("fixture")
        """,
        client,
        env={"MODULAR_TF_FSSPEC_FALLBACK": "1"},
    )
    assert done.stdout.splitlines() == [SAID.replace("a_client", "a_client 1.5"), "imported"]


def test_python_code_and_plugins_have_the_scheme_as_soon_as_they_are_there(
    client, falling_back, fixture_plugin
):
    service = falling_back()
    before = service.filesystem("fixture")
    undo = service.register_filesystem("fixture", MemoryFileSystem())
    assert "fixture" not in service.fallback_schemes()
    undo()
    assert service.filesystem("fixture").plugin == "fsspec.fixture"

    service.load(fixture_plugin("needed-none", scheme="fixture"))
    assert service.filesystem("fixture") is not before
    assert "fixture" not in service.fallback_schemes()
    assert service.schemes()["fixture"] == service.filesystem("fixture").plugin != before.plugin


OFF = {
    "argument": {"fsspec_fallback": False},
    "key": {"config": Config(fsspec_fallback=False), "fsspec_fallback": None},
    "pinned": {"config": Config(scheme_pins={"fixture": "tensorflow-io"})},
    "privileged": {},  # where the user may not decide
}


@pytest.mark.parametrize("how", OFF)
def test_it_can_be_turned_off(how, client, make_service, monkeypatch):
    monkeypatch.setattr(configured_filesystems, "is_privileged", lambda: how == "privileged")
    service = make_service(**{"fsspec_fallback": True, **OFF[how]})
    assert "fixture" not in service.schemes()
    with pytest.raises(UnimplementedError, match="no filesystem for scheme 'fixture'"):
        service.filesystem("fixture")


FROZEN = Config(trust=TrustPolicy(frozen=True))
PINNED = Config(scheme_pins={"s3": "mine"}, path="/etc/c.toml")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (Config(), "to have it: `modular-tf fetch tensorflow-io` or `pip install s3fs`"),
        (FROZEN, 's3 = "fsspec" in [filesystems], since plugins are frozen'),
        (PINNED, "/etc/c.toml gives it to 'mine' alone"),
    ],
    ids=["nobody", "frozen", "pinned"],
)
def test_an_unserved_scheme_is_named_with_what_brings_it(monkeypatch, falling_back, config, said):
    monkeypatch.setitem(known_implementations, "s3", {"class": "not_installed_here.S3"})
    service = falling_back(config=config)
    assert "s3" not in service.schemes()
    with pytest.raises(UnimplementedError) as failure:
        service.filesystem_for("s3://bucket")
    assert said in str(failure.value)


def test_our_own_face_in_fsspec_is_never_gone_to(client, falling_back, fixture_plugin):
    with_plugin = falling_back(fixture_plugin("needed-none", scheme="fixture"))
    with_plugin.load()
    registration = our_fsspec.register(with_plugin, clobber=True, schemes=["fixture"])
    try:
        assert issubclass(fsspec.get_filesystem_class("fixture"), ModularFileSystem)
        service = falling_back()
        assert type(service.filesystem("fixture").fs).__name__ == "Client"
    finally:
        registration.undo()


def test_options_of_a_call_are_refused_with_what_to_do(client, falling_back):
    with pytest.raises(TypeError, match=r"'key': no plugin serves .* in \[filesystems\]"):
        ModularFileSystem("fixture", service=falling_back(), key="x")


def test_what_fsspec_serves_is_not_registered_in_fsspec(client, falling_back):
    service = falling_back()
    registration = our_fsspec.register(service, clobber=True)
    try:
        assert "fixture" not in registration.taken
    finally:
        registration.undo()
    with pytest.raises(NotFoundError, match=r"no plugin serves \['fixture'\]"):
        our_fsspec.register(service, clobber=True, schemes=["fixture"])


def test_files_of_this_machine_archives_and_caches_do_not_fall_back(falling_back):
    service = falling_back()
    for scheme in ("", "file", "local", "memory", "zip", "ram", "dir", "reference"):
        assert scheme not in service.schemes()
        with pytest.raises(UnimplementedError):
            service.filesystem(scheme)


def test_a_client_that_cannot_be_made_says_what_to_do(client, falling_back):
    (client / "a_client.py").write_text(_REFUSING)
    service = falling_back(config=Config(path="/etc/c.toml"))
    with pytest.raises(FailedPreconditionError) as failure:
        service.filesystem("fixture")
    text = str(failure.value)
    assert text.startswith(f"{SAID}: a_client.Client refused to be made without options")
    assert "no account" in text
    assert "Correct the options in [filesystems] of /etc/c.toml." in text


def test_without_fsspec_nothing_falls_back(run_python):
    run_python(
        """
        import sys
        sys.modules["fsspec"] = None
        import modular_tf as mtf
        with mtf.PluginService() as service:
            service.load()
            assert set(service.schemes()) == {"", "file", "ram"}, service.schemes()
            assert not service.fallback_schemes()
            try:
                service.filesystem("s3")
            except mtf.errors.UnimplementedError as error:
                assert "pip install s3fs" in str(error)
        """,
        env={"MODULAR_TF_FSSPEC_FALLBACK": "1"},
    )


def test_a_module_in_the_name_of_fsspec_has_nothing_read_from_the_current_directory(
    run_python, tmp_path
):
    (tmp_path / "fsspec.py").write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/registry.py").write_text("open('was_run', 'w')")
    run_python(
        """
        import os, sys
        sys.path.insert(0, sys.argv[1])
        os.chdir(f"{sys.argv[1]}/elsewhere")
        import modular_tf as mtf
        with mtf.PluginService() as service:
            assert not service.fallback_schemes()
        assert not os.path.exists("was_run")
        """,
        tmp_path,
        env={"MODULAR_TF_FSSPEC_FALLBACK": "1"},
    )
