"""Accepted tables: copied, write-protected, seen from Python as an immutable view."""

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


WRITE = """
    import ctypes, os, sys
    from modular_tf.service.service import PluginService
    service = PluginService(plugin_paths=[sys.argv[1]], bundled=False)
    service.load()
    (entry,) = [service.entry(record.name) for record in service.plugins()]
    tables = entry.tables["fixture"]
    for offset in map(int, sys.argv[2:]):
        word = ctypes.c_uint64.from_address(tables.protected.address + offset)
        child = os.fork()
        if child == 0:
            assert word.value != 1
            word.value = 1
            os._exit(0)
        print(offset, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
# Offsets into the host's block: the first and last slot of each table, and the plugin's allocator.
OFFSETS = [0, 256, 264, 272, 280, 320, 328, 344, 352, 360]


def test_a_write_to_an_accepted_table_faults(fixture_plugin, run_forked):
    child = run_forked(WRITE, fixture_plugin("good"), *map(str, OFFSETS))

    expected = [f"{offset} {-signal.SIGSEGV}" for offset in OFFSETS]
    assert child.stdout.splitlines() == expected


@pytest.mark.parametrize(
    ("variant", "n_slots"), [("filesystem-size-216", 27), ("filesystem-size-176", 22)]
)
def test_the_block_holds_the_plugins_functions_in_the_hosts_order(variant, n_slots, loaded):
    _, tables = loaded(variant)
    slots = tables.tables[FILESYSTEM_OPS.name].slots
    words = memoryview(tables.protected.view()).cast("Q")

    assert len(slots) == n_slots, "a table is as large as the plugin said"
    for index, name in enumerate(FILESYSTEM_SLOTS):
        assert words[index] == slots.get(name, 0)
    for name, address in slots.items():
        assert not address or address_owner(address).path, name


def test_a_library_stays_mapped_and_its_tables_the_same_when_its_service_is_closed(fixture_plugin):
    library = fixture_plugin("good")
    seen = []
    for _ in range(2):
        with PluginService(plugin_paths=[library], bundled=False) as service:
            service.load(library)
            tables = service.entry(str(library)).tables["fixture"]
            address = tables.tables[FILESYSTEM_OPS.name].slots["stat"]
            owner = address_owner(address)
        assert owner is not None
        assert address_owner(address) == owner
        seen.append(tables.protected)

    assert seen[0] is seen[1]


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
