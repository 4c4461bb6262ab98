"""`entry_points.txt` is read group by group, and what others wrote there does not matter."""

import importlib_metadata
import pytest

from modular_tf.discovery.sources.installed import entries_of_group

GROUP = "modular_tf.plugins"


def test_only_the_group_counts():
    content = b"""
        [console_scripts]
        spam = spam:main
        no value at all
        [modular_tf.plugins]
        # a comment
        ; another
        files = spam_fs:lib/lib=spam.so
        folder=spam_fs
        [modular_tf.hooks]
        policy = spam.policy:Policy
    """

    assert entries_of_group(content, GROUP) == [
        ("files", "spam_fs:lib/lib=spam.so"),
        ("folder", "spam_fs"),
    ]
    assert entries_of_group(content, "modular_tf.hooks") == [("policy", "spam.policy:Policy")]


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


def test_a_group_may_stand_in_two_parts_and_be_absent():
    content = b"[ modular_tf.plugins ]\r\na=b\r\n[x]\r\n[modular_tf.plugins]\r\nc = d\r\n"

    assert entries_of_group(content, GROUP) == [("a", "b"), ("c", "d")]
    assert entries_of_group(b"a = b\n", GROUP) == []
    assert entries_of_group(b"", GROUP) == []


@pytest.mark.parametrize("line", ["no_equals_sign", "= no_name"])
def test_a_line_without_name_or_value_is_told(line):
    with pytest.raises(ValueError, match=f"line 2: expected 'name = value', found '{line}'"):
        entries_of_group(f"[{GROUP}]\n{line}\n".encode(), GROUP)


def test_bytes_that_are_no_text_are_told():
    with pytest.raises(ValueError, match="utf-8"):
        entries_of_group(b"[modular_tf.plugins]\nx = \xff\n", GROUP)
