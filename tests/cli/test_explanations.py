"""`inspect` and `why`."""

from pathlib import Path

import pytest

from modular_tf.abi.layouts import FILESYSTEM_OPS
from modular_tf.check.catalogue import all_rules
from modular_tf.cli.inspection import HOST_DEFAULTS
from modular_tf.errors import UnimplementedError
from modular_tf.filesystem.configuration import Option, Transaction
from modular_tf.filesystem.filesystem import Filesystem

_DOCS = Path(__file__).parents[2] / "docs"


def test_inspect_shows_what_the_bytes_say_and_every_slot(mtf):
    plugin = mtf("inspect", "ram_filesystem", "--json").object["plugin"]
    unloaded = mtf("inspect", "ram_filesystem", "--no-load", "--json").object["plugin"]

    probe = plugin["probe"]
    assert (probe["loadable"], probe["missing_symbols"]) == (True, [])
    assert probe["elf"]["init_symbols"] == ["TF_InitPlugin"]
    assert "libc.so.6" in probe["elf"]["needed"]
    assert "malloc" in probe["undefined"]["c_library"]
    assert [table["struct"] for table in plugin["tables"]][:2] == [
        "TF_FilesystemOps", "TF_RandomAccessFileOps",
    ]  # fmt: skip
    slots = {slot["slot"]: slot for slot in plugin["tables"][0]["slots"]}
    assert [slot["offset"] for slot in slots.values()] == list(range(0, 264, 8))
    assert (slots["stat"]["is"], slots["stat"]["library"]) == ("present", plugin["path"])
    assert slots["get_matching_paths"]["is"] == "default"
    absent = slots["start_transaction"]
    assert absent.pop("slot") == "start_transaction"
    assert absent == {"offset": 176, "is": "absent"} | dict.fromkeys(
        ("symbol", "symbol_offset", "library")
    )
    assert (unloaded["state"], unloaded["tables"]) == ("found", [])


def test_inspect_for_people_holds_the_same_facts(mtf):
    ended = mtf("inspect", "ram_filesystem")
    lines = ended.lines

    assert ended.code == 0
    assert "schemes\tram" in lines
    assert any(line.startswith("needs\tlib") for line in lines)
    assert any(line.startswith("start_transaction\t176\tabsent") for line in lines)
    assert any(line.startswith("stat\t120\tpresent") for line in lines)
    # A hidden function is named by its place, and no library but another one.
    slots = [line.split("\t") for line in lines[lines.index("") :] if "\t" in line]
    functions = {slot: (function, library) for slot, _, _, function, library in slots}
    assert functions["stat"][0].startswith("libram_filesystem.so+0x")
    assert functions["get_matching_paths"][0] == ""
    assert {library for _, library in functions.values()} == {""}
    # Names of C++ are as their authors wrote them.
    shown = next(line for line in lines if line.startswith("from cxx"))
    assert "std::bad_alloc::~bad_alloc" in shown
    assert "_Z" not in shown


def test_inspect_shows_the_tables_of_a_device_plugin(mtf):
    plugin = mtf("inspect", "host_device", "--json").object["plugin"]

    structs = [table["struct"] for table in plugin["tables"]]
    assert structs == ["SP_PlatformFns", "SP_DeviceFns", "SP_StreamExecutor"]
    slots = {slot["slot"]: slot["is"] for slot in plugin["tables"][2]["slots"]}
    assert slots["allocate"] == "present"


def test_inspect_takes_a_path_that_nobody_found(mtf, fixture_plugin):
    path = fixture_plugin("unresolved-symbol")
    plugin = mtf("inspect", path, "--json").object["plugin"]

    assert plugin["path"] == str(path)
    assert plugin["state"] == "rejected"
    assert [reason["rule"] for reason in plugin["reasons"]] == ["LD-014"]
    assert plugin["probe"]["missing_symbols"]


OPERATIONS = [slot.name for slot in FILESYSTEM_OPS.slots if slot.name not in {"init", "cleanup"}]


class Empty(Filesystem):
    """Offers nothing by itself; notes which operation the host's default asked for instead."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_called_a_default_is_one(operation):
    empty = Empty("a", "empty")
    option = Option("key", (1,))
    arguments = {
        "rename_file": ("a://x", "a://y"),
        "copy_file": ("a://x", "a://y"),
        "paths_exist": (["a://x"],),
        "flush_caches": (),
        "start_transaction": (),
        "end_transaction": (None,),
        "decode_transaction_token": (Transaction(empty, None),),
        "add_to_transaction": ("a://x", None),
        "get_filesystem_configuration": (),
        "get_filesystem_configuration_keys": (),
        "set_filesystem_configuration": ([option],),
        "set_filesystem_configuration_option": (option,),
    }
    refused = None
    try:
        getattr(empty, operation)(*arguments.get(operation, ("a://x",)))
    except UnimplementedError as error:
        refused = error.operation
    except FileNotFoundError:
        pass  # a default that searched, or was to set something, and did not find it

    assert (refused == operation) == (operation not in HOST_DEFAULTS)


def test_why_explains_what_serves_and_is_1_for_what_is_absent(mtf):
    served, absent = mtf("why", "ram"), mtf("why", "gs")

    assert (served.code, absent.code) == (0, 1)
    assert "ram_filesystem" in served.lines[0]
    assert mtf("why", "ram", "--json").object["lines"] == served.lines
    assert "nothing is named 'gs'" in absent.lines[0]
    assert any("tensorflow-io-gcs-filesystem" in line for line in absent.lines)
    assert not mtf("why", "gs", "--json").object["known"]


@pytest.mark.parametrize(
    ("rule_id", "judge"),
    [
        ("FS-013", "judged by: the host"),
        ("fs-222", "`modular-tf check PLUGIN --only FS-222`"),
        ("FS-187", "`capacity_option`"),  # the setting that makes it run
    ],
)
def test_why_prints_the_page_of_a_rule_and_what_judges_by_it(mtf, rule_id, judge):
    rule = all_rules()[rule_id.upper()]
    shown = mtf("why", rule_id)
    given = mtf("why", rule_id, "--json").object

    assert shown.code == 0
    assert shown.lines[0] == f"rule {rule.id} (must): {rule.requirement}"
    assert f"  if not: {rule.consequence}" in shown.lines
    assert f"  remedy: {rule.remedy}" in shown.lines
    assert f"  source: {rule.source}" in shown.lines
    assert judge in "".join(shown.lines[4:])
    assert (given["name"], given["known"]) == (rule.id, True)
    assert given["rule"] == {
        "id": rule.id,
        "requirement": rule.requirement,
        "severity": "error",
        "consequence": rule.consequence,
        "remedy": rule.remedy,
        "source": rule.source,
    }


def test_what_is_not_there_is_1_with_what_is_near(mtf):
    plugin, rule = mtf("inspect", "nobody"), mtf("why", "FS-0133")

    assert (plugin.code, plugin.out) == (1, b"")
    assert "no plugin 'nobody'" in plugin.err
    assert "ram_filesystem" in plugin.err
    assert (rule.code, rule.lines[0]) == (1, "there is no rule FS-0133")
    assert "FS-013" in rule.lines[1]
    assert mtf("why", "FS-0133", "--json").object["known"] is False
