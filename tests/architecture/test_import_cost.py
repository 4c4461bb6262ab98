"""Importing the package loads no native code and nothing that takes long."""

from __future__ import annotations

import json

# What costs tens of milliseconds, or opens files and sockets.
HEAVY = {
    "_cffi_backend", "argparse", "click", "ctypes", "fsspec", "importlib_metadata", "numpy",
    "pandas", "pathlib", "platformdirs", "pluggy", "pyarrow", "rich", "socket", "structlog",
    "subprocess", "tensorflow",
}  # fmt: skip

# What a start needs for what is new to it, or for an application that listens.
FOR_WHAT_IS_NEW = {
    "hashlib", "logging", "modular_tf.discovery.probe",
    "modular_tf.discovery.trust.record", "modular_tf.first_contact.trials",
    "modular_tf.service.library_loading",
}  # fmt: skip

SUBJECT = """
    import json, sys
    before = set(sys.modules)

    def mapped():
        with open("/proc/self/maps") as maps:
            return sorted({line.split()[-1] for line in maps if "modular_tf" in line})

    import modular_tf
    print(json.dumps([sorted(set(sys.modules) - before), mapped()]))
    import modular_tf.discovery.search, modular_tf.discovery.probe
    from modular_tf.discovery.sources.search_paths import SearchPaths
    found = modular_tf.discovery.search.discover(SearchPaths.of_process())
    assert found.candidates
    print(json.dumps(mapped()))
"""


def test_an_import_is_light_and_discovery_maps_no_native_code(run_python):
    """The package is a list of names; the rooms behind them are entered when one is used."""
    imported, mapped = map(json.loads, run_python(SUBJECT).stdout.splitlines())
    loaded, mapped_by_import = imported

    assert "modular_tf" in loaded
    assert HEAVY.intersection(loaded) == set()
    assert [name for name in loaded if name.startswith("modular_tf.")] == []
    assert (mapped_by_import, mapped) == ([], [])


def test_a_list_imports_nothing_for_what_is_known(run_python, tmp_path):
    listed = """
        import sys
        from modular_tf.cli.main import run
        run(["--no-bundled", "list", "--json"])  # which may have been installed right now
        print(*sys.modules, sep="\\n", file=sys.stderr)
    """
    own = {"XDG_CACHE_HOME": str(tmp_path)}
    first = set(run_python(listed, env=own).stderr.splitlines())
    again = set(run_python(listed, env=own).stderr.splitlines())

    assert "modular_tf.discovery.trust.record" in first
    assert "modular_tf.service.service" in again
    assert FOR_WHAT_IS_NEW & again == set()
