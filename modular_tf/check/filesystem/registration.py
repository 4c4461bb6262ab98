"""Checks of what `TF_InitPlugin` does and leaves, and of `init` and `cleanup`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
)
from modular_tf.check.check import (
    LIBRARY,
    LOADS,
    NOTE,
    RAW,
    REGISTERS,
    ROBUST,
    WARNING,
    WORKS,
    Suite,
)
from modular_tf.check.expectation import Blocked, Deviation, expect, expect_equal
from modular_tf.check.filesystem.every_call import codes_of_all
from modular_tf.check.filesystem.library import breaks_nothing_but
from modular_tf.check.filesystem.library_session import (
    TABLES,
    content_of,
    fill,
    overwrite,
    registration_of,
)
from modular_tf.check.filesystem.operations import OPERATIONS, has_slot, host_offers
from modular_tf.check.filesystem.session import further_filesystem, initialised, workspace_on
from modular_tf.check.filesystem.workspace import CONTENT, expect_content
from modular_tf.check.memory_watch import Depth, raise_harm_to_heap
from modular_tf.check.under_load import must_not_grow, rounds_of
from modular_tf.errors import ModularTFError
from modular_tf.filesystem.opening import open_filesystem
from modular_tf.loading.filesystem_tables import FilesystemTables
from modular_tf.tables import read_table

if TYPE_CHECKING:
    from modular_tf.check.filesystem.library_session import Block, FilesystemLibrary
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

registration = Suite("filesystem", "library", level=REGISTERS, ways=LIBRARY, source="filesystem.h")

_OPENERS = {
    RANDOM_ACCESS_FILE_OPS.name: ("new_random_access_file",),
    WRITABLE_FILE_OPS.name: ("new_writable_file", "new_appendable_file"),
    READ_ONLY_MEMORY_REGION_OPS.name: ("new_read_only_memory_region_from_file",),
}
_OLDEST = 22  # slots, before transactions and configuration

_SIZES = (1, 1 << 20)
_SAMPLE = 0x5A


@registration.check("FS-130", level=LOADS, seconds=10)
def init_plugin_returns(plugin: FilesystemLibrary) -> None:
    """TF_InitPlugin returns to its caller.

    Otherwise: In TensorFlow the registration ends the process; here the plugin is quarantined.
    Remedy: Report what is missing from the `init` of the scheme, by its status.
    """
    with breaks_nothing_but("FS-130"):
        plugin.call_init_plugin()


@registration.judge("LD-051 LD-052", level=LOADS)
def init_plugin_can_be_called(rule_id: str, plugin: FilesystemLibrary) -> None:
    """Call `TF_InitPlugin`, where that is no danger."""
    plugin.library()
    trial = plugin.trial
    if not trial.returned and not trial.refused:
        raise Blocked("TF_InitPlugin does not return", "FS-130")
    with breaks_nothing_but(rule_id):
        plugin.call_init_plugin()


@registration.check("FS-105")
def writes_beside_nothing(plugin: FilesystemLibrary) -> None:
    """TF_InitPlugin writes nothing beside the 32 bytes of TF_FilesystemPluginInfo.

    Otherwise: It overwrites the host's stack, which crashes later and elsewhere.
    Remedy: Build the plugin with the header of this interface; do not append fields.
    """
    breach = plugin.registration().breach
    expect(breach is None, "TF_InitPlugin wrote beside the info struct", found=breach or "")


@registration.check("FS-129")
def everything_can_be_freed(plugin: FilesystemLibrary) -> None:
    """plugin_memory_free takes all that TF_InitPlugin leaves, block by block.

    Otherwise: The host frees each scheme, each table and the array: the process ends.
    Remedy: Get each of them from plugin_memory_allocate, by a call of its own.

    A block that cannot have been allocated is left to FS-022.
    """
    registration = plugin.fresh_registration()
    if not registration.has_functions:
        raise Blocked("the memory functions are NULL", "FS-001", "FS-002")
    for block in {block.address: block for block in registration.allocated_blocks()}.values():
        plugin.journal.enter(f"plugin_memory_free({block.name})")
        registration.free(block.address)
        raise_harm_to_heap(f"plugin_memory_free({block.name})", "FS-129", Depth.RECORDED)


@registration.check("FS-108")
def memory_functions_work(plugin: FilesystemLibrary) -> None:
    """plugin_memory_allocate gives usable memory, and plugin_memory_free takes it, or NULL.

    Otherwise: The host's own calls to them crash or run out of memory.
    Remedy: Use malloc and free, or functions that behave like them.
    """
    registration = plugin.registration()
    if not registration.has_functions:
        raise Blocked("the memory functions are NULL", "FS-001", "FS-002")
    blocks = []
    for size in (0, *_SIZES):
        plugin.journal.enter(f"plugin_memory_allocate({size})")
        blocks.append((registration.allocate(size), size))
    for address, size in blocks[1:]:
        expect(address, f"plugin_memory_allocate({size}) gives NULL", expected="memory")
        fill(address, size, _SAMPLE)
    given = [address for address, _ in blocks if address]
    expect_equal(len(set(given)), len(given), "the number of different blocks")
    for address in (*given, 0):
        plugin.journal.enter(f"plugin_memory_free({address:#x})")
        registration.free(address)


# -- what the host says ---------------------------------------------------------------------------

_OF_THE_WHOLE = "FS-001 FS-002 FS-003 FS-004 FS-005"
"""Where one of them is broken, the host looks at no scheme."""

_OF_A_SCHEME = (
    "FS-006 FS-007 FS-008 FS-009 FS-010 FS-011 FS-012 FS-013 FS-014 FS-015 FS-016 FS-017 FS-020"
    " FS-021 FS-022"
)


@registration.judge(f"{_OF_THE_WHOLE} {_OF_A_SCHEME}")
def _tables_keep_the_rule(rule_id: str, plugin: FilesystemLibrary) -> None:
    """Ask the host."""
    found = plugin.violations()
    for subject, violation in found:
        if violation.rule_id == rule_id:
            where = f"{subject}: " if subject else ""
            raise Deviation(f"{where}{violation.message}")
    hidden = {violation.rule_id for _, violation in found} & set(_OF_THE_WHOLE.split())
    if rule_id in _OF_A_SCHEME and hidden:
        raise Blocked("there is no scheme to look at", *sorted(hidden))


@registration.check("FS-114", severity=WARNING)
def all_schemes_or_none(plugin: FilesystemLibrary) -> None:
    """Either all schemes of a plugin can be registered, or none.

    Otherwise: The valid schemes work, but TensorFlow's registration of the plugin reports an error.
    Remedy: Fill the tables of each scheme in the same way.
    Source: TensorFlow 2.21, observed
    """
    entries = plugin.offer().entries
    accepted = [entry for entry in entries if isinstance(entry, FilesystemTables)]
    refused = [entry.scheme for entry in entries if not isinstance(entry, FilesystemTables)]
    expect(
        not (accepted and refused),
        "some schemes of the plugin are refused, others serve",
        found=f"served: {[entry.scheme for entry in accepted]}, refused: {refused}",
    )


@registration.check("FS-019")
def init_succeeds(plugin: FilesystemLibrary) -> None:
    """Initialise each scheme as the host does, and clean it up again."""
    for tables in plugin.tables():
        plugin.journal.enter(f"init of scheme {tables.scheme!r}")
        try:
            filesystem, _ = open_filesystem(
                tables, plugin="the plugin", path=plugin.target.path, bundled=False
            )
        except ModularTFError as error:
            message = f"init of scheme {tables.scheme!r} failed"
            raise Deviation(message, expected="OK", found=error.message) from error
        plugin.journal.enter(f"cleanup of scheme {tables.scheme!r}")
        filesystem.close()


# -- what it leaves, beyond that ------------------------------------------------------------------


@registration.check("FS-106", severity=WARNING)
def init_plugin_can_be_called_again(plugin: FilesystemLibrary) -> None:
    """TF_InitPlugin can be called again, and leaves the same again.

    Otherwise: TensorFlow calls it once per registration of the file; what differs is not expected.
    Remedy: Keep no state in TF_InitPlugin: allocate and fill everything in each call.
    Source: TensorFlow 2.21, observed
    """
    first = plugin.registration()
    second = plugin.second_registration()
    expect_equal(second.num_schemes, first.num_schemes, "num_schemes of the second call")
    for before, after in zip(first.entries, second.entries, strict=False):
        expect_equal(after.facts, before.facts, f"ops[{after.index}] of the second call")


@registration.check("FS-116", severity=NOTE)
def no_versions_of_absent_tables(plugin: FilesystemLibrary) -> None:
    """The version numbers of tables that are not there are 0.

    Otherwise: No host reads them; it shows that the entry was not zeroed.
    Remedy: Zero the entry, and call TF_SetFilesystemVersionMetadata.
    """
    for entry in plugin.entries():
        for field in TABLES:
            table = entry.table(field)
            message = f"ops[{entry.index}].{field} is NULL and has a version"
            versions = (table.abi, table.api)
            expect(table.address or versions == (0, 0), message, found=f"ABI and API {versions}")


@registration.check("FS-118")
def sizes_are_set(plugin: FilesystemLibrary) -> None:
    """The size of each table that is there is set.

    Otherwise: TensorFlow copies nothing of the table and crashes; here the registration is refused.
    Remedy: Call TF_SetFilesystemVersionMetadata for each scheme.
    """
    for entry in plugin.entries():
        for field in TABLES:
            table = entry.table(field)
            message = f"ops[{entry.index}].{field}_size is 0, though the table is there"
            expect(not table.address or table.size, message)


# -- what is in the tables ------------------------------------------------------------------------


@registration.check("FS-111", severity=NOTE)
def schemes_in_lower_case(plugin: FilesystemLibrary) -> None:
    """A scheme has no upper case letters.

    Otherwise: Lookups are case-sensitive: users who write it in lower case do not reach it.
    Remedy: Register the scheme in lower case.
    Source: TensorFlow 2.21, observed
    """
    for entry in plugin.entries():
        scheme = entry.scheme or ""
        expect_equal(scheme, scheme.lower(), f"the scheme of ops[{entry.index}]")


@registration.check("FS-113", severity=NOTE)
def schemes_of_its_own(plugin: FilesystemLibrary) -> None:
    """A scheme is none that TensorFlow brings itself.

    Otherwise: TensorFlow answers the registration with ALREADY_EXISTS and keeps its own filesystem;
    here the plugin serves.
    Remedy: To be of use in TensorFlow as well, choose another scheme.
    Source: TensorFlow 2.21, observed
    """
    own = {entry.scheme for entry in plugin.entries()}
    known = read_table("check/filesystem/tensorflow_schemes.toml")["schemes"]
    taken = [scheme for scheme in known if scheme in own]
    expect(not taken, "TensorFlow has a filesystem of its own for a scheme", found=repr(taken))


@registration.check("FS-119", severity=NOTE)
def tables_of_this_header(plugin: FilesystemLibrary) -> None:
    """TF_FilesystemOps has the size of the host's header.

    Otherwise: What the plugin's table is too short for counts as NULL.
    Remedy: Build the plugin with newer headers, if it is to offer what these have more.
    Source: struct-size rule

    A larger table is FS-021.
    """
    for tables in plugin.tables():
        table = tables.tables[FILESYSTEM_OPS.name]
        lost = [slot.name for slot in FILESYSTEM_OPS.slots if slot.name not in table.slots]
        expect(
            not lost,
            f"the table of scheme {tables.scheme!r} is of another header",
            expected=f"{FILESYSTEM_OPS.size} bytes",
            found=f"{table.size} bytes, without {', '.join(lost)}",
        )


@registration.check("FS-122", severity=NOTE)
def tables_are_used(plugin: FilesystemLibrary) -> None:
    """A table of files or regions is used by a function that opens such.

    Otherwise: No host ever calls the table's functions.
    Remedy: Set the function that opens, or leave the table NULL.
    """
    for tables in plugin.tables():
        for name, openers in _OPENERS.items():
            used = name not in tables.tables or any(map(tables.offers, openers))
            what = f"scheme {tables.scheme!r} has {name}, and nothing that opens such"
            expect(used, what, expected=" or ".join(openers))


@registration.check("FS-124", severity=WARNING)
def defaults_have_what_they_need(plugin: FilesystemLibrary) -> None:
    """For each operation that is NULL, the host's default has the operations that it needs.

    Otherwise: The operation is UNIMPLEMENTED, in TensorFlow as well.
    Remedy: Provide the operation, or those that the default is made of.
    Source: TensorFlow 2.21, observed
    """
    for tables in plugin.tables():
        has = partial(has_slot, tables)
        lost = [
            slot for slot, op in OPERATIONS.items() if op.default and not host_offers(has, slot)
        ]
        empty = [slot.name for slot in FILESYSTEM_OPS.slots[:_OLDEST] if not has(slot.name)]
        expect(
            not lost,
            f"scheme {tables.scheme!r} cannot {', '.join(lost)}",
            found=f"NULL are {', '.join(empty)}",
        )


# What looks for credentials or a region in `init` may need some time for each.
initialisation = Suite(
    "filesystem", "init", level=ROBUST, ways=RAW, seconds=150, source="filesystem.h"
)

_ROUNDS = 50


@initialisation.check("FS-132", level=WORKS)
def init_writes_its_handle_alone(fs: FilesystemWorkspace) -> None:
    """init succeeds on a zeroed handle, and writes to plugin_filesystem alone.

    Otherwise: The scheme is not registered; what lies behind the handle is the host's.
    Remedy: Set filesystem->plugin_filesystem or leave it NULL; a status that is not set is OK.
    """
    other = fs.by_slots.another()
    other.init().must_be_ok()
    other.cleanup()


@initialisation.check("FS-134", traits="writes", severity=WARNING)
def filesystems_are_independent(fs: FilesystemWorkspace) -> None:
    """Two filesystems of one plugin do not disturb each other.

    Otherwise: A host that registers the plugin again, or forks, breaks the filesystem that it has.
    Remedy: Keep all state behind plugin_filesystem.
    Source: host recommendation
    """
    with further_filesystem(fs) as second, workspace_on(second, fs, "FS-134") as there:
        with further_filesystem(fs) as first, workspace_on(first, fs, "FS-134") as here:
            here.make_file("F", b"first")
            uri = there.make_file()
            expect_content(here, here.path("F"), b"first", "the content of the first one's file")
        what = "the content of the second one's file after cleanup of the first"
        expect_content(there, uri, CONTENT, what)


@initialisation.check("FS-135", severity=WARNING)
def init_and_cleanup_leave_nothing(fs: FilesystemWorkspace) -> None:
    """init and cleanup can follow each other many times, and nothing is left behind.

    Otherwise: Each reload of the plugin costs file descriptors or memory.
    Remedy: Release in cleanup all that init has acquired.
    """

    def live() -> None:
        with further_filesystem(fs) as other:
            if other.has("path_exists"):
                other.path_exists(fs.missing())

    must_not_grow(live, rounds_of(fs.target.options, _ROUNDS), "init and cleanup")


handed_over = Suite("filesystem", "handed-over", ways=RAW, seconds=90, source="filesystem.h")


@handed_over.check("FS-126")
def cleanup_frees_nothing_handed_over(fs: FilesystemWorkspace) -> None:
    """The plugin does not free what it has handed over.

    Otherwise: The host has freed it: freeing it twice crashes.
    Remedy: Keep no pointers to schemes, tables and the ops array.

    The memory is watched: allocators write to what is freed.
    """
    watched = registration_of(fs).allocated_blocks()
    other = initialised(fs)
    before = content_of(watched)
    other.cleanup()
    _expect_unchanged(before, watched, "cleanup freed or changed what was handed over")


@handed_over.check("FS-128")
def operations_write_to_nothing_handed_over(fs: FilesystemWorkspace) -> None:
    """The plugin does not write to what it has handed over.

    Otherwise: The memory is the host's and freed: the write hits what came in its place.
    Remedy: Keep no pointers to schemes, tables and the ops array.
    """
    watched = registration_of(fs).allocated_blocks()
    before = content_of(watched)
    with further_filesystem(fs) as other:
        with workspace_on(other, fs, "FS-128") as there:
            codes_of_all(there)
        _expect_unchanged(before, watched, "an operation freed or changed what was handed over")


@handed_over.check("FS-127")
def the_plugin_works_without_its_own_tables(fs: FilesystemWorkspace) -> None:
    """The plugin works after its own tables are overwritten.

    Otherwise: The host frees them after copying: what still reads them crashes, sooner or later.
    Remedy: Let functions call each other by name, not through the registered tables.
    """
    expected = codes_of_all(fs)
    overwrite(registration_of(fs).allocated_blocks())
    with further_filesystem(fs) as other, workspace_on(other, fs, "FS-127") as there:
        found = codes_of_all(there)
    expect_equal(found, expected, "what the operations return without the plugin's own tables")


def _expect_unchanged(before: dict[str, bytes | None], watched: list[Block], message: str) -> None:
    after = content_of(watched)
    changed = [name for name, content in before.items() if content != after[name]]
    expect(not changed, message, found=", ".join(changed))
