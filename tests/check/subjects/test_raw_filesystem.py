"""The raw subject: what a plugin's slots answer, with nothing in between."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.filesystem.by_slots import default_name
from modular_tf.filesystem.filesystem import Filesystem
from tests.check.subjects.conftest import FILE


def test_all_that_the_plugin_gave_is_given_back(run_forked, fixture_plugin, plugin_report):
    run_forked(
        """
        import sys
        from modular_tf.check.filesystem.by_slots import open_raw
        from modular_tf.loading.binding import map_file
        from modular_tf.loading.filesystem_tables import init_filesystems
        offer = init_filesystems(map_file(sys.argv[1], ()), plugin="fixture")
        filesystem = open_raw(offer.entries[0])
        filesystem.new_writable_file("fixture://h/file").value.cleanup()
        filesystem.get_children("fixture://h")
        filesystem.get_matching_paths("fixture://h/*")
        filesystem.get_filesystem_configuration()
        filesystem.translate_name("fixture://h/x")
        filesystem.cleanup()
        """,
        fixture_plugin("good"),
        env=plugin_report.environment,
    )
    counted = plugin_report.last()

    assert counted["allocated"] == counted["freed"] > 0
    assert counted["bad_frees"] == 0
    assert counted["files_opened"] == counted["files_cleaned_up"] == 1


def test_a_poisoned_status_is_an_error_where_nobody_sets_it(raw_filesystem):
    filesystem, silent = raw_filesystem(), raw_filesystem("status-untouched")
    with filesystem.poisoned(), silent.poisoned():
        assert filesystem.path_exists(FILE).code == 0
        assert filesystem.paths_exist([FILE]).value == [0]
        answer = silent.path_exists(FILE)

    assert (answer.code, answer.touched) == (Code.UNKNOWN, False)
    answer = silent.path_exists(FILE)
    assert (answer.code, answer.touched, answer.message) == (0, False, "")
    assert filesystem.path_exists(FILE).touched is True
    assert filesystem.paths_exist([FILE]).touched is True
    assert raw_filesystem("paths-exist-silent").paths_exist([FILE]).touched is False


@pytest.mark.parametrize(
    "uri",
    ["", "//a//b/../c/", "zz://", "zz://h/p/./q", "a://h/p", "zz://h/%2e?x"],
)
def test_without_translate_name_the_rule_stands_in(uri):
    assert default_name(uri) == Filesystem("zz", "host").translate_name(uri)
