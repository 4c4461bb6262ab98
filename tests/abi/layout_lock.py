"""Render the layouts as text, for `layout.lock.toml`.

Run this file after a meant change of a layout, and review the difference against the reference
sheet that names the source: a change here breaks every plugin built before it.
"""

from __future__ import annotations

from pathlib import Path

from tests.abi.kernel_layouts import ALL_LAYOUTS

LOCK_FILE = Path(__file__).with_name("layout.lock.toml")

HEAD = "# Fields: name@offset:size:kind, in bytes. Written by layout_lock.py; reviewed by people.\n"


def _entry(layout):
    dialect = layout.dialect.value if layout.dialect else "all"
    fields = "".join(f'  "{f.name}@{f.offset}:{f.size}:{f.kind.value}",\n' for f in layout.fields)
    struct_size = "" if layout.struct_size is None else f"struct_size = {layout.struct_size}\n"
    head = f'\n["{layout.name}"."{dialect}"]\nsize = {layout.size}\n'
    return f"{head}{struct_size}fields = [\n{fields}]\n"


def render():
    return HEAD + "".join(_entry(layout) for layout in ALL_LAYOUTS.values())


if __name__ == "__main__":
    LOCK_FILE.write_text(render())
