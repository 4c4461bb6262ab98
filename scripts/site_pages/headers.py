"""The page on the C headers: each as it is installed."""

from __future__ import annotations

from pathlib import Path

from modular_tf.headers import include_directory

_HEAD = """\
# C headers

The package brings the headers for plugins: TensorFlow's C interface. They need no library to link.
`modular-tf headers` prints where they are, and `find_package(modular_tf)` finds them with CMake.
`modular_tf/modular_tf.h` includes all of them but `device_rfc.h`, which is for device plugins with
an allocator of their own. The comments state ownership, threads and errors.
"""


def page() -> str:
    """Return the page with every header."""
    folder = Path(include_directory())
    sections = [
        f"## {path.relative_to(folder)}\n\n```c\n{path.read_text(encoding='utf-8')}```\n"
        for path in sorted(folder.rglob("*.h"))
    ]
    return "\n".join([_HEAD, *sections])
