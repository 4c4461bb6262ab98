"""`modular-tf watch` and services that watch: in processes of their own, and two at a time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.watching.conftest import PATIENCE_S

COMMAND = [sys.executable, "-m", "modular_tf", "--no-bundled", "watch"]


@contextmanager
def watching(folder, *words, environment=None):
    """Run the command until it has begun to watch, and kill it in the end."""
    command = [*COMMAND, "--plugin-dir", str(folder), *words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as child:
        try:
            for line in child.stderr:
                if "watching" in line:
                    break
            yield child
        finally:
            child.kill()


@pytest.fixture
def drop(fixture_plugin, folder):
    """Put a plugin into the folder, by a rename."""

    def place(name="libx.so", variant="needed-none", scheme="dropped"):
        temporary = folder / f".{name}.new"
        shutil.copyfile(fixture_plugin(variant, scheme=scheme), temporary)
        temporary.replace(folder / name)

    return place


def ended(child):
    out, err = child.communicate(timeout=PATIENCE_S)
    return child.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_0_when_it_is_told_to(folder, number):
    with watching(folder) as child:
        child.send_signal(number)

        assert ended(child) == (0, "", "")


def test_it_tells_of_each_change_in_one_line(folder, drop):
    with watching(folder) as child:
        drop()
        first = child.stdout.readline().rstrip("\n").split("\t")
        drop(scheme="other")
        second = child.stdout.readline().rstrip("\n").split("\t")
        drop(variant="no-init")
        third = child.stdout.readline().rstrip("\n").split("\t")
        (folder / "libx.so").unlink()
        fourth = child.stdout.readline().rstrip("\n").split("\t")

    path = str(folder / "libx.so")
    assert first == ["appeared", "x", "loaded", "dropped://", path, ""]
    assert second == ["replaced", "x", "loaded", "other://", path, ""]
    assert third[:5] == ["replaced", "x", "loaded", "other://", path]
    assert "LD-085" in third[5]
    assert fourth[:2] == ["removed", "x"]


def test_two_processes_see_the_same_as_json(folder, drop):
    with watching(folder, "--json") as one, watching(folder, "--json", "--once") as other:
        drop()
        seen = [json.loads(child.stdout.readline()) for child in (one, other)]

        assert seen[0] == seen[1]
        assert seen[0] == {
            "schema_version": 1,
            "change": "appeared",
            "path": str(folder / "libx.so"),
            "plugin": "x",
            "state": "loaded",
            "schemes": ["dropped"],
            "device_types": [],
            "reason": None,
            "kept": None,
        }
        assert ended(other) == (0, "", "")


def test_it_names_a_copy_that_it_waits_for(folder, fixture_plugin):
    library = fixture_plugin("needed-none", scheme="dropped").read_bytes()
    with watching(folder) as child, (folder / "libx.so").open("wb", buffering=0) as copy:
        copy.write(library[: len(library) // 2])
        told = child.stderr.readline()
        copy.write(library[len(library) // 2 :])
        copy.close()
        row = child.stdout.readline().split("\t")

    assert told.startswith(
        f"modular-tf: waiting until {folder / 'libx.so'} is whole: libx.so is cut off"
    )
    assert row[:3] == ["appeared", "x", "loaded"]


def test_it_ends_after_the_time_that_it_is_given(folder):
    with watching(folder, "--for", "0.5") as child:
        assert ended(child) == (0, "", "")


def test_the_configuration_says_how_often_files_are_polled(folder, drop, tmp_path):
    config = tmp_path / "modular-tf.toml"
    config.write_text("watch_poll_interval_s = 0.1\n")
    with watching(folder, environment={"MODULAR_TF_CONFIG": str(config)}) as child:
        drop()

        assert child.stdout.readline().startswith("appeared\tx\tloaded")


def test_the_end_of_a_process_that_watches(run_python, folder, drop):
    drop()
    child = run_python(
        """
        import sys
        from modular_tf.service.service import PluginService

        service = PluginService(plugin_dirs=[sys.argv[1]], bundled=False)
        watch = service.watch()
        print(service.filesystem("dropped").plugin)
        """,
        folder,
    )

    assert child.stdout == "x\n"
    assert child.stderr == ""


def test_a_forked_child_does_not_watch(run_python, folder, drop):
    drop()
    child = run_python(
        """
        import os, sys
        from modular_tf.service.service import PluginService

        with PluginService(plugin_dirs=[sys.argv[1]], bundled=False) as service:
            with service.watch() as watch:
                child = os.fork()
                if child == 0:
                    ok = watch.closed and service.filesystem("dropped").plugin == "x"
                    watch.close()
                    service.close()
                    os._exit(0 if ok else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                assert not watch.closed
        assert watch.closed
        print("done")
        """,
        folder,
    )

    assert child.stdout == "done\n"


def test_a_process_ends_while_a_change_is_being_dealt_with(run_python, folder, fixture_plugin):
    child = run_python(
        """
        import shutil, sys, threading, time
        from modular_tf.service.service import PluginService
        import modular_tf.service.service

        modular_tf.service.service._PATIENCE_AT_EXIT_S = 0.2
        begun = threading.Event()

        def on_change(change):
            begun.set()
            time.sleep(3600)

        service = PluginService(plugin_dirs=[sys.argv[1]], bundled=False)
        service.watch(on_change)
        shutil.copyfile(sys.argv[2], sys.argv[1] + "/libx.so")
        assert begun.wait(60)
        print("done")
        """,
        folder,
        fixture_plugin("needed-none"),
    )

    assert child.stdout == "done\n"
