"""What a service reports of its workers, and what these refuse."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from modular_tf.codec import decode, encode
from modular_tf.errors import PermissionDeniedError, ResourceExhaustedError, UnavailableError
from modular_tf.isolation.job import Job
from modular_tf.isolation.rights import landlock_version
from modular_tf.isolation.worker import _described
from modular_tf.isolation.worker_process import WorkerEnding
from modular_tf.loading.task import Task
from modular_tf.redaction import hide, show_again
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library
from tests.isolation.conftest import isolated, record_of

_RAM = "ram_filesystem"


def test_a_worker_is_reported_with_its_number_as_it_is_seen_here():
    def facts():
        return [fact.text for fact in service.why(_RAM).facts if fact.stage == "isolation"]

    with isolated(isolation="none", load="eager"):
        pass  # from now on it is known what the plugin serves, and it need not be started for that
    with isolated(load="lazy") as service:
        assert facts()[0].startswith("it is to run in a worker process")
        filesystem = service.filesystem("ram")
        assert facts()[0].startswith("it runs in a worker process, restricted to: ")
        filesystem.path_exists("ram://x")
        filesystem.path_exists("ram://x")

        record = record_of(service, _RAM)
        assert (record.instance, record.calls, record.in_flight, record.restarts) == ("", 2, 0, 0)
        assert record.memory_bytes > 0
        assert "NoNewPrivs:\t1\n" in Path(f"/proc/{record.pid}/status").read_text("ascii")
        os.kill(record.pid, signal.SIGKILL)
        with suppress(UnavailableError):  # where the process has not quite ended
            filesystem.path_exists("ram://x")
        filesystem.path_exists("ram://x")
        after = record_of(service, _RAM)
        assert after.pid not in (0, record.pid)
        assert (after.restarts, "SIGKILL" in after.last_fault) == (1, True)


def test_a_shortage_when_a_worker_starts_is_no_fault_of_the_plugin(monkeypatch):
    def no_descriptors(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with PluginService(isolation="process") as service:
        monkeypatch.setattr(socket, "send_fds", no_descriptors)
        with pytest.raises(ResourceExhaustedError) as raised:
            service.load()
        assert raised.value.rule == "LD-113"

        monkeypatch.undo()
        service.load()
        assert not service.filesystem("ram").path_exists("ram://x")


def test_what_a_worker_wrote_before_it_ended_shows_no_secret():
    """Also where a part of it is shown: it is hidden before that is taken."""
    owner = object()
    hide(owner, ["hush-hush"])
    try:
        text = _described(WorkerEnding("exited", (), f"login as {'x' * 283} hush-hush\n"))
    finally:
        show_again(owner)
    assert "hush" not in text
    assert text.startswith('exited; it wrote "login as')


def test_a_job_shows_no_value():
    job = Job(Task("p", "/p.so"), False, {"MY_SECRET": "hush"}, "archive")
    assert "hush" not in repr(job)
    assert decode(Job, json.loads(json.dumps(encode(job)))) == job


@pytest.mark.skipif(landlock_version() < 1, reason="no Landlock here")
def test_a_local_plugin_reaches_named_directories_alone(tmp_path):
    for name in ("named", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    with isolated(worker_directories={"posix*": [str(tmp_path / "named")]}) as service:
        filesystem = service.filesystem("")
        assert filesystem.read_file(str(tmp_path / "named" / "file")) == b"x"
        with pytest.raises(PermissionDeniedError, match="worker_directories") as caught:
            filesystem.read_file(str(tmp_path / "other" / "file"))
        assert str(tmp_path / "other") in str(caught.value)
        facts = [fact.text for fact in service.why("posix_filesystem").facts]
        assert any("named files only" in text for text in facts)


_DEEP_IN_AN_APPLICATION = """
    import os
    import sys
    from modular_tf.service.configuration import Config
    from modular_tf.service.service import PluginService

    config = Config(first_contact="never", load="eager", isolation="process")

    def load(frames):
        if frames:
            return load(frames - 1)
        with PluginService(config=config, plugin_paths=sys.argv[1:2], bundled=False) as service:
            return service.load().plugins

    for depth in sys.argv[2:]:
        os.environ["DEPTH"] = depth
        (record,) = load(100)
        print(record.state.value, record.reason.rule, depth)
"""


def test_an_offer_of_lists_in_lists_is_refused_however_deep(run_forked):
    source = Path(__file__).with_name("deep_offer.c")
    library = link_library("libdeep_offer.so", [compile_object(source)])
    depths = ["5", "900", "1000000"]
    lines = run_forked(_DEEP_IN_AN_APPLICATION, library, *depths).stdout.splitlines()

    assert [line.split()[2] for line in lines] == depths
    # Its own rule, or that of what follows.
    assert all(line.startswith(("failed LD-144 ", "failed FS-001 ")) for line in lines), lines
