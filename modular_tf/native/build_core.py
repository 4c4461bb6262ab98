"""Write the sources of `modular_tf.native._core` that follow from the core's own headers.

Usage: build_core.py FOLDER HEADER.h...

`_core.c` is cffi's module. The headers are ordinary C. cffi reads declarations only, so
preprocessor lines and the `extern "C"` wrapper are dropped; the compiler still sees the headers
whole, through #include, and so checks every declaration that cffi was given.

Functions named `mtf_upcall_*` are Python's: C calls them.

`_barrier.cc` has a function for each one that the headers declare, which no exception leaves
(`core/barrier.h`), and `_barrier.h` has the module call that one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cffi

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"\b(mtf_(?!upcall_)\w+)\(")  # not pointers: they are called as (*name)
_UPCALL = re.compile(r"^[^\s#/*][^;{}]*\bmtf_upcall_\w+\([^;]*;", re.MULTILINE)


def declarations(header: str) -> str:
    """Return what cffi may read of a header's text."""
    kept = []
    depth = 0  # of conditions within those for C++
    continued = False
    for line in header.splitlines():
        stripped = line.strip()
        if depth or stripped.startswith("#ifdef __cplusplus"):
            depth += stripped.startswith("#if") - stripped.startswith("#endif")
        elif not stripped.startswith("#") and not continued:
            kept.append(line)
        continued = (stripped.startswith("#") or continued) and stripped.endswith("\\")
    return "\n".join(kept)


def functions(header: str) -> list[str]:
    """Return the names of the functions that a header's text declares."""
    return _FUNCTION.findall(_COMMENT.sub("", declarations(header)))


def _guarded(name: str) -> str:
    return name.replace("mtf_", "mtf_guarded_", 1)


def barrier_header(names: list[str]) -> str:
    """Return the source that replaces functions by the guarded ones."""
    declared = [f"extern __typeof__({name}) *const {_guarded(name)};" for name in names]
    replaced = [f"#define {name} {_guarded(name)}" for name in names]
    return "\n".join([*declared, *replaced, ""])


def barrier_source(names: list[str], includes: str) -> str:
    """Return the source of the guarded functions."""
    defined = [
        f'extern "C" __typeof__({name})* const {_guarded(name)} = mtf::Barrier<{name}>::call;'
        for name in names
    ]
    return "\n".join([includes, '#include "barrier.h"', *defined, ""])


def main() -> None:
    """Write the sources into the folder that the command line names."""
    folder, *headers = (Path(argument) for argument in sys.argv[1:])
    includes = "\n".join(f'#include "{header.name}"' for header in headers)
    ffi = cffi.FFI()
    names: list[str] = []
    for header in headers:
        declared = _COMMENT.sub("", declarations(header.read_text()))
        ffi.cdef(_UPCALL.sub("", declared))
        for upcall in _UPCALL.findall(declared):
            ffi.cdef(f'extern "Python+C" {upcall}')
        names += functions(header.read_text())
    (folder / "_barrier.h").write_text(barrier_header(names))
    (folder / "_barrier.cc").write_text(barrier_source(names, includes))
    ffi.set_source("_core", f'{includes}\n#include "_barrier.h"')
    ffi.emit_c_code(str(folder / "_core.c"))


if __name__ == "__main__":
    main()
