"""Work on many objects takes bounded memory and threads, and leaves nothing when interrupted."""

from __future__ import annotations

import http.client
import re
from urllib.parse import urlsplit

import pytest

from tests.fixtures.emulators import NAME
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT

pytestmark = [pytest.mark.wild, pytest.mark.emulator, pytest.mark.xdist_group("many objects")]

# The promise is about 10 000 objects, which take their time.
_OBJECTS = int(DEVELOPER_ENVIRONMENT.get("MODULAR_TF_MANY_OBJECTS", "600"))
_LENGTH = 1000
_FEW = 200
_DELAY_S = 0.05
_LATEST_S = 5.0  # the promise is one second, the machine may be busy


def content(number: int) -> bytes:
    return f"object {number:05}\n".encode() * (_LENGTH // 13)


@pytest.fixture(scope="module")
def ask(distant_s3):
    """Return what asks the store for an object, or stores one, by one connection."""
    connection = http.client.HTTPConnection(urlsplit(distant_s3.endpoint).netloc, timeout=20)

    def ask(method: str, path: str, body: bytes | None = None) -> bytes:
        connection.request(method, f"/{NAME}{path}", body)
        return connection.getresponse().read()

    yield ask
    connection.close()


@pytest.fixture(scope="module")
def many_objects(distant_s3, ask):
    """Return a store with many objects in one folder and 200 in another."""
    for folder, count in (("many", _OBJECTS), ("few", _FEW)):
        for number in range(count):
            assert ask("PUT", f"/{folder}/f{number:05}", content(number)) == b""
    return distant_s3


@pytest.fixture
def late_objects(many_objects):
    """Return the store when it answers late."""
    many_objects.set(delay_s=_DELAY_S)
    yield many_objects
    many_objects.set(delay_s=0.0)


def test_many_objects_take_bounded_memory_and_threads(many_objects, run_subject):
    child = run_subject(
        many_objects,
        """
        import resource, threading, time
        from modular_tf.fsspec import ModularFileSystem
        count, length = map(int, sys.argv[1:])
        s3 = ModularFileSystem("s3", service=service)
        paths = [f"fixture/many/f{number:05}" for number in range(count)]
        s3.cat(paths[:100])

        def threads():
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if "Threads:" in line)

        most, going = threads(), True
        def watch():
            global most
            while going:
                most = max(most, threads())
                time.sleep(0.005)
        watcher = threading.Thread(target=watch)
        watcher.start()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = s3.cat(paths)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        going = False
        watcher.join()
        expect(len(found), count)
        for number, path in enumerate(paths):
            expect(found[path], f"object {number:05}\\n".encode() * (length // 13))
        print((after - before) // 1024 - count * length // 2**20, most)
        """,
        str(_OBJECTS),
        str(_LENGTH),
        timeout=280,
    )
    beyond_the_data_mib, threads = map(int, child.stdout.split())

    assert beyond_the_data_mib < 200
    assert threads <= 100  # 32 of ours, and what the plugin's SDK has in its pools


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


def test_an_interrupt_leaves_nothing(late_objects, run_subject, ask, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    env = {"TMPDIR": str(scratch)}
    run_subject(late_objects, _INTERRUPTED, tmp_path, str(_LATEST_S), env=env)

    assert list(scratch.iterdir()) == []
    expect_whole_files(tmp_path / "down")
    late_objects.set(delay_s=0.0)
    for key in re.findall(r"<Key>([^<]+)</Key>", ask("GET", "?list-type=2&prefix=put/").decode()):
        number = key.rpartition("/")[2][1:]
        assert ask("GET", f"/{key}") == (content(int(number)) if number else b""), key


def expect_whole_files(folder):
    for file in folder.rglob("*") if folder.exists() else ():
        if file.is_file():
            assert re.fullmatch(r"f\d{5}", file.name), f"{file} is left over"
            assert file.read_bytes() == content(int(file.name[1:])), f"{file} is cut off"
