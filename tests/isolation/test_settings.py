"""Options and transactions of a plugin in a worker: those that it has in this process."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.codec import decode, encode
from modular_tf.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    UnavailableError,
)
from modular_tf.filesystem.configuration import Option, Transaction
from modular_tf.isolation.job import SetOptions
from modular_tf.native.ffi import ffi
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.filesystem import Filesystem

_OF_ALL_KINDS = (
    Option("integers", (-(2**63), 2**63 - 1, True), "the ends", per_file=True),
    Option("reals", (0.1, -0.0, math.inf, 1.0)),
    Option("buffers", (b"", b"a\0b", bytes(range(256)) * 400), "long"),
    Option("nothing \udcff", ()),
)


def _service_with(library: Path, isolation: str) -> PluginService:
    config = Config(isolation=isolation, most_worker_faults=0)  # type: ignore[arg-type]
    return PluginService(plugin_paths=[library], bundled=False, config=config)


@pytest.fixture(params=["none", "process"])
def service(request: pytest.FixtureRequest, fixture_plugin) -> Iterator[PluginService]:
    with _service_with(fixture_plugin(), request.param) as made:
        made.load()
        yield made


@pytest.fixture
def worker(fixture_plugin) -> Iterator[PluginService]:
    with _service_with(fixture_plugin(), "process") as made:
        made.load()
        yield made


@pytest.fixture
def fs(service: PluginService) -> Filesystem:
    return service.filesystem("fixture")


def _end_worker(service: PluginService) -> None:
    (pid,) = [found.pid for found in service.workers()]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/fd/0").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- Wherever the plugin runs ----


def test_options_are_read_and_set(fs: Filesystem) -> None:
    before = {option.name: option for option in fs.get_filesystem_configuration()}
    assert before["labels"] == Option("labels", (b"red", b"a\0b"), per_file=True)
    assert fs.get_filesystem_configuration_keys() == ["block_size", "labels"]

    fs.set_filesystem_configuration([Option("block_size", (1,)), Option("block_size", (2,))])
    assert fs.get_filesystem_configuration_option("block_size").values == (2,)
    fs.set_filesystem_configuration_option(before["block_size"])
    assert fs.get_filesystem_configuration_option("block_size") == before["block_size"]


def test_the_plugins_errors_are_told(fs: Filesystem) -> None:
    for call, error, operation in (
        (
            lambda: fs.get_filesystem_configuration_option("nobody's"),
            NotFoundError,
            "get_filesystem_configuration_option",
        ),
        (
            lambda: fs.set_filesystem_configuration_option(Option("block_size", (-1,))),
            InvalidArgumentError,
            "set_filesystem_configuration_option",
        ),
        (
            lambda: fs.set_filesystem_configuration([Option("unknown", (b"x" * 100_000,))]),
            NotFoundError,
            "set_filesystem_configuration",
        ),
    ):
        with pytest.raises(error) as failure:
            call()
        assert (failure.value.operation, failure.value.plugin) == (operation, fs.plugin)


def test_a_transaction_has_its_paths(fs: Filesystem) -> None:
    transaction = fs.start_transaction()
    with pytest.raises(AlreadyExistsError, match="a transaction is running"):
        fs.start_transaction()
    with pytest.raises(NotFoundError):
        fs.get_transaction_for_path("fixture://h/a")
    fs.add_to_transaction("fixture://h/a", transaction)

    assert fs.decode_transaction_token(transaction) == "/a"
    for found in (
        fs.get_transaction_for_path("fixture://h/a"),
        fs.get_or_start_transaction_for_path("fixture://h/a"),
    ):
        assert found.token == transaction.token
    fs.end_transaction(transaction)
    with pytest.raises(InvalidArgumentError, match="has ended"):
        fs.end_transaction(transaction)
    with pytest.raises(NotFoundError):
        fs.get_transaction_for_path("fixture://h/a")
    fs.end_transaction(fs.get_or_start_transaction_for_path("fixture://h/b"))


def test_a_transaction_that_another_one_of_its_handles_has_ended_is_refused(fs: Filesystem) -> None:
    transaction = fs.get_or_start_transaction_for_path("fixture://h/a")
    other = fs.get_transaction_for_path("fixture://h/a")
    fs.end_transaction(transaction)

    with pytest.raises((NotFoundError, InvalidArgumentError)):
        fs.add_to_transaction("fixture://h/a", other)


# ---- In a worker ----


def test_options_are_set_again_in_the_process_that_follows(worker: PluginService) -> None:
    fs = worker.filesystem("fixture")
    fs.set_filesystem_configuration([Option("block_size", (512,))])
    for _ in range(2):
        _end_worker(worker)
        assert fs.get_filesystem_configuration_option("block_size").values == (512,)
    fs.set_filesystem_configuration_option(Option("block_size", (1024,)))
    with pytest.raises(ModularTFError):
        fs.set_filesystem_configuration_option(Option("block_size", (-1,)))
    _end_worker(worker)
    assert fs.get_filesystem_configuration_option("block_size").values == (1024,)


def test_options_that_cannot_be_set_again_are_told(worker: PluginService) -> None:
    fs = worker.filesystem("fixture")
    place = fs.tables.place  # type: ignore[attr-defined]
    # As of a plugin that takes an option once, and refuses it later.
    place.worker.keep_options(place.number, [Option("block_size", (-1,))], is_single=True)
    fs.path_exists("fixture://h/a")
    _end_worker(worker)

    with pytest.raises(UnavailableError, match=r"cannot be set again \(block_size\)"):
        fs.path_exists("fixture://h/a")


def test_a_transaction_of_a_process_that_has_ended_is_lost(worker: PluginService) -> None:
    fs = worker.filesystem("fixture")
    transaction = fs.start_transaction()
    _end_worker(worker)
    for call in (
        lambda: fs.add_to_transaction("fixture://h/a", transaction),
        lambda: fs.decode_transaction_token(transaction),
    ):
        with pytest.raises(UnavailableError, match="may be lost; start another one") as failure:
            call()
        assert failure.value.rule == "LD-143"

    other = fs.start_transaction()
    assert other.token != transaction.token
    with pytest.raises(UnavailableError, match="may be lost"):
        fs.add_to_transaction("fixture://h/a", transaction)
    with pytest.raises(UnavailableError, match="may be lost"):
        fs.end_transaction(transaction)
    fs.add_to_transaction("fixture://h/a", other)
    assert fs.decode_transaction_token(other) == "/a"


def test_a_number_that_is_no_transaction_is_refused(worker: PluginService) -> None:
    fs = worker.filesystem("fixture")
    transaction = fs.start_transaction()
    next_one = ffi.cast("void *", int(ffi.cast("uintptr_t", transaction.token)) + 1)
    with pytest.raises(InvalidArgumentError, match="the transaction has ended"):
        fs.decode_transaction_token(Transaction(fs, next_one))


def test_many_threads_set_and_read_options(worker: PluginService) -> None:
    fs = worker.filesystem("fixture")
    failures: list[BaseException] = []

    def use(value: int) -> None:
        try:
            for _ in range(50):
                fs.set_filesystem_configuration_option(Option("block_size", (value,)))
                (found,) = fs.get_filesystem_configuration_option("block_size").values
                assert found in range(1, 5)
        except BaseException as error:  # noqa: BLE001  (told below)
            failures.append(error)

    threads = [threading.Thread(target=use, args=(value,)) for value in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_what_is_kept_is_what_was_set_last(worker: PluginService) -> None:
    """The first thread to set an option is held up before that is kept."""
    fs = worker.filesystem("fixture")
    place = fs.tables.place  # type: ignore[attr-defined]
    keep, names, is_set = place.worker.keep_options, iter(["first"]), threading.Event()

    def keep_late(*given: Any, **how: Any) -> None:
        for _ in names:
            is_set.set()
            time.sleep(0.3)
        keep(*given, **how)

    def set_block_size(size: int) -> None:
        fs.set_filesystem_configuration_option(Option("block_size", (size,)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(place.worker, "keep_options", keep_late)
        thread = threading.Thread(target=set_block_size, args=(512,))
        thread.start()
        assert is_set.wait(20)
        set_block_size(1024)
        thread.join()
    _end_worker(worker)
    assert fs.get_filesystem_configuration_option("block_size").values == (1024,)


def test_more_than_can_be_sent_is_refused(worker: PluginService) -> None:
    with pytest.raises(InvalidArgumentError, match="more than 16 MiB"):
        worker.filesystem("fixture").set_filesystem_configuration_option(
            Option("labels", (bytes(17 << 20),))
        )


def test_what_was_set_last_counts() -> None:
    def given(*names: str, filesystem: int = 0) -> SetOptions:
        return SetOptions(filesystem, tuple(Option(name, ()) for name in names), is_single=False)

    assert given("a", "b").replaces(given("a"))
    assert not given("a").replaces(given("a", "b"))
    assert not given("a").replaces(given("b"))
    assert not given("a").replaces(given("a", filesystem=1))


def test_what_was_set_crosses_as_it_is() -> None:
    sent = SetOptions(3, _OF_ALL_KINDS, is_single=False)
    received = decode(SetOptions, json.loads(json.dumps(encode(sent))))

    assert received == sent
    # What OptionsForC takes for a truth need not be one of JSON.
    odd = Option("odd", (), per_file=bytearray(b"1"))  # type: ignore[arg-type]
    assert json.dumps(encode(SetOptions(0, (odd,), is_single=True)))
    for mine, theirs in zip(sent.options, received.options, strict=True):
        assert list(map(type, theirs.values)) == list(map(type, mine.values))
    assert math.copysign(1, received.options[1].values[1]) == -1  # type: ignore[arg-type]
    assert all(one != other for one, other in pairwise(received.options))
