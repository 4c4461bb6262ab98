"""Options and transactions of a plugin: whose memory they are, and the defaults of NULL slots."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modular_tf.errors import NotFoundError, UnimplementedError
from modular_tf.filesystem.configuration import Option, Transaction
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import MemoryStore, filesystem_of
from tests.fixtures.compiler import compile_object, link_library

_OPTIONS = (
    Option("numbers", (1, 2), "two"),
    Option("real", (0.5,)),
    Option("texts", (b"a\0b", b"", b"long" * 1000), per_file=True),
    Option("nothing", ()),
)


@pytest.fixture(scope="module")
def library():
    source = Path(__file__).with_name("options_plugin.c")
    return link_library("liboptions.so", [compile_object(source)])


@pytest.fixture(params=["none", "process"])
def fs(library, request):
    with PluginService(plugin_paths=[library], bundled=False, isolation=request.param) as service:
        service.load()
        yield service.filesystem("options")


def _live_blocks(fs):
    return fs.get_file_size("options://h/x")


# ---- Memory ----


def test_options_are_memory_of_the_plugins_allocator_and_freed(fs):
    before = _live_blocks(fs)
    fs.set_filesystem_configuration(_OPTIONS)
    fs.set_filesystem_configuration([])
    for option in _OPTIONS:
        fs.set_filesystem_configuration_option(option)

    assert _live_blocks(fs) == before


@pytest.mark.parametrize("isolation", ["none", "process"])
@pytest.mark.parametrize("spare", range(1, 9))
def test_an_allocator_without_memory_is_an_error_and_nothing_leaks(
    spare, isolation, library, run_python
):
    run_python(
        f"""
        import sys
        from modular_tf.errors import ResourceExhaustedError
        from modular_tf.filesystem.configuration import Option
        from modular_tf.service.service import PluginService
        with PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
            service.load()
            fs = service.filesystem("options")
            before = fs.get_file_size("options://h/x")
            # After it there are so many blocks, and the options of the next call need 10.
            fs.set_filesystem_configuration_option(Option("spare", ({spare},)))
            try:
                fs.set_filesystem_configuration([Option("a", (b"x",)), Option("b", (b"y",))])
            except ResourceExhaustedError as error:
                assert "plugin_memory_allocate" in str(error), error
                assert error.plugin, error
            else:
                raise SystemExit("it had memory")
            assert fs.get_file_size("options://h/x") == before
        """,
        library,
        env={"MODULAR_TF_ISOLATION": isolation},
    )


# ---- Defaults ----


def test_what_has_no_options_sets_none():
    fs = filesystem_of(MemoryStore())
    for call in (
        lambda: fs.set_filesystem_configuration([Option("x", (1,))]),
        lambda: fs.set_filesystem_configuration([]),
        lambda: fs.set_filesystem_configuration_option(Option("x", (1,))),
        lambda: fs.get_filesystem_configuration_option("x"),
    ):
        with pytest.raises(NotFoundError, match="option") as failure:
            call()
        assert failure.value.plugin == "memory"
    assert fs.get_filesystem_configuration() == fs.get_filesystem_configuration_keys() == []


def test_a_file_without_sync_is_flushed(fs):
    flushes = "options://h/flushes"
    with fs.new_writable_file("options://h/f") as file:
        before = fs.get_file_size(flushes)
        file.sync()
        assert fs.get_file_size(flushes) == before + 1


def test_a_token_without_a_text_of_its_own_is_shown_by_its_addresses(fs):
    text = fs.decode_transaction_token(fs.start_transaction())

    assert re.fullmatch(r"token 0xabc, owner 0x[0-9a-f]+", text)


def test_a_token_of_a_python_filesystem_is_shown_with_its_owner():
    fs = filesystem_of(MemoryStore())

    text = fs.decode_transaction_token(Transaction(fs, "t1"))
    assert "'t1'" in text
    assert "'mem' of memory" in text
    with pytest.raises(UnimplementedError):
        fs.start_transaction()
