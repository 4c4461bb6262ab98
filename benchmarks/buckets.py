"""Time what a data engineer does with a bucket, beside what they would use instead.

Usage: python benchmarks/buckets.py [--plugin LIBRARY] [--peers PYTHON] [--json FILE] [--repeat N]
           [--delay SECONDS ...] [--gigabits N] [--only WORD ...] [--limit SECONDS]
           [--before PYTHON]

The bucket is the emulator tests/emulators/distant_s3.py, which answers after a delay and counts
requests; each delay is a run through all rows. The plugin is tensorflow-io's. The peers are s3fs,
boto3, pyarrow, obstore and `aws s3` of one environment (`pip install ".[bench]"`); those that it
lacks are named. `fs ls -l`, `du` and `sync` run there too, by s3fs and obstore behind a scheme, so
that environment has this package as well; these are whole commands, the start of Python included.
Each client runs in a process of its own, clients of a row take turns, and all check what they read.
`--before` is an environment with an earlier build of this package, which takes turns with this one.
Without `--gigabits` the store sends as fast as it can, and shares this machine's processors with
its client. A figure is the best of the rounds, in milliseconds; the first round warms up.
Nothing here fails: a case that does is reported, and targets are printed beside the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import bucket_clients as clients
import bucket_content as content
from timed_programs import AskedProgram, Timing, end, timed_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

REPOSITORY = Path(__file__).parents[1]
BUCKET = "bench"
OURS, IN_WORKER, BEFORE = "modular_tf", "in a worker", "before"
BY_FSSPEC, BY_DISK = "by its fsspec face", "down and up"
PEERS = ("s3fs", "boto3", "pyarrow", "obstore")
ENOUGH_S = 12.0  # of one client in one row: slow ones get fewer rounds


@dataclass(frozen=True)
class Row:
    """One thing to do.

    Attributes:
        name: What is printed.
        ours: The case of modular_tf.
        theirs: The case of its peers.
        peer: Whose time is the measure.
        factor: How many times the measure modular_tf may take at most; None for no target.
        client: Whose time is measured.
    """

    name: str
    ours: str
    theirs: str
    peer: str
    factor: float | None = None
    client: str = OURS


ROWS = (
    Row("64 MiB whole, open().read()", "whole, open", "whole", "boto3", 1.2),
    Row("64 MiB whole, cat_file", "whole", "whole", "boto3", 1.2),
    Row("64 MiB, open().read(), in a worker", "whole, open", "", OURS, 1 / 0.95, IN_WORKER),
    Row("64 MiB, cat_file, in a worker", "whole", "", OURS, 1 / 0.95, IN_WORKER),
    Row("64 KiB whole, cat_file", "small", "small", "boto3"),
    Row("200 objects, cat", "many", "many", "s3fs", 1.0),
    Row("200 objects, open in 16 threads", "many, threads", "many", "boto3", 1.3),
    Row("100 random 64 KiB, cat_ranges", "random ranges", "random ranges", "s3fs", 1.0),
    Row("100 neighbouring ones, cat_ranges", "near ranges", "near ranges", "obstore", 2.0),
    Row("64 MiB by 8 KiB, Filesystem.open", "pieces, Filesystem", "pieces", BY_FSSPEC, 1.2),
    Row("64 MiB to a local file, gfile.copy", "download", "download", "obstore", 1.2),
    Row("list 1000 with sizes", "sizes", "sizes", "s3fs", 6.0),
    Row("list 1000 names", "names", "sizes", "s3fs"),
    Row("parquet, 3 of 20 columns, pyarrow", "columns", "columns", "s3fs", 1.2),
)
COPIES = (
    Row("fs cp -r of 200 objects, down", "down", "down", "aws", 1.0),
    Row("fs cp -r of 200 files, up", "up", "up", "aws", 1.0),
)
BETWEEN = Row("fs cp -r of 2000 files between buckets", "between", "", BY_DISK, 1.0)
LISTINGS = tuple(
    Row(f"fs {verb} of 2000 objects, by {client}", verb, "", "aws", factor, client)
    for verb in ("ls -l", "du", "sync")
    for client, factor in (("s3fs", 1.5), ("obstore", 1.5), (OURS, None))
)


@dataclass
class Figures:
    """What was found for one client in one row."""

    rounds: list[float] = field(default_factory=list)
    failure: str = ""
    requests: dict[str, int] = field(default_factory=dict)

    @property
    def best(self) -> float | None:
        """The shortest round in milliseconds."""
        return min(self.rounds) * 1e3 if self.rounds else None


class Store:
    """The running emulator."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        """Send one request and return what the answer holds."""
        request = urllib.request.Request(f"{self.endpoint}/{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: bytes = answer.read()
            return found

    def set(self, delay_s: float, gigabits: float = 0.0) -> None:
        """Answer so much later from now on, by so many gigabits a second; 0 for no limit."""
        settings = {"delay_s": delay_s, "bytes_per_s": gigabits * 1e9 / 8}
        self.ask("PUT", "-/settings", json.dumps(settings).encode())

    @contextmanager
    def counting(self, found: dict[str, int]) -> Iterator[None]:
        """Put the requests of the block by kind into `found`."""
        self.ask("DELETE", "-/requests")
        yield
        found.clear()
        found.update(json.loads(self.ask("GET", "-/requests"))["requests"])


@contextmanager
def running_store(folder: Path) -> Iterator[Store]:
    """Run the emulator, with everything in its bucket."""
    log = folder / "store.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.emulators.distant_s3", BUCKET], cwd=REPOSITORY,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        for _ in range(1000):
            found = re.search(r"listening on (http://\S+)\n", log.read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.02)
        if not found:
            sys.exit(f"the store did not start: {log.read_text()}")
        content.fill(found[1], BUCKET)
        yield Store(found[1])
    finally:
        end(process)


@dataclass(frozen=True)
class Doing:
    """What one client does in one row.

    Attributes:
        call: Does it once.
        before: What must be done each time before that, and is not timed.
        check: Raises AssertionError or OSError if not all was done.
    """

    call: Callable[[], Timing]
    before: Callable[[], object] = lambda: None
    check: Callable[[], object] = lambda: None

    def once(self, store: Store, requests: dict[str, int]) -> Timing:
        """Do it, count its requests, and check it."""
        self.before()
        with store.counting(requests):
            timing = self.call()
        try:
            if not timing.failure:
                self.check()
        except (AssertionError, OSError) as error:
            return Timing(0.0, f"{type(error).__name__}: {error}")
        return timing


def measure(doing: Mapping[str, Doing], store: Store, repeat: int) -> dict[str, Figures]:
    """Have each client do its case in turn; the first round only warms up."""
    found = {name: Figures() for name in doing}
    spent = dict.fromkeys(doing, 0.0)
    for number in range(repeat + 1):
        for name, do in doing.items():
            figures = found[name]
            if figures.failure or (figures.rounds and spent[name] > ENOUGH_S):
                continue
            start = time.monotonic()
            timing = do.once(store, figures.requests)
            spent[name] += time.monotonic() - start
            figures.failure = timing.failure
            if number and not timing.failure:
                figures.rounds.append(timing.seconds)
    return found


def reading(row: Row, asked: Mapping[str, AskedProgram]) -> dict[str, Doing]:
    """Return what the clients that have a row's case do in it."""
    names = {row.client, row.peer}
    if row.client == OURS:
        names |= asked.keys() - {IN_WORKER, BY_FSSPEC}
    ours = (OURS, IN_WORKER, BEFORE)
    cases = {name: row.ours if name in ours else row.theirs for name in names}
    return {
        name: Doing(partial(client.ask, cases[name]))
        for name, client in asked.items()
        if name in names and cases[name] in client.cases
    }


def copying(row: Row, store: Store, options: argparse.Namespace) -> dict[str, Doing]:
    """Return the commands of modular_tf and aws that copy 200 files."""
    local, target = options.folder / "local", options.folder / "copied"
    commands: dict[str, list[Any]] = {
        name: [python, "-m", "modular_tf", "fs", "cp", "-r", "--plugin", options.plugin]
        for name, python in _builds(options).items()
    }
    if options.aws:
        commands["aws"] = [options.aws, "s3", "cp", "--recursive", "--only-show-errors"]
        commands["aws"] += ["--endpoint-url", store.endpoint]
    env = _environment(store)
    down = row.ours == "down"
    remote = f"s3://{BUCKET}/{content.MANY_FOLDER if down else 'copied'}"
    places = [remote, target] if down else [local, remote]
    check = partial(_same, local, target) if down else partial(_stored, store)
    return {
        name: Doing(
            partial(timed_command, [*command, *places], env, options.limit),
            partial(_remove, store, target),
            check,
        )
        for name, command in commands.items()
    }


def between(store: Store, options: argparse.Namespace) -> dict[str, Doing]:
    """Return the commands that copy 2000 files to another bucket, and those by way of the disk."""
    env, local = _environment(store), options.folder / "between"
    other = f"{BUCKET}-2"
    source, target = (f"s3://{name}/{content.LISTED_FOLDER}" for name in (BUCKET, other))

    def copy(python: str, *places: object) -> Timing:
        command = [python, "-m", "modular_tf", "fs", "cp", "-r", "-q", "--plugin", options.plugin]
        return timed_command([*command, *places], env, options.limit)

    def by_disk() -> Timing:
        halves = copy(sys.executable, source, local), copy(sys.executable, local, target)
        failures = (half.failure for half in halves)
        return Timing(sum(half.seconds for half in halves), next(filter(None, failures), ""))

    def renew() -> None:
        shutil.rmtree(local, ignore_errors=True)
        for method in ("PUT", "DELETE", "PUT"):
            store.ask(method, other)

    def check() -> None:
        page = store.ask("GET", f"{other}?list-type=2").decode()
        while token := re.search(r"<NextContinuationToken>(.*?)</", page):
            query = f"list-type=2&continuation-token={quote(token[1])}"
            page = page.replace(token[0], "") + store.ask("GET", f"{other}?{query}").decode()
        assert page.count(f"<Size>{len(content.WIDE_DATA)}</Size>") == len(content.LISTED)

    calls = {
        name: partial(copy, python, source, target) for name, python in _builds(options).items()
    }
    return {name: Doing(call, renew, check) for name, call in {**calls, BY_DISK: by_disk}.items()}


def _builds(options: argparse.Namespace) -> dict[str, str]:
    """Return the interpreters that have a build of this package, by client."""
    return {OURS: sys.executable, **({BEFORE: options.before} if options.before else {})}


def listing(row: Row, store: Store, options: argparse.Namespace) -> dict[str, Doing]:
    """Return the commands of modular_tf, by one client, and of aws that list 2000 objects."""
    python = sys.executable if row.client == OURS else options.peers
    scheme = {OURS: "s3", "s3fs": "by.s3fs", "obstore": "by.obstore"}[row.client]
    plugin = ["--plugin", options.plugin] if row.client == OURS else []
    config = options.folder / "modular-tf.toml"
    config.write_text(
        f"[filesystems.\"by.s3fs\"]\nfsspec = 's3'\nkey = '{clients.KEY}'\n"
        f"secret = '{clients.SECRET}'\nendpoint_url = '{store.endpoint}'\n"
        "[filesystems.\"by.obstore\"]\nobject = 'bucket_clients:obstore_store'\n"
    )
    env = _environment(store)
    ours = {**env, "MODULAR_TF_CONFIG": str(config), "ENDPOINT": store.endpoint, "BUCKET": BUCKET}
    if row.client == "obstore":
        places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        ours["PYTHONPATH"] = os.pathsep.join(filter(None, places))

    def remote(scheme: str) -> str:
        return f"{scheme}://{BUCKET}/{content.LISTED_FOLDER}"

    local = options.folder / content.LISTED_FOLDER
    from_local = [local] if row.ours == "sync" else []
    pythons = {row.client: python, **({BEFORE: options.before} if options.before else {})}
    words = [*row.ours.split(), *plugin, *from_local, remote(scheme)]
    found = {
        name: Doing(
            partial(timed_command, [python, "-m", "modular_tf", "fs", *words], ours, options.limit)
        )
        for name, python in pythons.items()
    }
    if options.aws:
        verb = ["sync"] if from_local else ["ls", "--recursive", "--summarize"]
        aws = [options.aws, "s3", *verb, "--endpoint-url", store.endpoint, *from_local]
        found["aws"] = Doing(partial(timed_command, [*aws, remote("s3") + "/"], env, options.limit))
    return found


def _environment(store: Store) -> dict[str, str]:
    """Return the variables by which the plugin and aws find the store."""
    env = {**os.environ, **content.plugin_environment(store.endpoint)}
    return env | {"AWS_CONFIG_FILE": os.devnull, "AWS_DEFAULT_REGION": "us-east-1"}


def _remove(store: Store, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    keys = [*content.COPIED, "copied/"]  # the last is the folder's own object, where one is made
    named = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    store.ask("POST", f"{BUCKET}?delete", f"<Delete>{named}</Delete>".encode())


def _same(expected: Path, found: Path) -> None:
    for file in expected.iterdir():
        assert (found / file.name).read_bytes() == file.read_bytes(), f"{file.name} differs"


def _stored(store: Store) -> None:
    for source, key in zip(content.MANY, content.COPIED, strict=True):
        found = store.ask("GET", f"{BUCKET}/{key}")
        assert found == content.small_data(source), f"{key} differs"


def show(row: Row, found: Mapping[str, Figures]) -> dict[str, object]:
    """Print a row with its ratio, target and requests; return it as figures."""
    ours, peer = (found.get(name, Figures()).best for name in (row.client, row.peer))
    ratio = ours / peer if ours and peer else None
    target = f"at most {row.factor:.3g} x {row.peer}" if row.factor else f"no target, {row.peer}"
    if ratio is None:
        verdict = "no ratio"
    else:
        met = "" if row.factor is None else ", met" if ratio <= row.factor else ", MISSED"
        verdict = f"{ratio:.2f} x{met}"
    print(f"{row.name:38}{verdict:18}({target})")
    if ours and (before := found.get(BEFORE, Figures()).best):
        print(f"    {ours / before:.2f} x before")
    for name, figures in found.items():
        time_of = f"{figures.best:10.1f} ms" if figures.best else f"{'failed':>13}"
        requests = ", ".join(f"{count} {kind}" for kind, count in figures.requests.items())
        print(f"    {name:12}{time_of}   {sum(figures.requests.values()):5} requests: {requests}")
        if figures.failure:
            print(f"        {figures.failure}")
    sys.stdout.flush()
    return {
        "row": row.name, "target": target, "factor": row.factor, "ratio": ratio,
        "clients": {
            name: {"ms": figures.best, "requests": figures.requests, "failure": figures.failure}
            for name, figures in found.items()
        },
    }  # fmt: skip


def run_all(store: Store, options: argparse.Namespace) -> list[dict[str, object]]:
    """Run every row at every delay."""
    env = {**os.environ, "ENDPOINT": store.endpoint, "BUCKET": BUCKET, "PLUGIN": options.plugin}
    program = Path(__file__).with_name("bucket_clients.py")
    pythons = {OURS: sys.executable, **dict.fromkeys(PEERS, options.peers)}
    asked = {
        name: AskedProgram([python, program, name], env, options.limit)
        for name, python in pythons.items()
    }
    in_worker = {**env, "MODULAR_TF_ISOLATION": "process"}
    asked[BY_FSSPEC] = AskedProgram([sys.executable, program, OURS], env, options.limit)
    if options.before:
        asked[BEFORE] = AskedProgram([options.before, program, OURS], env, options.limit)
    asked[IN_WORKER] = AskedProgram([sys.executable, program, OURS], in_worker, options.limit)
    figures = []
    with ExitStack() as stack:
        for name, client in asked.items():
            stack.callback(client.close)
            if failure := client.start():
                print(f"{name} is missing: {failure}")
        if not options.aws:
            print("aws is missing: it is not beside the interpreter of the peers, nor in PATH")
        for delay in options.delay:
            line = f", {options.gigabits:g} Gbit/s" if options.gigabits else ""
            print(f"\n--- {delay * 1e3:g} ms a request{line}")
            for row in (*ROWS, *COPIES, BETWEEN, *LISTINGS):
                if not any(word in row.name for word in options.only):
                    continue
                if row in COPIES:
                    doing = copying(row, store, options)
                elif row is BETWEEN:
                    doing = between(store, options)
                elif row in LISTINGS:
                    doing = listing(row, store, options)
                else:
                    doing = reading(row, asked)
                store.set(delay, options.gigabits)
                found = measure(doing, store, options.repeat)
                figures.append({"delay_s": delay, **show(row, found)})
    return figures


def tests_plugin() -> str:
    """Return the plugin that the tests of this checkout use; pip downloads it at first use."""
    sys.path.append(str(REPOSITORY))  # at the end: the installed package is what is timed
    from tests.fixtures.machine import cached_folder
    from tests.fixtures.wild import VERSION, install_distributions

    site = cached_folder(f"wild/{VERSION}", install_distributions)
    return str(site / "tensorflow_io/python/ops/libtensorflow_io_plugins.so")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin", help="default: the library that the tests download")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="has the peers")
    parser.add_argument("--before", metavar="PYTHON", help="has an earlier build of this package")
    parser.add_argument("--delay", type=float, nargs="+", default=[0.0, 0.01], metavar="SECONDS")
    parser.add_argument("--gigabits", type=float, default=0.0, help="of the line; 0: no limit")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="rows with it")
    parser.add_argument("--repeat", type=int, default=3, help="interleaved rounds")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of one case")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    options.plugin = options.plugin or tests_plugin()
    beside = Path(options.peers).with_name("aws")
    options.aws = str(beside) if beside.exists() else shutil.which("aws")
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        (options.folder / "local").mkdir()
        for key in content.MANY:
            file = options.folder / "local" / key.rpartition("/")[2]
            file.write_bytes(content.small_data(key))
        (options.folder / content.LISTED_FOLDER).mkdir()
        for key in content.LISTED:
            file = options.folder / key
            file.write_bytes(content.WIDE_DATA)
            os.utime(file, (0, 0))  # older than the object, so that nothing is to be copied
        with running_store(options.folder) as store:
            figures = run_all(store, options)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
