"""A verdict holds on the host that it was made on, until something of the host changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modular_tf.discovery import host_fingerprint as module
from modular_tf.discovery.host_fingerprint import (
    HostFingerprint,
    host_fingerprint,
    linking_parts,
)


def parts_now() -> dict[str, str]:
    """Return the parts as another process would find them."""
    return dict(host_fingerprint.__wrapped__().parts)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of a few files in the place of ours."""
    (tmp_path / "native" / "lib").mkdir(parents=True)
    (tmp_path / "native" / "lib" / "libx.so.2").write_bytes(b"x")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "loading.py").write_bytes(b"y")
    (tmp_path / "abi").mkdir()
    (tmp_path / "loading").mkdir()
    monkeypatch.setattr(module, "package_directories", lambda: (str(tmp_path), "/nonexistent"))
    return tmp_path


def test_it_is_the_same_in_each_process(run_python):
    subject = """
        from modular_tf.discovery.host_fingerprint import host_fingerprint
        print(host_fingerprint())
    """
    found = {run_python(subject, env={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}

    assert found == {f"{host_fingerprint()}\n"}


def test_it_is_worked_out_once():
    assert host_fingerprint() is host_fingerprint()


def test_the_parts_are_readable():
    parts = dict(host_fingerprint().parts)

    assert parts["kernel"] == os.uname().release
    assert parts["machine"] == os.uname().machine
    assert all(isinstance(value, str) and "\n" not in value for value in parts.values())
    assert parts["processor"]


@pytest.mark.parametrize(
    "name",
    [
        "native/lib/libx.so.2",
        "rules/loading.py",
        "rules/new.py",
        "errors.py",
        "abi/layouts.py",
        "loading/known_defects.toml",
    ],
)
def test_a_file_of_the_package_changes_it(package: Path, name: str):
    before = parts_now()
    (package / name).write_bytes(b"changed")

    after = HostFingerprint(tuple(parts_now().items()))
    assert [change.partition(":")[0] for change in after.changes_since(before)] == [
        "modular_tf's files"
    ]


def test_every_package_below_a_counted_one_is_counted():
    tops = {room for room in module._PACKAGES if room and "/" not in room}
    found = {
        str(marker.parent.relative_to(root))
        for root in map(Path, module.package_directories())
        for top in tops
        for marker in root.glob(f"{top}/**/__init__.py")
    }

    assert found > tops
    assert found <= set(module._PACKAGES)


TRIED = """
    import os, sys
    from modular_tf.first_contact import zygote
    from modular_tf.first_contact.child import Journal, Rehearsal
    from modular_tf.loading.task import Task
    from modular_tf.processes.child import Report

    zygote._warm_up()
    nowhere = Journal(Report(os.open(os.devnull, os.O_WRONLY)))
    for kind, file in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        Rehearsal(Task("own", file, kinds=(kind,)), nowhere).perform()
    modules = list(sys.modules.values())
    for folder in zygote.package_directories():
        for file in filter(None, (getattr(module, "__file__", None) for module in modules)):
            if file.startswith(folder + os.sep):
                print(os.path.dirname(os.path.relpath(file, folder)))
"""


def test_all_that_runs_while_a_plugin_is_tried_is_counted(run_python, fixture_device_plugin):
    library = str(fixture_device_plugin())
    tried = run_python(TRIED, "device", library, "kernel", library)
    rooms = set(tried.stdout.split("\n"))

    assert {"abi", "device", "filesystem", "first_contact", "loading"} <= rooms
    assert rooms <= set(module._PACKAGES)


def test_a_file_that_decides_nothing_does_not(package: Path):
    before = parts_now()
    (package / "rules" / "notes.txt").write_bytes(b"")
    (package / "cli").mkdir()
    (package / "cli" / "main.py").write_bytes(b"")

    assert parts_now() == before


def test_device_files_change_it(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(module, "_DEVICE_FOLDERS", (str(tmp_path), str(tmp_path / "missing")))
    for name in ("nvidia0", "nvidia-uvm", "nvidiactl", "kfd", "tty0", "renderD128"):
        (tmp_path / name).touch()

    assert parts_now()["devices"].split() == [
        str(tmp_path / name) for name in ("kfd", "nvidia0", "renderD128")
    ]


def test_a_driver_and_the_processor_change_it(tmp_path: Path, monkeypatch):
    (tmp_path / "version").write_text("550.1\n")
    (tmp_path / "cpuinfo").write_text("model name\t: One\nflags\t\t: a b\nmodel name\t: Two\n")
    monkeypatch.setattr(module, "_DRIVER_VERSIONS", (str(tmp_path / "version"), "/nonexistent"))
    monkeypatch.setattr(module, "_CPU_INFO", str(tmp_path / "cpuinfo"))
    before = parts_now()
    (tmp_path / "cpuinfo").write_text("model name\t: One\nflags\t\t: a\nmodel name\t: Two\n")

    assert before["drivers"] == "550.1"
    assert before["processor"].startswith("One ")
    assert parts_now()["processor"].startswith("One ")
    assert parts_now()["processor"] != before["processor"]


def test_a_host_may_tell_nothing(monkeypatch):
    for name in ("_CPU_INFO", "_MACHINE_ID"):
        monkeypatch.setattr(module, name, "/nonexistent")
    monkeypatch.setattr(os, "confstr", lambda _: None)

    assert parts_now()["machine-id"] == ""
    assert parts_now()["C library"] == ""


def test_what_changed_is_told():
    now = HostFingerprint((("kernel", "6.2"), ("machine", "x"), ("new", "1")))
    then = {"kernel": "6.1", "machine": "x", "gone": "2"}

    assert now.changes_since(then) == [
        "kernel: 6.1 -> 6.2",
        "new: unknown -> 1",
        "gone: 2 -> unknown",
    ]
    assert now.changes_since(dict(now.parts)) == []


def test_what_a_plugin_is_linked_with_depends_on_variables():
    parts = linking_parts({"LD_LIBRARY_PATH": "/x", "OTHER": "y"})
    assert {name: parts[name] for name in ("LD_LIBRARY_PATH", "LD_PRELOAD")} == {
        "LD_LIBRARY_PATH": "/x",
        "LD_PRELOAD": "",
    }
    assert "OTHER" not in parts

    one = host_fingerprint().with_parts(parts)
    assert one.key != host_fingerprint().key
    assert len(one.key) == 8
    assert dict(one.parts)["LD_LIBRARY_PATH"] == "/x"


def test_what_a_plugin_is_linked_with_depends_on_the_program(tmp_path: Path, monkeypatch):
    """An application that embeds Python has other libraries and symbols than Python's program."""
    here = linking_parts({})["program"]
    other = tmp_path / "application"
    other.write_bytes(b"")
    monkeypatch.setattr(module, "_PROGRAM", str(tmp_path / "link"))
    (tmp_path / "link").symlink_to(other)

    assert here.startswith(str(Path("/proc/self/exe").readlink()))
    assert linking_parts({})["program"].startswith(str(other))
    before = linking_parts({})
    other.write_bytes(b"new")
    assert linking_parts({}) != before
    other.unlink()
    assert linking_parts({})["program"] == ""


def test_any_value_has_a_key():
    assert len(HostFingerprint((("LD_PRELOAD", "\udcff"),)).key) == 8
