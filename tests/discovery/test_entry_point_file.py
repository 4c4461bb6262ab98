"""`entry_points.txt` is read group by group, and what others wrote there does not matter."""

import importlib_metadata
import pytest

from modular_tf.discovery.sources.installed import entries_of_group

GROUP = "modular_tf.plugins"


def test_only_the_group_counts_though_it_stands_in_two_parts():
    content = b"""
        [console_scripts]
        spam = spam:main
        no value at all
        [modular_tf.plugins]
        # a comment
        ; another
        files = spam_fs:lib/lib=spam.so
        [modular_tf.hooks]
        policy = spam.policy:Policy
        [ modular_tf.plugins ]\r
        folder=spam_fs\r
    """

    entries = [("files", "spam_fs:lib/lib=spam.so"), ("folder", "spam_fs")]
    assert entries_of_group(content, GROUP) == entries
    assert entries_of_group(content, "modular_tf.hooks") == [("policy", "spam.policy:Policy")]
    assert entries_of_group(b"a = b\n", GROUP) == entries_of_group(b"", GROUP) == []


def test_importlib_metadata_reads_the_same(tmp_path):
    """Where it accepts the values, which must be those of objects for some of its versions."""
    content = (
        "# a comment\n[modular_tf.plugins]\n  one = pkg:libx\ntwo=pkg [extra]\r\n\n"
        "[other]\nx = y:z\n[modular_tf.plugins]\nthree   =   a.b.c\n"
    )
    (tmp_path / "pkg-1.0.dist-info").mkdir()
    (tmp_path / "pkg-1.0.dist-info" / "entry_points.txt").write_bytes(content.encode())
    theirs = importlib_metadata.Distribution.at(tmp_path / "pkg-1.0.dist-info").entry_points

    assert entries_of_group(content.encode(), GROUP) == [
        (entry.name, entry.value) for entry in theirs if entry.group == GROUP
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"no_equals_sign", "line 2: expected 'name = value', found 'no_equals_sign'"),
        (b"= no_name", "line 2: expected 'name = value', found '= no_name'"),
        (b"x = \xff", "utf-8"),
    ],
)
def test_a_line_without_name_or_value_and_what_is_no_text_are_errors(line, words):
    with pytest.raises(ValueError, match=words):
        entries_of_group(b"[modular_tf.plugins]\n" + line + b"\n", GROUP)
