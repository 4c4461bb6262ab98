"""`modular-tf headers`: where authors point their compiler, and CMake."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.cli.exit_codes import Exit


@pytest.mark.parametrize(
    ("option", "file"),
    [
        ("--include", "modular_tf/filesystem.h"),
        ("--include", "modular_tf/dlpack.h"),
        ("--cmake", "modular_tf-config.cmake"),
    ],
)
def test_one_directory_alone(mtf, option, file):
    ended = mtf("headers", option)

    assert ended.code == Exit.DONE
    (directory,) = ended.lines
    assert Path(directory, file).is_file()


def test_both(mtf):
    included, cmake = mtf("headers", "--include").lines + mtf("headers", "--cmake").lines

    assert mtf("headers").lines == [f"include\t{included}", f"cmake\t{cmake}"]
    found = mtf("headers", "--json").object
    assert (found["include"], found["cmake"]) == (included, cmake)
