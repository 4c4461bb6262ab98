"""Work on many objects leaves nothing when it is interrupted; `tests.fsspec` shows its bounds."""

from __future__ import annotations

import re

import pytest

from tests.emulators.conversation import ask

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_OBJECTS = 200
_DELAY_S = 0.05
_LATEST_S = 5.0  # the promise is one second, the machine may be busy


def content(number: int) -> bytes:
    return f"object {number:05}\n".encode() * 76


@pytest.fixture
def late_objects(distant_s3):
    """Return a store with many objects, when it answers late."""
    for number in range(_OBJECTS):
        ask("PUT", f"{distant_s3.endpoint}/fixture/few/f{number:05}", content(number))
    distant_s3.set(delay_s=_DELAY_S)
    yield distant_s3
    distant_s3.set(delay_s=0.0)


_INTERRUPTED = """
    import signal, threading, time
    from pathlib import Path
    from modular_tf.fsspec import ModularFileSystem
    folder = Path(sys.argv[1])
    s3 = ModularFileSystem("s3", service=service)
    paths = [f"fixture/few/f{number:05}" for number in range(200)]
    (folder / "up").mkdir()
    for number in range(200):
        (folder / "up" / f"f{number:05}").write_bytes(f"object {number:05}\\n".encode() * 76)
    WORK = {
        "cat": lambda: [s3.cat(paths) for _ in range(100)],
        "get": lambda: s3.get("fixture/few", str(folder / "down"), recursive=True),
        "put": lambda: s3.put(str(folder / "up"), "fixture/put", recursive=True),
    }
    s3.cat(paths[:20])  # what is started or opened once for all is there now

    def open_files():  # without sockets: the SDK keeps its connections
        with os.scandir("/proc/self/fd") as found:
            links = [os.readlink(entry.path) for entry in found if entry.is_symlink()]
        return sum(not link.startswith("socket:") for link in links)

    def interrupt():
        global began
        while sum(requests_now().values()) < 20:
            pass
        began = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    for name, work in WORK.items():
        forget_requests()
        files, threads = open_files(), threading.active_count()
        interrupting = threading.Thread(target=interrupt)
        try:
            interrupting.start()
            work()
        except KeyboardInterrupt:
            took = time.monotonic() - began
        else:
            raise SystemExit("it was done before the interrupt")
        interrupting.join()
        for _ in range(1000):  # calls that are under way end by themselves
            left = threading.active_count() - threads, open_files() - files
            if max(left) <= 0:
                break
            time.sleep(0.01)
        expect((name, took < float(sys.argv[2]), max(left) <= 0), (name, True, True))
    """


def test_an_interrupt_leaves_nothing(late_objects, run_subject, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    env = {"TMPDIR": str(scratch)}
    run_subject(late_objects, _INTERRUPTED, tmp_path, str(_LATEST_S), env=env)

    assert list(scratch.iterdir()) == []
    expect_whole_files(tmp_path / "down")
    late_objects.set(delay_s=0.0)
    bucket = f"{late_objects.endpoint}/fixture"
    listed = ask("GET", f"{bucket}?list-type=2&prefix=put/").body.decode()
    for key in re.findall(r"<Key>([^<]+)</Key>", listed):
        number = key.rpartition("/")[2][1:]
        assert ask("GET", f"{bucket}/{key}").body == (content(int(number)) if number else b""), key


def expect_whole_files(folder):
    for file in folder.rglob("*") if folder.exists() else ():
        if file.is_file():
            assert re.fullmatch(r"f\d{5}", file.name), f"{file} is left over"
            assert file.read_bytes() == content(int(file.name[1:])), f"{file} is cut off"
