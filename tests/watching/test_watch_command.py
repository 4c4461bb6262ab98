"""`modular-tf watch` and services that watch: in processes of their own, and two at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

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


def ended(child):
    out, err = child.communicate(timeout=PATIENCE_S)
    return child.returncode, out, err


def test_each_change_is_one_line_until_a_signal_ends_it(folder, put, fixture_plugin):
    def row():
        return child.stdout.readline().rstrip("\n").split("\t")

    with watching(folder) as child:
        path = put(scheme="one")
        appeared = row()
        put(scheme="two")
        replaced = row()
        put(variant="no-init")
        refused = row()
        Path(path).unlink()
        removed = row()
        library = fixture_plugin("needed-none", scheme="three").read_bytes()
        with Path(path).open("wb", buffering=0) as copy:
            copy.write(library[: len(library) // 2])
            waiting = child.stderr.readline()
            copy.write(library[len(library) // 2 :])
        copied = row()

        assert appeared == ["appeared", "x", "loaded", "one://", path, ""]
        assert replaced == ["replaced", "x", "loaded", "two://", path, ""]
        assert refused[:5] == ["replaced", "x", "loaded", "two://", path]
        assert "LD-085" in refused[5]
        assert removed[:2] == ["removed", "x"]
        assert waiting.startswith(f"modular-tf: waiting until {path} is whole: libx.so is cut off")
        assert copied == ["appeared", "x", "loaded", "three://", path, ""]
        child.send_signal(signal.SIGTERM)
        assert ended(child) == (0, "", "")


def test_two_processes_report_the_same_as_json(folder, put, tmp_path):
    config = tmp_path / "modular-tf.toml"
    config.write_text("watch_poll_interval_s = 0.1\n")
    environment = {"MODULAR_TF_CONFIG": str(config)}
    with (
        watching(folder, "--json", environment=environment) as one,
        watching(folder, "--json", "--once") as other,
    ):
        path = put(scheme="dropped")
        seen = [json.loads(child.stdout.readline()) for child in (one, other)]

        assert seen[0] == seen[1]
        assert seen[0] == {
            "schema_version": 1,
            "change": "appeared",
            "path": path,
            "plugin": "x",
            "state": "loaded",
            "schemes": ["dropped"],
            "device_types": [],
            "reason": None,
            "refusal": None,
        }
        assert ended(other) == (0, "", "")
        one.send_signal(signal.SIGINT)
        assert ended(one) == (0, "", "")


def test_it_ends_after_the_time_that_it_is_given(folder):
    with watching(folder, "--for", "0.1") as child:
        assert ended(child) == (0, "", "")


def test_it_ends_when_nobody_reads_its_output_any_more(folder):
    """As in `modular-tf watch | head -1`, also where no other change comes."""
    with watching(folder) as child:
        child.stdout.close()
        assert child.wait(PATIENCE_S) == 0
        assert child.stderr.read() == ""


def test_a_process_ends_while_a_file_system_keeps_the_watch_waiting(run_forked, folder):
    child = run_forked(
        """
        import sys, threading, time
        from modular_tf.service.reload import watching
        import modular_tf.service.service

        modular_tf.service.service._PATIENCE_AT_EXIT_S = 0.2
        begun = threading.Event()
        watching.take_snapshot = lambda places: (begun.set(), time.sleep(3600))
        service = modular_tf.service.service.PluginService(plugin_dirs=[sys.argv[1]], bundled=False)
        service.watch()
        assert begun.wait(60)
        print("done")
        """,
        folder,
    )

    assert child.stdout == "done\n"


def test_a_process_ends_while_a_change_is_being_dealt_with(run_forked, folder, fixture_plugin):
    child = run_forked(
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
