"""`modular-tf headers`: where authors point their compiler, and CMake."""

import subprocess
from pathlib import Path

import pytest

from modular_tf.cli.process import Exit


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


def test_a_compiler_takes_it_as_it_is(mtf, tmp_path):
    source = tmp_path / "header.c"
    source.write_text('#include "modular_tf/filesystem.h"\n')
    (directory,) = mtf("headers").lines

    done = subprocess.run(["cc", "-fsyntax-only", f"-I{directory}", source], check=False)
    assert done.returncode == 0


def test_both_are_there_for_programs(mtf):
    included, cmake = mtf("headers").lines + mtf("headers", "--cmake").lines

    found = mtf("headers", "--json").object
    assert (found["include"], found["cmake"]) == (included, cmake)
