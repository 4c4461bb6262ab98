"""What a library says of its imports is read only where it has memory."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library

_SOURCE = Path(__file__).with_name("damaged_imports.c")
_DAMAGES = ("nothing", "sizes", "relocations", "relocations of nothing", "symbols", "names", "end")


def test_a_library_with_damaged_imports_is_noted(run_forked):
    library = link_library("libdamaged.so", [compile_object(_SOURCE)], ["-Wl,-z,norelro"])

    child = run_forked(
        """
        import ctypes, os, sys
        from modular_tf.native.plugin_names import name_plugin, note_code

        path, *damages = sys.argv[1:]
        path = os.path.realpath(path)

        def note(damage):
            os.environ["DAMAGE"] = damage
            ctypes.CDLL(path)
            with open("/proc/self/maps") as maps:
                lines = [line for line in maps if line.endswith(path + "\\n")]
            name_plugin("damaged", path)
            note_code(path, [int(lines[0].split("-")[0], 16)])
            os._exit(0)

        for damage in damages:
            if os.fork() == 0:
                note(damage)
            print(damage, os.wait()[1], flush=True)
        """,
        library,
        *_DAMAGES,
    )

    assert child.stdout.splitlines() == [f"{damage} 0" for damage in _DAMAGES]
