"""Options and transactions of a plugin in a worker: those that it has in this process."""

from __future__ import annotations

import json
import math

import pytest

from modular_tf.codec import decode, encode
from modular_tf.errors import (
    InvalidArgumentError,
    ModularTFError,
    UnavailableError,
)
from modular_tf.filesystem.configuration import Option, Transaction
from modular_tf.isolation.job import SetOptions
from modular_tf.native.ffi import ffi
from tests.isolation.conftest import end_worker, isolated


@pytest.fixture
def fs(fixture_plugin):
    with isolated(fixture_plugin(), bundled=False) as service:
        filesystem = service.filesystem("fixture")
        filesystem.end = lambda: end_worker(service, filesystem.plugin)
        yield filesystem


def _set(fs, *values):
    fs.set_filesystem_configuration_option(Option("block_size", values))


def _block_size(fs):
    return fs.get_filesystem_configuration_option("block_size").values


def test_options_are_set_again_in_the_process_that_follows(fs):
    fs.set_filesystem_configuration([Option("block_size", (512,))])
    for _ in range(2):
        fs.end()
        assert _block_size(fs) == (512,)
    _set(fs, 1024)
    with pytest.raises(ModularTFError):
        _set(fs, -1)
    fs.end()
    assert _block_size(fs) == (1024,)


def test_options_that_cannot_be_set_again_are_reported(fs):
    place = fs.tables.place
    # As of a plugin that takes an option once, and refuses it later.
    place.worker.keep_options(place.number, [Option("block_size", (-1,))], is_single=True)
    fs.path_exists("fixture://h/a")
    fs.end()

    with pytest.raises(UnavailableError, match=r"cannot be set again \(block_size\)"):
        fs.path_exists("fixture://h/a")


def test_a_transaction_of_a_process_that_has_ended_is_lost(fs):
    path, transaction = "fixture://h/a", fs.start_transaction()
    next_one = ffi.cast("void *", int(ffi.cast("uintptr_t", transaction.token)) + 1)
    with pytest.raises(InvalidArgumentError, match="the transaction has ended"):
        fs.decode_transaction_token(Transaction(fs, next_one))  # a number that is none

    fs.end()
    for call in (
        lambda: fs.add_to_transaction(path, transaction),
        lambda: fs.decode_transaction_token(transaction),
    ):
        with pytest.raises(UnavailableError, match="may be lost; start another one") as failure:
            call()
        assert failure.value.rule == "LD-143"
    other = fs.start_transaction()
    assert other.token != transaction.token
    with pytest.raises(UnavailableError, match="may be lost"):
        fs.add_to_transaction(path, transaction)
    with pytest.raises(UnavailableError, match="may be lost"):
        fs.end_transaction(transaction)
    fs.add_to_transaction(path, other)
    assert fs.decode_transaction_token(other) == "/a"


def test_more_than_can_be_sent_is_refused(fs):
    with pytest.raises(InvalidArgumentError, match="more than 16 MiB"):
        fs.set_filesystem_configuration_option(Option("labels", (bytes(17 << 20),)))


def test_what_is_set_later_replaces_the_same_options():
    def given(*names, filesystem=0):
        return SetOptions(filesystem, tuple(Option(name, ()) for name in names), is_single=False)

    assert given("a", "b").replaces(given("a"))
    assert not given("a").replaces(given("a", "b"))
    assert not given("a").replaces(given("b"))
    assert not given("a").replaces(given("a", filesystem=1))


def test_options_of_every_kind_cross_to_the_process_as_they_are():
    options = (
        Option("integers", (-(2**63), 2**63 - 1, True), "the ends", per_file=True),
        Option("reals", (0.1, -0.0, math.inf, 1.0)),
        Option("buffers", (b"", b"a\0b", bytes(range(256)) * 400), "long"),
        Option("nothing \udcff", ()),
    )
    sent = SetOptions(3, options, is_single=False)

    received = decode(SetOptions, json.loads(json.dumps(encode(sent))))
    assert repr(received) == repr(sent)  # which tells 1 from True, and 0.0 from -0.0
