"""Accepted tables: copied, write-protected, seen from Python as an immutable view."""

from __future__ import annotations

import ctypes
import signal

import pytest

from modular_tf.abi.layouts import FILESYSTEM_OPS, FILESYSTEM_OPS_V222, FILESYSTEM_SLOTS
from modular_tf.errors import NotFoundError, UnimplementedError
from modular_tf.filesystem.configuration import Option
from modular_tf.native.library import address_owner
from modular_tf.service.service import PluginService

_ROOT = "fixture://h"


@pytest.fixture
def loaded(fixture_plugin):
    """Load a variant; return its filesystem and tables."""
    services = []

    def load(variant):
        library = fixture_plugin(variant)
        service = PluginService(plugin_paths=[library], bundled=False)
        services.append(service)
        service.load(library)
        return service.filesystem("fixture"), service.entry(str(library)).tables["fixture"]

    yield load
    for service in services:
        service.close()


# Offsets into the host's block: the first and last slot of each table, and the plugin's allocator.
@pytest.mark.parametrize("offset", [0, 256, 264, 272, 280, 320, 328, 344, 352, 360])
def test_a_write_to_an_accepted_table_faults(offset, fixture_plugin, run_python):
    child = run_python(
        """
        import ctypes, sys
        from modular_tf.service.service import PluginService
        service = PluginService(plugin_paths=[sys.argv[1]], bundled=False)
        service.load()
        (entry,) = [service.entry(record.name) for record in service.plugins()]
        tables = entry.tables["fixture"]
        address = tables.protected.address + int(sys.argv[2])
        print("read", ctypes.c_uint64.from_address(address).value != 1, flush=True)
        ctypes.c_uint64.from_address(address).value = 1
        print("written")
        """,
        fixture_plugin("good"),
        str(offset),
        status=-signal.SIGSEGV,
    )

    assert child.stdout == "read True\n"


def test_the_block_holds_the_plugins_functions_in_the_hosts_order(loaded):
    _, tables = loaded("filesystem-size-216")
    words = memoryview(tables.protected.view()).cast("Q")

    for index, name in enumerate(FILESYSTEM_SLOTS):
        assert words[index] == tables.tables[FILESYSTEM_OPS.name].slots.get(name, 0)


def test_the_view_cannot_be_changed(loaded):
    _, tables = loaded("good")
    table = tables.tables[FILESYSTEM_OPS.name]

    with pytest.raises(TypeError):
        table.slots["stat"] = 1
    with pytest.raises(TypeError):
        tables.tables["TF_FilesystemOps"] = None
    with pytest.raises(AttributeError):
        table.size = 1
    with pytest.raises(TypeError):
        tables.protected.view()[0] = 1


def test_a_slot_leads_to_the_library_it_lies_in(loaded, fixture_plugin):
    _, tables = loaded("good")
    table = tables.tables[FILESYSTEM_OPS.name]

    assert not table.has("get_filesystem_configuration_keys")
    for name, address in table.slots.items():
        if address:
            assert address_owner(address).path, name


def test_a_library_stays_mapped_when_its_service_is_closed(fixture_plugin):
    library = fixture_plugin("good")
    with PluginService(plugin_paths=[library], bundled=False) as service:
        service.load(library)
        tables = service.entry(str(library)).tables["fixture"].tables
        address = tables[FILESYSTEM_OPS.name].slots["stat"]
        owner = address_owner(address)

    assert owner is not None
    assert address_owner(address) == owner


def test_tables_are_the_same_bytes_wherever_the_plugin_is_loaded_again(loaded):
    _, first = loaded("good")
    _, second = loaded("good")

    assert first.protected is second.protected


def test_a_plugin_that_changes_its_own_table_changes_nothing(loaded):
    filesystem, tables = loaded("table-changes-later")
    before = bytes(tables.protected.view())

    assert filesystem.path_exists(_ROOT)  # zeroes the plugin's table
    filesystem.create_dir(f"{_ROOT}/made")
    assert filesystem.get_children(_ROOT) == ["made"]
    assert bytes(tables.protected.view()) == before


# ---- Layouts ----


@pytest.mark.parametrize(
    ("variant", "layout", "transactions", "configuration"),
    [
        ("filesystem-size-176", FILESYSTEM_OPS, False, False),
        ("filesystem-size-216", FILESYSTEM_OPS_V222, False, True),
        ("filesystem-size-224", FILESYSTEM_OPS, True, False),
        ("filesystem-size-280", FILESYSTEM_OPS, True, True),
        ("good", FILESYSTEM_OPS, True, True),
    ],
)
def test_each_generation_offers_what_it_has(variant, layout, transactions, configuration, loaded):
    filesystem, tables = loaded(variant)
    table = tables.tables[FILESYSTEM_OPS.name]

    assert table.layout is layout
    assert tables.offers("flush_caches")
    assert tables.offers("start_transaction") is transactions
    assert tables.offers("set_filesystem_configuration") is configuration
    _use_transactions(filesystem, offered=transactions)
    _use_configuration(filesystem, offered=configuration)
    filesystem.create_dir(f"{_ROOT}/made")
    assert filesystem.stat(f"{_ROOT}/made").is_directory


def _use_transactions(filesystem, *, offered):
    if not offered:
        with pytest.raises(UnimplementedError, match="start_transaction"):
            filesystem.start_transaction()
        return
    transaction = filesystem.start_transaction()
    filesystem.add_to_transaction(f"{_ROOT}/x", transaction)
    found = filesystem.get_transaction_for_path(f"{_ROOT}/x")
    again = filesystem.get_or_start_transaction_for_path(f"{_ROOT}/x")
    assert found.token == again.token == transaction.token
    assert filesystem.decode_transaction_token(transaction) == "/x"
    with pytest.raises(NotFoundError):
        filesystem.get_transaction_for_path(f"{_ROOT}/y")
    filesystem.end_transaction(transaction)
    with pytest.raises(ValueError, match="has ended"):
        filesystem.end_transaction(transaction)


def _use_configuration(filesystem, *, offered):
    if not offered:
        assert filesystem.get_filesystem_configuration() == []
        assert filesystem.get_filesystem_configuration_keys() == []
        with pytest.raises(NotFoundError, match="set_filesystem_configuration"):
            filesystem.set_filesystem_configuration([Option("block_size", (1,))])
        return
    block_size, labels = filesystem.get_filesystem_configuration()
    assert block_size.name == "block_size"
    assert block_size.description == "bytes per block"
    assert labels == Option("labels", (b"red", b"a\0b"), "", per_file=True)
    assert filesystem.get_filesystem_configuration_keys() == ["block_size", "labels"]
    filesystem.set_filesystem_configuration_option(Option("block_size", (8192,)))
    assert filesystem.get_filesystem_configuration_option("block_size").values == (8192,)
    filesystem.set_filesystem_configuration([Option("block_size", (4096,))])
    assert filesystem.get_filesystem_configuration_option("block_size").values == (4096,)
    with pytest.raises(NotFoundError):
        filesystem.get_filesystem_configuration_option("absent")
    with pytest.raises(ValueError, match="block_size"):
        filesystem.set_filesystem_configuration_option(Option("block_size", (b"text",)))
    with pytest.raises(TypeError, match="all numbers or all bytes"):
        filesystem.set_filesystem_configuration_option(Option("block_size", (1, b"text")))


def test_a_table_is_as_large_as_the_plugin_said(loaded):
    _, tables = loaded("filesystem-size-176")

    assert len(tables.tables[FILESYSTEM_OPS.name].slots) == 22
    assert ctypes.c_uint64.from_address(tables.protected.address + 176).value == 0
