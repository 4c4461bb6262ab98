"""What a service reports of its workers; and instances of bundled plugins."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from modular_tf.isolation.rights import landlock_version
from modular_tf.isolation.worker import _described
from modular_tf.isolation.worker_process import WorkerEnding
from modular_tf.redaction import HIDDEN, hide, redacted, show_again
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library

_RAM = "ram_filesystem"


@pytest.fixture
def service():
    with PluginService(isolation="process") as made:
        made.load()
        yield made


@pytest.fixture
def in_process():
    with PluginService() as made:
        made.load()
        yield made


def test_a_worker_is_told_with_its_number_as_it_is_seen_here(service):
    filesystem = service.filesystem("ram")
    filesystem.path_exists("ram://x")
    filesystem.path_exists("ram://x")

    record = next(found for found in service.workers() if found.plugin == _RAM)
    assert (record.instance, record.calls, record.in_flight, record.restarts) == ("", 2, 0, 0)
    assert record.memory_bytes > 0
    assert "NoNewPrivs:\t1\n" in Path(f"/proc/{record.pid}/status").read_text("ascii")
    os.kill(record.pid, signal.SIGKILL)
    with suppress(UnavailableError):  # where the process has not quite ended
        filesystem.path_exists("ram://x")
    filesystem.path_exists("ram://x")
    after = next(found for found in service.workers() if found.plugin == _RAM)
    assert after.pid not in (0, record.pid)
    assert after.restarts == 1
    assert "SIGKILL" in after.last_fault


def test_a_shortage_when_a_worker_starts_is_no_fault_of_the_plugin(monkeypatch):
    def no_descriptors(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with PluginService(isolation="process") as service:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "send_fds", no_descriptors)
            with pytest.raises(ResourceExhaustedError) as raised:
                service.load()
        assert raised.value.rule == "LD-113"

        service.load()
        assert not service.filesystem("ram").path_exists("ram://x")


def test_a_forked_child_reports_no_process_of_its_parent(run_python):
    child = run_python(
        """
        import os
        from modular_tf.service.service import PluginService
        with PluginService(isolation="process") as service:
            service.load()
            service.filesystem("ram").path_exists("ram://x")
            pid = os.fork()
            if pid == 0:
                print({found.pid for found in service.workers()}, flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
        """
    )

    assert child.stdout == "{0}\n"


# -- instances ------------------------------------------------------------------------------------


def test_an_instance_is_beside_the_plugin_whatever_isolation_says(in_process):
    archive = in_process.instance("ram", name="archive", environment={"X_TOKEN": "hush-hush"})
    archive.create_dir("ram://of-archive")
    assert archive.get_children("ram://") == ["of-archive"]
    assert "of-archive" not in in_process.filesystem("ram").get_children("ram://")
    assert in_process.instances() == {"archive": _RAM}
    (record,) = in_process.workers()
    assert record.instance == "archive"
    assert b"hush" not in Path(f"/proc/{record.pid}/environ").read_bytes()


def test_names_and_variables_are_checked(in_process):
    in_process.instance("ram", name="one", environment={})
    with pytest.raises(AlreadyExistsError, match="choose another name"):
        in_process.instance("ram", name="one", environment={})
    for name in ("", "a/b", "-", "x" * 65):
        with pytest.raises(InvalidArgumentError, match="letters"):
            in_process.instance("ram", name=name, environment={})
    for environment in ({"A=B": "x"}, {"": "x"}, {"A": 1}, {"A": "hush\0"}):
        with pytest.raises(InvalidArgumentError) as caught:
            in_process.instance("ram", name="two", environment=environment)
        assert "hush" not in str(caught.value)
    with pytest.raises(UnimplementedError):
        in_process.instance("nobodys", name="two", environment={})


def test_python_objects_have_no_instances(in_process):
    class Mine:
        def path_exists(self, _uri):
            return True

    in_process.register_filesystem("mine", Mine())
    with pytest.raises(InvalidArgumentError, match="Python object"):
        in_process.instance("mine", name="one", environment={})


def test_instances_close_with_their_service(in_process):
    archive = in_process.instance("ram", name="archive", environment={})
    (record,) = in_process.workers()
    in_process.close()
    with pytest.raises(ClosedError):
        archive.path_exists("ram://x")
    with pytest.raises(ClosedError):
        in_process.instance("ram", name="late", environment={})
    assert not Path(f"/proc/{record.pid}").exists()


def test_equal_environments_share_an_instance(in_process):
    shared = in_process.shared_instance
    one = shared("ram", {"A": "1"})
    assert shared("ram", {"A": "1"}) is one
    assert shared("ram", {"A": None}) is not one
    assert shared("ram", {"A": "2"}) is not one
    assert len(in_process.instances()) == 3


def test_secrets_are_hidden_while_their_instance_lives(in_process):
    secret = "hush-hush/42"
    archive = in_process.instance(
        "ram", name="a", environment={"MY_SECRET": secret, "URL": "x.org"}
    )
    assert redacted(f"<{secret}> at x.org") == f"<{HIDDEN}> at x.org"
    assert redacted(f"a{secret}b") == f"a{secret}b"
    in_process.close()
    del archive
    gc.collect()
    assert redacted(secret) == secret


def test_what_a_worker_wrote_before_it_ended_shows_no_secret():
    """Also where a part of it is kept: it is hidden before that is taken."""
    owner = object()
    hide(owner, ["hush-hush"])
    try:
        told = _described(WorkerEnding("exited", (), f"login as {'x' * 287} hush-hush\n"))
        assert "hush" not in told
        assert told.startswith('exited; it wrote "login as')
    finally:
        show_again(owner)


def test_a_job_shows_no_value():
    from modular_tf.codec import decode, encode
    from modular_tf.isolation.job import Job
    from modular_tf.loading.task import Task

    job = Job(Task("p", "/p.so"), False, {"MY_SECRET": "hush"}, "archive")
    assert "hush" not in repr(job)
    assert decode(Job, json.loads(json.dumps(encode(job)))) == job


# -- rights, as plugins meet them -----------------------------------------------------------------


@pytest.mark.skipif(landlock_version() < 1, reason="no Landlock here")
def test_a_local_plugin_reaches_named_directories_alone(tmp_path):
    for name in ("named", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    config = Config(isolation="process", worker_directories={"posix*": [str(tmp_path / "named")]})
    with PluginService(config=config) as service:
        service.load()
        filesystem = service.filesystem("")
        assert filesystem.read_file(str(tmp_path / "named" / "file")) == b"x"
        with pytest.raises(PermissionDeniedError, match="worker_directories") as caught:
            filesystem.read_file(str(tmp_path / "other" / "file"))
        assert str(tmp_path / "other") in str(caught.value)
        told = [fact.text for fact in service.why("posix_filesystem").facts]
        assert any("named files only" in text for text in told)


def test_directories_are_absolute():
    with pytest.raises(ValueError, match="absolute paths"):
        Config(worker_directories={"*": ["data"]})
    with pytest.raises(ValueError, match="absolute paths"):
        Config(worker_directories={"*": "/data"})


def test_why_tells_what_is_to_come(service):
    told = [fact.text for fact in service.why(_RAM).facts if fact.stage == "isolation"]
    if service.config.load == "lazy":
        assert told[0].startswith("it is to run in a worker process")
    service.filesystem("ram")
    told = [fact.text for fact in service.why(_RAM).facts if fact.stage == "isolation"]
    assert told[0].startswith("it runs in a worker process, restricted to: ")


_DEEP_IN_AN_APPLICATION = """
    import sys
    from modular_tf.service.configuration import Config
    from modular_tf.service.service import PluginService

    config = Config(first_contact="never", load="eager", isolation="process")

    def load(frames):
        if frames:
            return load(frames - 1)
        with PluginService(config=config, plugin_paths=sys.argv[1:], bundled=False) as service:
            return service.load().plugins

    (record,) = load(100)
    print(record.state.value, record.reason.rule, record.reason.message)
"""


@pytest.mark.parametrize("depth", [5, 600, 900, 940, 1_000_000])
def test_an_offer_of_lists_in_lists_is_refused_however_deep(run_python, depth: int) -> None:
    source = Path(__file__).with_name("deep_offer.c")
    library = link_library("libdeep_offer.so", [compile_object(source)])
    told = run_python(_DEEP_IN_AN_APPLICATION, library, env={"DEPTH": str(depth)}).stdout

    assert told.startswith(("failed LD-144 ", "failed FS-001 "))  # its own, or what follows
