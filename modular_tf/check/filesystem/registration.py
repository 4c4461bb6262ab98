"""Checks of what `TF_InitPlugin` does and leaves.

What the host judges itself before it accepts a plugin is asked of the host, not judged again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
)
from modular_tf.check.breach import raise_harm_to_heap
from modular_tf.check.check import LIBRARY, CheckList
from modular_tf.check.expectation import Blocked, Deviation, expect, expect_equal
from modular_tf.check.filesystem.host_offer import has_slot, host_offers
from modular_tf.check.filesystem.registration_memory import TABLES, fill
from modular_tf.check.heap_watch import Depth, HeapWatch
from modular_tf.check.level import Level
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.filesystem.opening import open_filesystem
from modular_tf.loading.filesystem_tables import FilesystemTables
from modular_tf.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.filesystem.library_stage import LibraryGround

CHECKS = CheckList("filesystem", "library")

_OPENERS = {
    RANDOM_ACCESS_FILE_OPS.name: ("new_random_access_file",),
    WRITABLE_FILE_OPS.name: ("new_writable_file", "new_appendable_file"),
    READ_ONLY_MEMORY_REGION_OPS.name: ("new_read_only_memory_region_from_file",),
}
_OLDEST = 22  # slots, before transactions and configuration
_WITH_DEFAULT = (
    "recursively_create_dir",
    "delete_recursively",
    "rename_file",
    "copy_file",
    "paths_exist",
    "is_directory",
    "get_file_size",
    "get_matching_paths",
)

_SIZES = (1, 1 << 20)
_SAMPLE = 0x5A


@CHECKS.check("FS-130", Level.LOADS, passes=LIBRARY, rows=(30,), seconds=10)
def init_plugin_returns(ground: LibraryGround) -> None:
    """Call it; the process tells if it does not return."""
    try:
        ground.call_init_plugin()
    except PluginError as error:
        raise Blocked(f"{error.message}: see {error.rule}") from error


@CHECKS.check("LD-051", Level.LOADS, passes=LIBRARY, rows=(4,))
def init_plugin_is_code(ground: LibraryGround) -> None:
    """Call it, and see whether there is something to call."""
    _calls_unless(ground, "LD-051")


@CHECKS.check("LD-052", Level.LOADS, passes=LIBRARY, rows=(30,))
def init_plugin_throws_nothing(ground: LibraryGround) -> None:
    """Call it, and see whether an exception comes out."""
    _calls_unless(ground, "LD-052")


def _calls_unless(ground: LibraryGround, rule_id: str) -> None:
    """Call `TF_InitPlugin` where that is no danger; demand that it does not break a rule."""
    ground.library()
    trial = ground.trial
    if not trial.returned and not trial.refused:
        raise Blocked("TF_InitPlugin does not return: see FS-130")
    try:
        ground.call_init_plugin()
    except PluginError as error:
        if error.rule != rule_id:
            raise Blocked(f"{error.message}: see {error.rule}") from error
        raise Deviation(error.message) from error


@CHECKS.check("FS-105", Level.REGISTERS, passes=LIBRARY, rows=(5,))
def writes_beside_nothing(ground: LibraryGround) -> None:
    """Lend it 32 bytes with guards on both sides."""
    breach = ground.registration().breach
    expect(breach is None, "TF_InitPlugin wrote beside the info struct", found=breach or "")


@CHECKS.check("FS-129", Level.REGISTERS, passes=LIBRARY, rows=(29,))
def everything_can_be_freed(ground: LibraryGround) -> None:
    """Free block by block what another call leaves; the process tells if that is wrong.

    A block that cannot have been allocated is left to FS-022.
    """
    registration = ground.fresh_registration()
    if not registration.has_functions:
        raise Blocked("the memory functions are NULL: see FS-001 and FS-002")
    for block in {block.address: block for block in registration.allocated_blocks()}.values():
        ground.journal.enter(f"plugin_memory_free({block.name})")
        registration.free(block.address)
        raise_harm_to_heap(HeapWatch(), f"plugin_memory_free({block.name})", "FS-129", Depth.TOLD)


@CHECKS.check("FS-108", Level.REGISTERS, passes=LIBRARY, rows=(7, 8))
def memory_functions_work(ground: LibraryGround) -> None:
    """Allocate nothing, a byte and a MiB, write to them, free them, and free NULL."""
    registration = ground.registration()
    if not registration.has_functions:
        raise Blocked("the memory functions are NULL: see FS-001 and FS-002")
    blocks = []
    for size in (0, *_SIZES):
        ground.journal.enter(f"plugin_memory_allocate({size})")
        blocks.append((registration.allocate(size), size))
    for address, size in blocks[1:]:
        expect(address, f"plugin_memory_allocate({size}) gives NULL", expected="memory")
        fill(address, size, _SAMPLE)
    given = [address for address, _ in blocks if address]
    expect_equal(len(set(given)), len(given), "the number of different blocks")
    for address in (*given, 0):
        ground.journal.enter(f"plugin_memory_free({address:#x})")
        registration.free(address)


# -- what the host says ---------------------------------------------------------------------------

_HOST_RULES: dict[str, tuple[int, ...]] = {
    "FS-001": (7,),
    "FS-002": (7,),
    "FS-003": (9,),
    "FS-004": (9,),
    "FS-005": (9,),
    "FS-006": (10,),
    "FS-007": (11,),
    "FS-008": (21,),
    "FS-009": (15,),
    "FS-010": (17,),
    "FS-011": (20,),
    "FS-012": (20,),
    "FS-013": (21,),
    "FS-014": (21,),
    "FS-015": (22,),
    "FS-016": (25,),
    "FS-017": (12,),
    "FS-020": (23,),
    "FS-021": (19,),
    "FS-022": (26,),
}
_OF_THE_WHOLE = frozenset({"FS-001", "FS-002", "FS-003", "FS-004", "FS-005"})
"""Where one of them is broken, the host looks at no scheme."""


def _asks_the_host(rule_id: str) -> Callable[[LibraryGround], None]:
    def check(ground: LibraryGround) -> None:
        found = ground.violations()
        for subject, violation in found:
            if violation.rule_id == rule_id:
                where = f"{subject}: " if subject else ""
                raise Deviation(f"{where}{violation.message}")
        hidden = {violation.rule_id for _, violation in found} & _OF_THE_WHOLE
        if rule_id not in _OF_THE_WHOLE and hidden:
            raise Blocked(f"there is no scheme to look at: see {', '.join(sorted(hidden))}")

    return check


for _rule, _rows in _HOST_RULES.items():
    CHECKS.check(_rule, Level.REGISTERS, passes=LIBRARY, rows=_rows)(_asks_the_host(_rule))


@CHECKS.check("FS-114", Level.REGISTERS, passes=LIBRARY, rows=(14,))
def all_schemes_or_none(ground: LibraryGround) -> None:
    """Compare what the host makes of the schemes of one plugin."""
    entries = ground.offer().entries
    accepted = [entry for entry in entries if isinstance(entry, FilesystemTables)]
    refused = [entry.scheme for entry in entries if not isinstance(entry, FilesystemTables)]
    expect(
        not (accepted and refused),
        "some schemes of the plugin are refused, others serve",
        found=f"served: {[entry.scheme for entry in accepted]}, refused: {refused}",
    )


@CHECKS.check("FS-019", Level.REGISTERS, passes=LIBRARY, rows=(33,))
def init_succeeds(ground: LibraryGround) -> None:
    """Initialise each scheme as the host does, and clean it up again."""
    for tables in ground.tables():
        ground.journal.enter(f"init of scheme {tables.scheme!r}")
        try:
            filesystem, _ = open_filesystem(
                tables, plugin="the plugin", path=ground.target.path, bundled=False
            )
        except ModularTFError as error:
            message = f"init of scheme {tables.scheme!r} failed"
            raise Deviation(message, expected="OK", found=error.message) from error
        ground.journal.enter(f"cleanup of scheme {tables.scheme!r}")
        filesystem.close()


# -- what it leaves, beyond that ------------------------------------------------------------------


@CHECKS.check("FS-106", Level.REGISTERS, passes=LIBRARY, rows=(6,))
def called_twice(ground: LibraryGround) -> None:
    """Call it again, and compare schemes, versions, sizes and slots."""
    first = ground.registration()
    second = ground.second_registration()
    expect_equal(second.num_schemes, first.num_schemes, "num_schemes of the second call")
    for before, after in zip(first.entries, second.entries, strict=False):
        expect_equal(after.facts, before.facts, f"ops[{after.index}] of the second call")


@CHECKS.check("FS-116", Level.REGISTERS, passes=LIBRARY, rows=(16,))
def no_versions_of_absent_tables(ground: LibraryGround) -> None:
    """Look at the version fields of tables that are NULL."""
    for entry in ground.entries():
        for field in TABLES:
            table = entry.table(field)
            message = f"ops[{entry.index}].{field} is NULL and has a version"
            versions = (table.abi, table.api)
            expect(table.address or versions == (0, 0), message, found=f"ABI and API {versions}")


@CHECKS.check("FS-118", Level.REGISTERS, passes=LIBRARY, rows=(18,))
def sizes_are_set(ground: LibraryGround) -> None:
    """Look at the sizes of tables that are there."""
    for entry in ground.entries():
        for field in TABLES:
            table = entry.table(field)
            message = f"ops[{entry.index}].{field}_size is 0, though the table is there"
            expect(not table.address or table.size, message)


# -- what is in the tables ------------------------------------------------------------------------


@CHECKS.check("FS-111", Level.REGISTERS, passes=LIBRARY, rows=(11,))
def schemes_in_lower_case(ground: LibraryGround) -> None:
    """Look at the text of each scheme."""
    for entry in ground.entries():
        scheme = entry.scheme or ""
        expect_equal(scheme, scheme.lower(), f"the scheme of ops[{entry.index}]")


@CHECKS.check("FS-113", Level.REGISTERS, passes=LIBRARY, rows=(13,))
def schemes_of_its_own(ground: LibraryGround) -> None:
    """Compare the schemes with those of TensorFlow."""
    own = {entry.scheme for entry in ground.entries()}
    known = read_table("check/filesystem/tensorflow_schemes.toml")["schemes"]
    taken = [scheme for scheme in known if scheme in own]
    expect(not taken, "TensorFlow has a filesystem of its own for a scheme", found=repr(taken))


@CHECKS.check("FS-119", Level.REGISTERS, passes=LIBRARY, rows=(19,))
def tables_of_this_header(ground: LibraryGround) -> None:
    """Look at the size of TF_FilesystemOps; a larger one is FS-021."""
    for tables in ground.tables():
        table = tables.tables[FILESYSTEM_OPS.name]
        lost = [slot.name for slot in FILESYSTEM_OPS.slots if slot.name not in table.slots]
        expect(
            not lost,
            f"the table of scheme {tables.scheme!r} is of another header",
            expected=f"{FILESYSTEM_OPS.size} bytes",
            found=f"{table.size} bytes, without {', '.join(lost)}",
        )


@CHECKS.check("FS-122", Level.REGISTERS, passes=LIBRARY, rows=(22,))
def tables_are_used(ground: LibraryGround) -> None:
    """Look for tables that nothing opens."""
    for tables in ground.tables():
        for name, openers in _OPENERS.items():
            used = name not in tables.tables or any(map(tables.offers, openers))
            what = f"scheme {tables.scheme!r} has {name}, and nothing that opens such"
            expect(used, what, expected=" or ".join(openers))


@CHECKS.check("FS-124", Level.REGISTERS, passes=LIBRARY, rows=(24,))
def defaults_have_what_they_need(ground: LibraryGround) -> None:
    """Look for operations that neither the plugin offers nor the host can make up."""
    for tables in ground.tables():
        has = partial(has_slot, tables)
        lost = [slot for slot in _WITH_DEFAULT if not host_offers(has, slot)]
        empty = [slot.name for slot in FILESYSTEM_OPS.slots[:_OLDEST] if not has(slot.name)]
        expect(
            not lost,
            f"scheme {tables.scheme!r} cannot {', '.join(lost)}",
            found=f"NULL are {', '.join(empty)}",
        )
