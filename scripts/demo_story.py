"""Tell the story of the demo: every command is shown, run, and has to end as it should.

Usage: demo_story.py PLUGIN WORLD
    PLUGIN   the library of tensorflow-io with the filesystem plugins
    WORLD    a folder for everything that the story makes; emptied first
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS_TO_START_A_SERVER = 60
REPORT = "city,items,price\nOslo,3,10\nLima,5,12\nPune,2,7\n"

PANDAS = """\
import modular_tf as mtf
import pandas as pd

with mtf.PluginService() as service:
    service.load()
    mtf.fsspec.register(service)

    sales = pd.read_csv("s3://demo/sales/may.csv")
    sales["total"] = sales["items"] * sales["price"]
    sales.to_csv("s3://demo/sales/totals.csv", index=False)
    print(sales)
"""

PYTHON_FILESYSTEM = """\
import fsspec
import modular_tf as mtf

service = mtf.default_service()
service.register_filesystem("scratch", fsspec.filesystem("memory"))

mtf.gfile.copy("s3://demo/sales/totals.csv", "scratch://here/totals.csv")
print(mtf.gfile.GFile("scratch://here/totals.csv").readline(), end="")
print("scratch:// is served by", service.schemes()["scratch"])
"""

DEVICE = """\
import modular_tf as mtf
import numpy as np

with mtf.PluginService() as service:
    service.load()
    cpu = service.device("CPU:0")

    array = cpu.put(np.arange(6.0).reshape(2, 3))
    print(array, array.to_numpy().sum())

    stream = cpu.create_stream()
    stream.add_callback(lambda: print("the stream got here"))
    stream.block_until_done()

    shared = cpu.put(np.ones(3), memory="host")
    np.from_dlpack(shared)[0] = 7  # no copy: numpy writes to the array itself
    print(shared.to_numpy())
"""


class Stage:
    """Where the story happens: an environment of its own, and the screen."""

    def __init__(self, world: Path) -> None:
        shutil.rmtree(world, ignore_errors=True)
        self.world = world
        self.files = world / "work"
        self.drop_in = world / "data" / "modular_tf" / "plugins"
        self.files.mkdir(parents=True)
        self.environment = _environment(world)
        self._steps = 0
        self._bold, self._plain = "\033[1m", "\033[0m"
        if not sys.stdout.isatty():
            self._bold = self._plain = ""
            self.environment["TERM"] = "dumb"

    def step(self, title: str, *paragraphs: str) -> None:
        """Begin a step of the story."""
        self._steps += 1
        print(f"{self._bold}{self._steps}. {title}{self._plain}\n")
        for paragraph in paragraphs:
            self.say(paragraph)

    def say(self, paragraph: str) -> None:
        """Explain something."""
        indents = {"initial_indent": "   ", "subsequent_indent": "   "}
        print(textwrap.fill(paragraph, 90, break_on_hyphens=False, **indents) + "\n")

    def run(self, command: str, *, status: int = 0) -> None:
        """Show a command and run it; any other exit status than `status` ends the story."""
        self._show(f"$ {command}")
        self._run(["bash", "-c", command], status)

    def python(self, code: str) -> None:
        """Show Python code and run it."""
        self._show(textwrap.indent(code, "| ", lambda _: True))
        self._run([sys.executable, "-c", code], 0)

    def _show(self, typed: str) -> None:
        print(f"{self._bold}{typed}{self._plain}", flush=True)

    def _run(self, command: list[str], status: int) -> None:
        """Run a command on a terminal of its own, where it speaks to people, and repeat it."""
        ours, its = pty.openpty()
        child = subprocess.Popen(command, cwd=self.files, env=self.environment, stdout=its)
        os.close(its)
        for piece in _said_on(ours):
            sys.stdout.buffer.write(piece.replace(b"\r\n", b"\n"))
            sys.stdout.buffer.flush()
        os.close(ours)
        if child.wait() != status:
            raise SystemExit(f"demo: that ended with status {child.returncode}, not {status}")
        print()


def _said_on(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, 2**16)
        except OSError:  # how a terminal says that nobody is left on the other side
            return
        if not piece:
            return
        yield piece


def _environment(world: Path) -> dict[str, str]:
    """Return an environment in which nothing of the user's is seen."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MODULAR_TF_", "TF_", "AWS_", "S3_", "XDG_", "PYTHON"))
    }
    for variable, folder in {
        "HOME": "home",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
    }.items():
        (world / folder).mkdir()
        environment[variable] = str(world / folder)
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment |= {"COLUMNS": "110", "LINES": "50"}
    environment["NO_PROXY"] = environment["no_proxy"] = "127.0.0.1"
    return environment


def main() -> None:
    """Tell the whole story."""
    plugin, world = (Path(argument).resolve() for argument in sys.argv[1:])
    stage = Stage(world)
    print(f"Everything below happens in {world}\n")
    tell_of_nothing(stage)
    tell_of_a_plugin(stage, plugin)
    with store(stage.world) as endpoint:
        stage.environment.update(_settings_of_s3(endpoint))
        tell_of_files(stage, endpoint)
        tell_of_pandas(stage)
        tell_of_python(stage)
    tell_of_devices(stage)
    tell_of_reasons(stage, plugin)
    tell_what_next()


def tell_of_nothing(stage: Stage) -> None:
    """Before any plugin is there."""
    stage.step(
        "No plugins",
        "modular_tf hosts the filesystem and device plugins that were written for TensorFlow."
        " TensorFlow itself is not installed here. Without any plugin there is nothing"
        " (exit status 3 says so to scripts):",
    )
    stage.run("modular-tf --no-bundled list", status=3)
    stage.say("The package brings three plugins of its own: local files, memory, and the CPU.")
    stage.run("modular-tf list")


def tell_of_a_plugin(stage: Stage, plugin: Path) -> None:
    """A third party's plugin is dropped in."""
    stage.step(
        "Drop in a real plugin",
        "This library is from the tensorflow-io package, as published, built for TensorFlow 2.16."
        " Putting the file into the drop-in folder is all; so would be `pip install --no-deps"
        " tensorflow-io`, or one of the other places that `modular-tf paths` lists.",
    )
    stage.drop_in.mkdir(parents=True)
    shutil.copy(plugin, stage.files)
    stage.run(f'mv {plugin.name} "$XDG_DATA_HOME/modular_tf/plugins/"')
    stage.run("modular-tf list")
    stage.say("Its schemes are served now:")
    stage.run("modular-tf schemes")


def tell_of_files(stage: Stage, endpoint: str) -> None:
    """Files in S3 through the plugin."""
    stage.step(
        "Files in S3, without TensorFlow",
        f"A stand-in for Amazon S3 runs at {endpoint} on this machine (moto). The plugin is told"
        " where by its own environment variables, S3_ENDPOINT and the usual AWS_ ones.",
    )
    (stage.files / "may.csv").write_text(REPORT, encoding="utf-8")
    stage.run("modular-tf fs cp may.csv s3://demo/sales/may.csv")
    stage.run("modular-tf fs ls -l s3://demo/sales")
    stage.run("modular-tf fs cat s3://demo/sales/may.csv")


def tell_of_pandas(stage: Stage) -> None:
    """The same through fsspec."""
    stage.step(
        "The same in pandas",
        "One call offers all schemes to fsspec, and so to pandas, pyarrow, dask and the rest."
        " No s3fs is installed: these bytes go through the C plugin.",
    )
    stage.python(PANDAS)


def tell_of_python(stage: Stage) -> None:
    """Python serves a scheme as well."""
    stage.step(
        "A filesystem written in Python",
        "Any fsspec filesystem, or an object with some of the operations, can serve a scheme"
        " beside the C plugins. mtf.gfile has the names and results of tf.io.gfile.",
    )
    stage.python(PYTHON_FILESYSTEM)


def tell_of_devices(stage: Stage) -> None:
    """The other kind of plugin."""
    stage.step(
        "Devices",
        "Device plugins come the same way; the CPU's is the one at hand. --smoke tries what"
        " everything else is made of, on each device:",
    )
    stage.run("modular-tf devices")
    stage.run("modular-tf devices --smoke")
    stage.say(
        "In Python a device has memory, streams, events and timers, and arrays that numpy, torch,"
        " jax and tvm-ffi take by DLPack:"
    )
    stage.python(DEVICE)


def tell_of_reasons(stage: Stage, plugin: Path) -> None:
    """What is absent or broken explains itself."""
    stage.step("Why not?", "A scheme that nobody serves (exit status 1: the answer is no):")
    stage.run("modular-tf why gs", status=1)
    stage.say("And a plugin whose download was cut off. Nothing of it was run to find that out:")
    broken = stage.drop_in / "libcut_off.so"
    broken.write_bytes(plugin.read_bytes()[:1_000_000])
    stage.run("modular-tf why cut_off")
    stage.say("The others go on; one bad plugin never stops the rest:")
    stage.run("modular-tf list")


def tell_what_next() -> None:
    """Where to go from here."""
    print(
        """\
That was it. Next:
   README.md                    the same for your own plugins and stores
   contrib/*/README.md          how to write a plugin: four of them, in C and C++
   scripts/test                 everything that is checked about all this
"""
    )


@contextmanager
def store(folder: Path) -> Iterator[str]:
    """Run a stand-in for S3, with a bucket in it; yield its URL."""
    log = folder / "store.log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        endpoint = _endpoint(server, log)
        _make_bucket(endpoint)
        yield endpoint
    finally:
        server.terminate()
        server.wait()


def _endpoint(server: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the server's own words on where it listens."""
    for _ in range(SECONDS_TO_START_A_SERVER * 10):
        found = re.search(r"Running on (http://\S+)", log.read_text(encoding="utf-8"))
        if found:
            return found[1]
        if server.poll() is not None:
            break
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    raise SystemExit(f"demo: {shlex.join(map(str, server.args))} does not start; see {log}")


def _settings_of_s3(endpoint: str) -> dict[str, str]:
    return {
        "S3_ENDPOINT": endpoint,
        "S3_VERIFY_SSL": "0",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _make_bucket(endpoint: str) -> None:
    import boto3  # noqa: PLC0415  (slow to import, and needed late)

    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="nobody",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="demo")
    client.close()


if __name__ == "__main__":
    main()
