"""Filesystems that `[filesystems]` of the configuration names."""

from __future__ import annotations

import pickle
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import fsspec
import pytest
from fsspec.registry import _registry

from modular_tf.errors import (
    AlreadyExistsError,
    ConfigError,
    FailedPreconditionError,
    ModularTFError,
    UnavailableError,
)
from modular_tf.fsspec import ModularFileSystem
from modular_tf.redaction import HIDDEN, redacted
from modular_tf.service.configuration import Config, parse_config
from modular_tf.service.report import CONFIGURATION_SOURCE, State
from tests.filesystem.memory_store import MemoryStore

SECRET = "s3cr3t-of-a-store"


@pytest.fixture
def lake(monkeypatch):
    """A module that a configuration may name objects of."""
    module = ModuleType("lake")
    monkeypatch.setitem(sys.modules, "lake", module)
    return module


@pytest.fixture
def refusing(monkeypatch):
    """A client for `lake` that shows its options when it refuses to be made."""

    class Refusing(fsspec.AbstractFileSystem):
        protocol = "lake"

        def __init__(self, **options):
            raise ValueError(f"no: {options}")

    monkeypatch.setitem(_registry, "lake", Refusing)  # as register_implementation does


def _service(make_service, **filesystems):
    return make_service(config=Config(filesystems=filesystems, path="/etc/c.toml"))


@pytest.mark.parametrize("named", ["fsspec", {"fsspec": "memory"}])
def test_a_client_of_fsspec_serves_a_scheme(make_service, named):
    service = _service(make_service, memory=named)
    fs = service.filesystem_for("memory://bucket/file")
    with fs.open("memory://bucket/file", "wb") as file:
        file.write(b"content")

    assert fsspec.filesystem("memory").cat("/bucket/file") == b"content"
    assert service.schemes() == {"memory": "fsspec.memory"}
    (record,) = service.plugins()
    assert (record.name, record.source) == ("fsspec.memory", CONFIGURATION_SOURCE)
    assert (record.state, record.schemes) == (State.LOADED, ("memory",))


def test_an_object_and_a_function_that_makes_one_serve(make_service, lake):
    lake.store = MemoryStore()
    lake.make = lambda: fsspec.filesystem("memory")
    service = _service(make_service, one={"object": "lake:store"}, two={"object": "lake:make"})

    for scheme in ("one", "two"):
        with service.filesystem(scheme).open(f"{scheme}://h/f", "w") as file:
            file.write("x")
    assert lake.store.files == {"/f": b"x"}
    assert service.schemes() == {"one": "lake:store", "two": "lake:make"}


def test_it_is_made_at_the_first_use_and_anew_in_a_forked_child(run_python, tmp_path):
    (tmp_path / "mine.py").write_text(
        "print('imported', flush=True)\nimport fsspec\nfs = lambda: fsspec.filesystem('memory')\n"
    )
    done = run_python(
        """
        import os, sys
        sys.path.insert(0, sys.argv[1])
        import modular_tf as mtf
        from modular_tf.service.configuration import Config
        named = {"mine": {"object": "mine:fs"}, "memory": "fsspec"}
        with mtf.PluginService(config=Config(filesystems=named), fsspec_fallback=False) as service:
            service.load()
            assert {"mine", "memory"} <= set(service.schemes())
            assert {"mine:fs", "fsspec.memory"} <= {r.name for r in service.plugins()}
            assert not {"fsspec", "mine"} & set(sys.modules)
            print("unused", flush=True)
            service.filesystem("mine").path_exists("mine://x/y")
            before = service.filesystem("memory")
            if (child := os.fork()) == 0:
                after = service.filesystem("memory")
                os._exit(0 if after is not before and after.path_exists("memory://") else 9)
            assert os.waitpid(child, 0)[1] == 0
            assert service.filesystem("memory") is before
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["unused", "imported"]


def test_a_plugin_does_not_get_a_scheme_that_the_configuration_names(make_service, fixture_plugin):
    plugin = fixture_plugin("needed-none", scheme="fixture")
    config = Config(filesystems={"fixture": {"fsspec": "memory"}}, path="/etc/c.toml")
    service = make_service(plugin, config=config)
    record = service.load().plugins[0]

    assert service.schemes() == {"fixture": "fsspec.memory"}
    assert record.state is State.SHADOWED
    assert record.reason.rule == "FS-018"
    assert "[filesystems] in /etc/c.toml" in record.reason.message
    assert record.reason.remedy.endswith("remove 'fixture' from [filesystems].")
    lines = "\n".join(service.why("fixture").lines)
    assert "is served by fsspec.memory" in lines
    assert record.reason.message in lines


def test_schemes_of_bundled_plugins_may_be_named(make_service):
    named = {scheme: {"fsspec": "memory"} for scheme in ("ram", "file")}
    service = make_service(config=Config(filesystems=named), bundled=True)
    service.load()
    assert {service.schemes()[scheme] for scheme in named} == {"fsspec.memory", "fsspec.memory#2"}


def test_python_code_gets_a_named_scheme_only_by_replacing(make_service):
    service = _service(make_service, memory="fsspec")
    with pytest.raises(AlreadyExistsError, match=r"\[filesystems\] in /etc/c.toml"):
        service.register_filesystem("memory", MemoryStore())
    undo = service.register_filesystem("memory", MemoryStore(), replace=True)
    assert service.schemes() == {"memory": "MemoryStore"}
    undo()
    assert service.schemes() == {"memory": "fsspec.memory"}


WRONG = {
    "unknown-protocol": ({"fsspec": "memori"}, "fsspec knows no protocol 'memori'", "'memory'?"),
    "refused-options": ({"fsspec": "zip"}, "refused to be made without options", "Correct the op"),
    "no-module": ({"object": "nowhere_at_all:fs"}, "cannot be imported", "Install its package"),
    "no-attribute": ({"object": "lake:fs"}, "has no attribute 'fs'", "or correct [filesystems]"),
    "no-filesystem": ({"object": "lake:number"}, "lake:number is no filesystem", "Correct [fil"),
    "raises": ({"object": "lake:fail"}, "lake:fail() raised ZeroDivisionError", "the next use"),
    "itself": ({"object": "lake:itself"}, "what makes its filesystem uses the scheme", "Correct"),
    "unset": (
        {"fsspec": "memory", "inner": {"token": {"env": "NO_SUCH_VARIABLE"}}},
        "option 'inner.token' is the variable NO_SUCH_VARIABLE, which is not set",
        "Set NO_SUCH_VARIABLE.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_made_is_one_sentence_and_the_rest_serves(case, make_service, lake):
    lake.number = 5
    lake.fail = lambda: 1 // 0
    lake.itself = lambda: service.filesystem("wrong")
    named, said, remedy = WRONG[case]
    service = _service(make_service, wrong=named, memory="fsspec")
    for _ in range(2):
        with pytest.raises(FailedPreconditionError) as failure:
            service.filesystem("wrong")
        message = str(failure.value)
        assert message.startswith("scheme 'wrong', [filesystems] of /etc/c.toml: ")
        assert said in message
        assert remedy in message
    assert not service.filesystem("memory").path_exists("memory://nothing/here")


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("s3fs", "needs s3fs, .* pip install s3fs"),
        ("fsspec", "fsspec is not installed.*pip install fsspec"),
    ],
)
def test_a_client_that_is_not_installed_is_named_with_its_package(
    make_service, monkeypatch, missing, said
):
    monkeypatch.delitem(_registry, "s3", raising=False)  # what others have imported
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(FailedPreconditionError, match=said):
        _service(make_service, s3="fsspec").filesystem("s3")


def test_an_error_keeps_its_class_and_the_next_use_tries_again(make_service, lake):
    outcomes = [ConnectionRefusedError(111, "refused"), MemoryStore()]

    def make():
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    lake.make = make
    service = _service(make_service, lake={"object": "lake:make"})
    with pytest.raises(UnavailableError, match="refused"):
        service.filesystem("lake")
    assert service.filesystem("lake") is service.filesystem("lake")
    assert outcomes == []


def test_while_a_function_hangs_other_schemes_and_the_service_go_on(
    make_service, lake, fixture_plugin
):
    begun, goes_on, made = threading.Event(), threading.Event(), []

    def make():
        begun.set()
        assert goes_on.wait(60)
        made.append(MemoryStore())
        return made[0]

    lake.make = make
    service = _service(make_service, lake={"object": "lake:make"}, memory="fsspec")
    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(service.filesystem, "lake") for _ in range(2)]
        assert begun.wait(60)
        try:
            service.load(fixture_plugin("needed-none", scheme="fixture"))
            assert set(service.schemes()) == {"fixture", "lake", "memory"}
            assert service.filesystem("fixture")
            assert service.filesystem("memory")
            assert service.plugins()
            assert not any(each.done() for each in found)
        finally:
            goes_on.set()
    assert len(made) == 1
    assert {each.result() for each in found} == {service.filesystem("lake")}


DEEP = "d33p-in-options"  # followed by what tells one from the other: each is hidden by itself
OPTIONS = {
    "secret": f"{DEEP}-1",
    "passphrase": f"{DEEP}-2",
    "auth": ["user", f"{DEEP}-3"],
    "client": {"headers": {"Authorization": f"Bearer {DEEP}-4"}, "region": "eu"},
    "token": {"value": f"{DEEP}-5"},
    "accounts": [{"secret": f"{DEEP}-6"}],
    "user": {"env": "STORES_PASSWORD"},
}


@pytest.mark.usefixtures("refusing")
def test_secrets_at_any_depth_are_shown_nowhere(make_service, monkeypatch, capsys, tmp_path):
    from modular_tf.cli.main import run

    monkeypatch.setenv("STORES_PASSWORD", f"{DEEP}-7")
    config = Config(filesystems={"lake": {"fsspec": "lake", **OPTIONS}})
    service = make_service(config=config)
    with pytest.raises(FailedPreconditionError) as failure:
        service.filesystem("lake")
    assert "region" in str(failure.value)
    for shown in (
        *traceback.format_exception(failure.value),
        f"{failure.value!r} {config} {service.plugins()} {config.filesystems['lake'].shown()}",
    ):
        assert DEEP not in shown
    assert pickle.loads(pickle.dumps(config)) == config

    file = tmp_path / "c.toml"
    file.write_text(f'[filesystems]\nlake = {{fsspec = "lake", secret = "{SECRET}", a = "b"}}\n')
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(file))
    for words in (["paths", "--json"], ["list", "--json"], ["schemes"], ["why", "lake"]):
        run(words)
        shown = capsys.readouterr()
        assert "lake" in shown.out
        assert SECRET not in shown.out + shown.err
        if words[0] == "paths":
            assert f'"secret": "{HIDDEN}"' in shown.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"[[filesystems]]\nkey = '{SECRET}'",
            "filesystems: expected a table of schemes, .* a list",
        ),
        (f"filesystems.s3 = [{{key = '{SECRET}'}}]", "filesystems.s3: expected .*, found a list"),
        ("filesystems.s3 = 5", r"filesystems.s3: expected \"fsspec\", \{fsspec.*, found 5"),
        ('filesystems.s3 = "s3fs"', "filesystems.s3: expected .*, found 's3fs'"),
        (
            "filesystems.s3 = {fsspec = 's3', object = 'a:b'}",
            r"filesystems.s3: expected .*, found a table with \['fsspec', 'object'\]",
        ),
        (f"filesystems.s3.fsspec.key = '{SECRET}'", "filesystems.s3.fsspec: expected a protocol"),
        (f"filesystems.s3.object.key = '{SECRET}'", "filesystems.s3.object: expected 'package"),
        ("filesystems.s3 = {object = 'a.b'}", "filesystems.s3.object: expected 'package.module:na"),
        (
            "filesystems.s3 = {object = 'a:b', key = 'x'}",
            r"filesystems.s3: expected no option beside `object`, found \['key'\]",
        ),
        ("filesystems.'a b' = 'fsspec'", "filesystems.a b: expected a scheme: .*, found 'a b'"),
        ("filesystems.'' = 'fsspec'", "filesystems.: expected a scheme: .*, found ''"),
        ("filesystems.s3 = {fsspec = 's3', key = {env = 5}}", "filesystems.s3.key.env: expected"),
        ("filesystems.s3 = {fsspec = 's3', a = {b = {env = 5}}}", "filesystems.s3.a.b.env: exp"),
        (
            "filesystems.s3 = 'fsspec'\nscheme_pins = {s3 = 'tensorflow-io'}",
            r"\['s3'\] in `filesystems` and in `scheme_pins`; keep one of each",
        ),
    ],
)
def test_a_wrong_table_is_named_with_file_key_expected_and_found(text, said):
    with pytest.raises(ConfigError, match=f"/etc/c.toml: {said}") as failure:
        parse_config(text, "/etc/c.toml")
    assert failure.value.path == "/etc/c.toml"
    assert SECRET not in str(failure.value)


def test_no_traceback_of_a_later_error_shows_a_secret(make_service, monkeypatch):
    class Refusing(fsspec.AbstractFileSystem):
        protocol = "lake"

        def info(self, path, **_):
            raise ValueError(f"no: {self.storage_options}")

        ls = info

    monkeypatch.setitem(_registry, "lake", Refusing)
    service = _service(make_service, lake={"fsspec": "lake", "secret": SECRET})
    filesystem = service.filesystem("lake")
    for use in (filesystem.stat, filesystem.get_children, filesystem.get_file_size):
        with pytest.raises(ModularTFError) as failure:
            use("lake://host/a")
        assert HIDDEN in str(failure.value)
        assert SECRET not in "".join(traceback.format_exception(failure.value))


def test_a_switch_whose_name_is_of_a_secret_hides_no_word(make_service):
    service = _service(make_service, mem2={"fsspec": "memory", "use_key": True})
    service.filesystem("mem2")
    assert redacted("True") == "True"


def test_a_configured_scheme_is_a_filesystem_of_fsspec_and_pickles(run_forked, make_service):
    service = make_service(config=Config(filesystems={"mem2": {"fsspec": "memory"}}))
    fs = ModularFileSystem("mem2", service=service)
    fs.pipe_file("a/b", b"here")
    again = pickle.loads(pickle.dumps(fs))
    assert again.service is service
    assert again.cat_file("a/b") == b"here"
    run_forked(
        """
        import pickle, sys
        fs = pickle.loads(bytes.fromhex(sys.argv[1]))
        fs.pipe_file("c/d", b"there")
        import fsspec
        assert fsspec.filesystem("memory").cat("/c/d") == b"there"
        """,
        pickle.dumps(fs).hex(),
    )


def test_configurations_with_other_options_have_services_of_their_own():
    """Their texts are equal: those show no option."""
    one, two = (Config(filesystems={"mem2": {"fsspec": "memory", "key": key}}) for key in "ab")
    first, second = (ModularFileSystem("mem2", config=config) for config in (one, two))
    assert first.service is not second.service
