"""Options and transactions of a plugin: whose memory they are, and the defaults of NULL slots."""

from __future__ import annotations

import re

import pytest

from modular_tf.errors import NotFoundError, ResourceExhaustedError, UnimplementedError
from modular_tf.filesystem.configuration import Option, Transaction
from tests.filesystem.plugins import built, service_of

_OPTIONS = (
    Option("numbers", (1, 2), "two"),
    Option("real", (0.5,)),
    Option("texts", (b"a\0b", b"", b"long" * 1000), per_file=True),
    Option("nothing", ()),
)


@pytest.fixture(scope="module", params=["none", "process"])
def options(request):
    with service_of(built("options"), isolation=request.param) as service:
        yield service.filesystem("options")


def live_blocks(options):
    return options.get_file_size("options://h/x")


# ---- Memory ----


def test_options_are_memory_of_the_plugins_allocator_and_freed(options):
    before = live_blocks(options)
    options.set_filesystem_configuration(_OPTIONS)
    options.set_filesystem_configuration([])
    for option in _OPTIONS:
        options.set_filesystem_configuration_option(option)

    assert live_blocks(options) == before


def test_an_allocator_without_memory_is_an_error_and_nothing_leaks(options):
    before = live_blocks(options)
    for spare in range(1, 9):  # blocks after this call, and the options of the next one need 10
        options.set_filesystem_configuration_option(Option("spare", (spare,)))
        with pytest.raises(ResourceExhaustedError, match="plugin_memory_allocate") as failure:
            options.set_filesystem_configuration([Option("a", (b"x",)), Option("b", (b"y",))])
        assert failure.value.plugin
        options.get_file_size("options://h/refill")
        assert live_blocks(options) == before


# ---- Defaults ----


def test_what_has_no_options_sets_none(fs):
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


def test_a_file_without_sync_is_flushed(options):
    flushes = "options://h/flushes"
    with options.new_writable_file("options://h/f") as file:
        before = options.get_file_size(flushes)
        file.sync()
        assert options.get_file_size(flushes) == before + 1


def test_a_token_without_a_text_of_its_own_is_shown_by_its_addresses(options):
    text = options.decode_transaction_token(options.start_transaction())

    assert re.fullmatch(r"token 0xabc, owner 0x[0-9a-f]+", text)


def test_a_token_of_a_python_filesystem_is_shown_with_its_owner(fs):
    text = fs.decode_transaction_token(Transaction(fs, "t1"))
    assert "'t1'" in text
    assert "'mem' of memory" in text
    with pytest.raises(UnimplementedError):
        fs.start_transaction()
