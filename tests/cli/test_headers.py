"""`modular-tf headers`: where authors point their compiler, and CMake."""

import subprocess
from pathlib import Path

from modular_tf.cli.process import Exit


def test_a_compiler_and_cmake_find_what_they_need_there(mtf, tmp_path):
    source = tmp_path / "header.c"
    source.write_text('#include "modular_tf/filesystem.h"\n#include "modular_tf/dlpack.h"\n')
    ended, (cmake,) = mtf("headers"), mtf("headers", "--cmake").lines
    (include,) = ended.lines

    assert ended.code == Exit.DONE
    assert mtf("headers", "--include").lines == [include]
    done = subprocess.run(["cc", "-fsyntax-only", f"-I{include}", source], check=False)
    assert done.returncode == 0
    assert Path(cmake, "modular_tf-config.cmake").is_file()
    found = mtf("headers", "--json").object
    assert (found["include"], found["cmake"]) == (include, cmake)
