"""A verdict holds on the host that it was made on, until something of the host changes."""

from pathlib import Path

import pytest

from modular_tf.discovery import host_fingerprint as module
from modular_tf.discovery.host_fingerprint import HostFingerprint, host_fingerprint, linking_parts


def parts_now():
    """Return the parts as another process would find them."""
    return dict(host_fingerprint.__wrapped__().parts)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of a few files in the place of ours."""
    for name in ("native/lib/libx.so.2", "rules/loading.py", "abi/x", "loading/x", "cli/x"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setattr(module, "package_directories", lambda: (str(tmp_path), "/nonexistent"))
    return tmp_path


def test_it_is_the_same_in_each_process_and_worked_out_once(run_python):
    subject = """
        from modular_tf.discovery.host_fingerprint import host_fingerprint
        print(host_fingerprint())
    """
    found = run_python(subject, env={"PYTHONHASHSEED": "1"}).stdout

    assert found == f"{host_fingerprint()}\n"
    assert host_fingerprint() is host_fingerprint()


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("native/lib/libx.so.2", True),
        ("rules/loading.py", True),
        ("rules/new.py", True),
        ("errors.py", True),
        ("abi/layouts.py", True),
        ("loading/known_defects.toml", True),
        ("rules/notes.txt", False),
        ("cli/main.py", False),
    ],
)
def test_a_file_of_the_package_changes_it_where_it_decides_something(package, name, counts):
    before = parts_now()
    (package / name).write_bytes(b"changed")

    changes = HostFingerprint(tuple(parts_now().items())).changes_since(before)
    named = [change.partition(":")[0] for change in changes]
    assert named == (["modular_tf's files"] if counts else [])


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


def test_devices_drivers_and_the_processor_change_it(tmp_path, monkeypatch):
    for name in ("nvidia0", "nvidia-uvm", "nvidiactl", "kfd", "tty0", "renderD128"):
        (tmp_path / name).touch()
    version, processor = tmp_path / "version", tmp_path / "cpuinfo"
    version.write_text("550.1\n")
    monkeypatch.setattr(module, "_DEVICE_FOLDERS", (str(tmp_path), str(tmp_path / "missing")))
    monkeypatch.setattr(module, "_DRIVER_VERSIONS", (str(version), "/nonexistent"))
    monkeypatch.setattr(module, "_CPU_INFO", str(processor))
    seen = set()
    for flags in ("a b", "a"):
        processor.write_text(f"model name\t: One\nflags\t\t: {flags}\nmodel name\t: Two\n")
        parts = parts_now()
        assert parts["devices"].split() == [
            str(tmp_path / name) for name in ("kfd", "nvidia0", "renderD128")
        ]
        assert parts["drivers"] == "550.1"
        assert parts["processor"].startswith("One ")
        seen.add(parts["processor"])
    assert len(seen) == 2


def test_what_a_plugin_is_linked_with_depends_on_variables():
    parts = linking_parts({"LD_LIBRARY_PATH": "/x", "OTHER": "y"})
    assert (parts["LD_LIBRARY_PATH"], parts["LD_PRELOAD"]) == ("/x", "")
    assert "OTHER" not in parts

    one = host_fingerprint().with_parts(parts)
    assert one.key != host_fingerprint().key
    assert dict(one.parts)["LD_LIBRARY_PATH"] == "/x"
    assert one.changes_since({**dict(one.parts), "gone": "1"}) == ["gone: 1 -> unknown"]
    for fingerprint in (one, HostFingerprint((("LD_PRELOAD", "\udcff"),))):
        assert len(fingerprint.key) == 8


def test_what_a_plugin_is_linked_with_depends_on_the_program(tmp_path, monkeypatch):
    """An application that embeds Python has other libraries and symbols than Python's program."""
    here = linking_parts({})["program"]
    other, link = tmp_path / "application", tmp_path / "link"
    other.write_bytes(b"")
    link.symlink_to(other)
    monkeypatch.setattr(module, "_PROGRAM", str(link))

    assert here.startswith(str(Path("/proc/self/exe").readlink()))
    assert linking_parts({})["program"].startswith(str(other))
    before = linking_parts({})
    other.write_bytes(b"new")
    assert linking_parts({}) != before
    other.unlink()
    assert linking_parts({})["program"] == ""
