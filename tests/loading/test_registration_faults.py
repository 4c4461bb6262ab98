"""A plugin with a fault is refused with its reason, and everything else is loaded all the same."""

import re

import pytest

from modular_tf.errors import PluginError
from modular_tf.loading.filesystem_tables import init_filesystems
from modular_tf.native.library import Library
from modular_tf.rules import rule
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import link_library, object_of_text
from tests.loading.conftest import odd_plugin
from tests.plugins.matrix import variants

_VARIANTS = [
    variant
    for variant in variants("filesystem").values()
    if variant.fault is None and variant.stage in ("probe", "validation")
]
# The message names the field, what it should be and what it is. Variants are named by table and
# property.
_FIELDS = {
    "filesystem": "filesystem_ops",
    "random-access": "random_access_file_ops",
    "writable": "writable_file_ops",
    "region": "read_only_memory_region_ops",
}
_NAMED = {  # those that are named otherwise
    "allocator-null": "plugin_memory_allocate: expected a function, found NULL",
    "free-null": "plugin_memory_free: expected a function, found NULL",
    "ops-null": "TF_FilesystemPluginInfo.ops: expected 1 entries, found NULL",
    "schemes-none": "num_schemes: expected at least 1, found 0",
    "scheme-null": "TF_FilesystemPluginOps.scheme: expected a string, found NULL",
    "filesystem-table-null": "filesystem_ops: expected a table, found NULL",
    "init-null": "TF_FilesystemOps.init: expected a function, found NULL",
    "cleanup-null": "TF_FilesystemOps.cleanup: expected a function, found NULL",
    "random-access-cleanup-null": "TF_RandomAccessFileOps.cleanup: expected .*, found NULL",
    "writable-cleanup-null": "TF_WritableFileOps.cleanup: expected a function, found NULL",
    "region-cleanup-null": "TF_ReadOnlyMemoryRegionOps.cleanup: expected .*, found NULL",
    "region-data-null": "TF_ReadOnlyMemoryRegionOps.data: expected a function, found NULL",
    "region-length-null": "TF_ReadOnlyMemoryRegionOps.length: expected a function, found NULL",
    "slot-not-code": "TF_FilesystemOps.stat: expected a function, found 0x[0-9a-f]+, .* not code",
    "reader-without-table": "random_access_file_ops: expected .*new_random_access_file is set",
    "writer-without-table": "writable_file_ops: expected .*new_writable_file is set, found NULL",
    "appender-without-table": "writable_file_ops: expected .*new_appendable_file is set",
    "region-without-table": "memory_region_ops: expected .*_region_from_file is set, found NULL",
    "file-slots-null": "TF_RandomAccessFileOps.read: expected a function, found NULL",
    "init-fails": "scheme 'fixture': .*the store is down",
    "scheme-twice": "scheme 'fixture' stands twice",
    "two-schemes-second-bad": "scheme 'fixture2': .*TF_FilesystemOps.cleanup",
    "two-schemes-first-bad": "scheme 'fixture': .*TF_FilesystemOps.cleanup",
    "no-init": "TF_InitPlugin",
    "unresolved-symbol": "TF_NobodyDefinesThis",
    "needed-missing": r"libnobody_has_this\.so\.1",
}


def named_in_message(variant):
    """Return what the message on a variant has to say, as a pattern."""
    if variant.name in _NAMED:
        return _NAMED[variant.name]
    found = re.fullmatch("(.*)-(size|abi|api)(?:-([0-9]+))?", variant.name)
    table, field, size = found.groups()
    return rf"{_FIELDS[table]}_{field}: expected .*, found {size or '[17]'}\b"


@pytest.mark.parametrize("variant", _VARIANTS, ids=str)
def test_a_fault_has_a_reason(variant, fixture_plugin):
    with PluginService(plugin_paths=[fixture_plugin(variant.name)], bundled=False) as service:
        (record,) = service.load().plugins
    refused = variant.state != "loaded"
    broken = rule(variant.rule)
    reported = record.reasons if broken.severity.value == "error" else record.warnings

    assert record.state.value == variant.state
    assert {reason.rule for reason in reported} == {variant.rule}
    for reason in reported:
        assert reason.remedy == broken.remedy or (reason.remedy and reason.stage == "probe")
        assert reason.stage == ("probe" if variant.stage == "probe" else "init")
    assert bool(record.schemes) is (not refused and variant.rule != "FS-005")
    messages = "\n".join(reason.message for reason in (*record.reasons, *record.warnings))
    assert re.search(named_in_message(variant), messages), messages


@pytest.mark.parametrize(
    ("variant", "good"),
    [("two-schemes-first-bad", "fixture2"), ("two-schemes-second-bad", "fixture")],
)
def test_one_good_scheme_beside_a_bad_one_serves(variant, good, fixture_plugin):
    with PluginService(plugin_paths=[fixture_plugin(variant)], bundled=False) as service:
        (record,) = service.load().plugins

        assert record.schemes == (good,)
        assert record.reason.rule == "FS-013"
        service.filesystem(good).create_dir(f"{good}://h/made")


def test_a_library_that_vanishes_after_the_probe_is_a_reason(fixture_plugin, tmp_path):
    plugin = tmp_path / "libgone.so"
    plugin.write_bytes(fixture_plugin("good").read_bytes())
    with PluginService(plugin_paths=[plugin]) as service:
        service.discover()
        plugin.unlink()
        record = service.load()["gone"]

        assert record.state is State.FAILED
        assert (record.reason.stage, record.reason.rule) == ("load", "LD-050")
        assert str(plugin) in record.reason.message
        assert "ram" in service.schemes()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("lib\udcffé" + "é" * 100, id="long, in no encoding"),
        "$ORIGIN/libodd",  # what means something to the dynamic linker is taken by its letters
        "a $LIB b/libodd",
        "with:colon/libodd",
        "blank and ünïcode/libodd",
    ],
)
def test_a_library_with_an_odd_name_loads(name, fixture_plugin, tmp_path):
    plugin = tmp_path / f"{name}.so"
    plugin.parent.mkdir(exist_ok=True)
    plugin.write_bytes(fixture_plugin("good").read_bytes())
    with PluginService(plugin_paths=[plugin], bundled=False) as service:
        (record,) = service.load().plugins

    assert (record.state, record.schemes) == (State.LOADED, ("fixture",))


# -- pointers to nowhere, and memory that cannot be freed ------------------------------------------


@pytest.mark.parametrize(
    ("oddity", "rules", "schemes"),
    [
        ("", set(), ["odd", "odd2"]),
        ("ODD_ABSURD_COUNT", {"FS-004"}, []),
        ("ODD_OPS_NOT_MAPPED", {"FS-003", "FS-022"}, []),
        ("ODD_TABLE_NOT_MAPPED", {"FS-012", "FS-022"}, ["odd2"]),
        ("ODD_SCHEME_NOT_MAPPED", {"FS-006", "FS-022"}, ["odd2"]),
        ("ODD_STATIC_MEMORY", {"FS-022"}, ["odd", "odd2"]),
        ("ODD_SHARED_TABLE", {"FS-022"}, ["odd", "odd2"]),
        ("ODD_FREE_NOT_CODE", {"FS-016"}, []),
    ],
)
def test_a_wild_pointer_costs_its_scheme_only(oddity, rules, schemes, load_in_child):
    found = load_in_child(odd_plugin(*filter(None, [oddity])))

    assert {reason["rule"] for reason in found["reasons"]} == rules
    assert found["schemes"] == schemes
    assert oddity or found["state"] == "loaded"
    for reason in found["reasons"]:
        assert reason["remedy"] == rule(reason["rule"]).remedy
        assert reason["fatal"] is (reason["rule"] != "FS-022")
        assert re.search(r"expected .*found ", reason["message"])


@pytest.mark.parametrize("scheme", ["x", "s3-x", "x://", "9a", "with space", "a+b", "ü1", "a\\n"])
def test_a_scheme_that_no_uri_can_name_is_refused(scheme):
    with PluginService(plugin_paths=[odd_plugin(scheme=scheme)], bundled=False) as service:
        (record,) = service.load().plugins

    assert record.reason.rule == "FS-007"
    expected = "expected a letter, then 1 to 999 letters, digits or dots, found"
    assert expected in record.reason.message


# -- schemes that are taken ------------------------------------------------------------------------


def test_the_first_of_two_plugins_keeps_the_scheme_and_the_second_is_never_initialised(
    fixture_plugin, plugin_report, run_forked
):
    first, second = fixture_plugin("good"), fixture_plugin("needed-none")
    run_forked(
        """
        import sys
        from modular_tf.service.service import PluginService
        service = PluginService(plugin_paths=sys.argv[1:], bundled=False)
        service.load()
        first, second = service.plugins()
        assert first.schemes == ("fixture",), first
        assert second.state.value == "shadowed", second
        assert (second.reason.rule, second.reason.stage) == ("FS-018", "register"), second
        for name in (first.name, second.name, "'fixture'"):
            assert name in second.reason.message, second
        service.close()
        """,
        first,
        second,
        env=plugin_report.environment,
    )

    assert sorted(book["inits"] for book in plugin_report.processes()) == [0, 1]


@pytest.mark.parametrize("text", ["const int unrelated = 1;", "const int TF_InitPlugin = 1;"])
def test_an_entry_that_is_no_function_is_not_called(text):
    """Though a probe had let it pass."""
    library = Library.open(str(link_library("libentry.so", [object_of_text(text)])))

    with pytest.raises(PluginError, match="TF_InitPlugin is not a function") as caught:
        init_filesystems(library, plugin="entry")

    assert caught.value.rule == "LD-051"
