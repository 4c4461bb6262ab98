"""Write the C source of `modular_tf.native._core` from the core's own headers.

Usage: build_core.py OUTPUT.c HEADER.h...

The headers are ordinary C. cffi reads declarations only, so preprocessor lines and the
`extern "C"` wrapper are dropped; the compiler still sees the headers whole, through #include,
and so checks every declaration that cffi was given.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cffi


def declarations(header: str) -> str:
    """Return what cffi may read of a header's text."""
    kept = []
    in_cplusplus = False
    continued = False
    for line in header.splitlines():
        stripped = line.strip()
        if stripped.startswith("#ifdef __cplusplus"):
            in_cplusplus = True
        elif in_cplusplus:
            in_cplusplus = not stripped.startswith("#endif")
        elif not stripped.startswith("#") and not continued:
            kept.append(line)
        continued = (stripped.startswith("#") or continued) and stripped.endswith("\\")
    return "\n".join(kept)


def main() -> None:
    """Write the module source named on the command line."""
    output, *headers = (Path(argument) for argument in sys.argv[1:])
    ffi = cffi.FFI()
    for header in headers:
        ffi.cdef(declarations(header.read_text()))
    ffi.set_source("_core", "\n".join(f'#include "{header.name}"' for header in headers))
    ffi.emit_c_code(str(output))


if __name__ == "__main__":
    main()
