"""What `modular-tf doctor` reports of files, plugins and stores, against what happens."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from modular_tf.cli.main import run as run_command
from modular_tf.tensorflow import doctor
from modular_tf.tensorflow.doctor import (
    AvailableScheme,
    Diagnosis,
    FileRow,
    ImportOutcome,
    PluginRow,
    TensorFlowInstallation,
)
from tests.fixtures.matrices import BEYOND_THE_SAMPLE
from tests.fixtures.tensorflow import VERSION as TENSORFLOW
from tests.tensorflow.bad_libraries import CASES, MARK, source
from tests.tensorflow.conftest import linked_site

pytestmark = pytest.mark.timeout(300)
_ONE_PROCESS = pytest.mark.xdist_group("actions in tensorflow")  # that of `trials`

# The outcomes of a run's sample, whose files lie beside each other.
_SAMPLE = {
    "kernels only": "loads",
    "undefined symbol in a companion": "fails",
    "SE_InitPlugin aborts": "aborts",
}
_BY_NAME = {case.name: case for case in CASES}
_SEVERITY = ("ignored", "loads", "unknown", "ends in use", "fails", "hangs", "aborts")
_SECRET = "dont-show-me"
_ITS_VARIABLE = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"

# What TensorFlow's import does with plugins are three statements at the end of its `__init__.py`.
_OBSERVE = """
    import ast, os, signal, sys
    from pathlib import Path
    import tensorflow as tf

    signal.alarm(60)
    if sys.argv[1]:
        tf.experimental.register_filesystem_plugin(sys.argv[1])
        is_loaded = True
    else:
        body = ast.parse(Path(tf.__file__).read_text("utf-8")).body
        names = [getattr(statement, "name", None) for statement in body]
        first = names.index("_running_from_pip_package")
        statements = ast.Module(body[first : first + 3], type_ignores=[])
        exec(compile(statements, tf.__file__, "exec", dont_inherit=True), vars(tf))
        is_loaded = any(device.device_type != "CPU" for device in tf.config.list_physical_devices())
    if is_loaded:
        Path(os.environ["DOCTOR_CASE_MARK"]).touch()
    os._exit(0)
"""


class Ended(NamedTuple):
    """How an import ended, or is said to end, and with an exception its message."""

    outcome: str
    message: str = ""


class Trials:
    """Tries cases with the TensorFlow of the tests."""

    def __init__(self, tensorflow, site, folder):
        self._tensorflow = tensorflow
        self._site = site
        self._folder = folder
        self._mark = folder / "mark"

    def make(self, case):
        """Make the files of a case."""
        case.make_in(self._folder if case.way == "register" else self._site / "tensorflow-plugins")

    def remove(self):
        """Remove what TensorFlow would find."""
        shutil.rmtree(self._site / "tensorflow-plugins")
        (self._site / "tensorflow-plugins").mkdir()

    def observe(self, case):
        """Return what TensorFlow does with the files that were made."""
        self._mark.unlink(missing_ok=True)
        env, plugin = self._variables(case), self._plugin(case)
        done = self._tensorflow.run(
            _OBSERVE, plugin, folder=self._folder, environment=env, timeout=240
        )
        if done.returncode == -signal.SIGALRM:
            return Ended("hangs")
        if done.returncode < 0:
            return Ended("aborts")
        if done.returncode:
            return Ended("fails", done.stderr[done.stderr.rindex("Traceback") :])
        return Ended("loads" if self._mark.exists() else "ignored")

    def report(self, case):
        """Return what doctor reports of them, by the names of files, and its exit status."""
        plugin = self._plugin(case)
        named = [f"--plugin={plugin}"] if plugin else []
        status, found = _doctor(self._site, env=self._variables(case), options=named)
        if plugin:
            (row,) = [row for row in found["plugins"] if row["path"] == plugin]
            return {"plugin.so": Ended(row["in_tensorflow"], row["in_tensorflow_message"])}, status
        rows = {Path(row["path"]).name: row for row in found["files"]}
        rows.pop("companions", None)
        return {name: Ended(row["outcome"], row["message"]) for name, row in rows.items()}, status

    def _variables(self, case):
        path = str(self._site / "tensorflow-plugins" / case.variable)
        return {MARK: str(self._mark), **({_ITS_VARIABLE: path} if case.variable else {})}

    def _plugin(self, case):
        return str(self._folder / "plugin.so") if case.way == "register" else ""


@pytest.fixture
def trials(tensorflow, tensorflow_site, tmp_path):
    """What tries cases, one after the other."""
    made = Trials(tensorflow, tensorflow_site, tmp_path)
    yield made
    made.remove()


@pytest.fixture
def site(tmp_path):
    """A folder `site-packages` with TensorFlow, and an empty `tensorflow-plugins`."""
    return linked_site(tmp_path)


def _run(*paths, env=None, options=()):
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *map(str, paths)]))
    environment = {**os.environ, **(env or {}), "PYTHONPATH": path}
    words = [word for word in options if word.startswith("--plugin")]
    options = [word for word in options if word not in words]
    command = [sys.executable, "-m", "modular_tf", *words, "doctor", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def _doctor(*paths, env=None, options=()):
    done = _run(*paths, env=env, options=("--json", *options))
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, json.loads(done.stdout)


def _plain(message):
    """Return a message with its paths in one spelling: the linker follows search paths."""
    return re.sub(r"/[^\s:]+", lambda path: os.path.normpath(path[0]), message)


@_ONE_PROCESS
@BEYOND_THE_SAMPLE
@pytest.mark.parametrize("name", _BY_NAME)
def test_what_tensorflow_does_is_reported(trials, name):
    case = _BY_NAME[name]
    trials.make(case)

    observed = trials.observe(case)
    rows, status = trials.report(case)

    worst = max(rows.values(), key=lambda row: _SEVERITY.index(row.outcome))
    assert worst.outcome == observed.outcome, (observed, rows)
    if observed.outcome == "fails":  # the very message, but for the spelling of paths
        assert _plain(worst.message) in _plain(observed.message)
    if case.way == "import" and observed.outcome not in {"loads", "ignored"}:
        assert status == 1


@_ONE_PROCESS
def test_each_file_is_reported_as_tensorflow_does_with_it_alone(trials, site, tmp_path):
    """What aborts runs in no process of ours, what is not trusted in none at all."""
    plugins = site / "tensorflow-plugins"
    for name, outcome in _SAMPLE.items():
        case = _BY_NAME[name]
        case.make_in(plugins)
        trials.make(case)
        observed = trials.observe(case)
        trials.remove()
        assert observed.outcome == outcome, (name, observed)
    open_to_all = shutil.copy(plugins / "kernels.so", plugins / "open_to_all.so")
    Path(open_to_all).chmod(0o777)
    os.mkfifo(plugins / "fifo.so")
    own = _BY_NAME["scheme of TensorFlow's own"]
    own.make_in(tmp_path)
    plugin = str(tmp_path / "plugin.so")

    status, found = _doctor(site, options=[f"--plugin={plugin}"])

    rows = {Path(row["path"]).name: row for row in found["files"]}
    expected = {file: outcome for name, outcome in _SAMPLE.items() for file in _BY_NAME[name].files}
    other = {"open_to_all.so": "unknown", "fifo.so": "unknown"}
    outcomes = {name: row["outcome"] for name, row in rows.items() if name != "companions"}
    assert (status, outcomes) == (1, {**expected, **other})
    for name, words in {
        "c.so.1.2": "gone_deep",
        "open_to_all.so": "not tried",
        "fifo.so": "FIFO",
    }.items():
        assert words in rows[name]["message"]
    (registered,) = [row for row in found["plugins"] if row["path"] == plugin]
    assert registered["in_tensorflow"] == "fails"

    subprocess.run(["sh", "-c", rows["aborts.so"]["remedy"]], check=True)
    assert not (plugins / "aborts.so").exists()
    assert (site / "aborts.so").exists()


@BEYOND_THE_SAMPLE
def test_plugins_outside_of_packages_are_not_opened(site):
    _BY_NAME["undefined symbol"].make_in(site / "tensorflow-plugins")
    elsewhere = site.with_name("elsewhere")
    elsewhere.mkdir()
    (site / "tensorflow").rename(elsewhere / "tensorflow")

    _, found = _doctor(site, elsewhere)

    (row,) = found["files"]
    assert row["outcome"] == "ignored"
    assert str(elsewhere) in row["message"]


@pytest.mark.skipif(
    tuple(map(int, TENSORFLOW.split(".")[:2])) < (2, 18), reason="it loads these plugins by itself"
)
def test_what_tensorflow_lacks_is_reported(wild_plugins, site):
    status, found = _doctor(wild_plugins.site_dir, site)

    rows = {row["plugin"]: row for row in found["plugins"]}
    assert status == 0  # they serve here
    assert rows["tensorflow-io"]["in_tensorflow"] == "fails"
    assert "undefined symbol: _ZN3tsl" in rows["tensorflow-io"]["in_tensorflow_message"]
    assert "modular_tf.tensorflow.auto" in rows["tensorflow-io"]["remedy"]
    assert "s3" in found["lacking"]
    (gs,) = (row for row in found["schemes"] if row["scheme"] == "gs")
    assert (gs["in_tensorflow"], gs["remedy"]) == (True, "")


def test_without_tensorflow_it_reports_what_is_served(wild_plugins):
    status, found = _doctor(wild_plugins.site_dir)
    shown = _run(options=("--help",)).stdout

    rows = {row["plugin"]: row for row in found["plugins"]}
    assert (status, found["tensorflow"], found["well"]) == (0, None, True)
    assert {"s3", "az", "http"} <= set(rows["tensorflow-io"]["schemes"])
    assert rows["tensorflow-io"]["in_tensorflow"] is None
    keys = found.keys() - {"schema_version"}  # of every command
    assert [key for key in keys if f"`{key}`" not in shown] == []


def test_a_dead_server_is_reported_without_secrets(wild_plugins):
    env = {
        "S3_ENDPOINT": f"http://user:{_SECRET}@127.0.0.1:1",
        "AWS_SECRET_ACCESS_KEY": _SECRET,
        "HADOOP_HDFS_HOME": "/nowhere",
    }

    status, found = _doctor(wild_plugins.site_dir, env=env)
    page = _run(wild_plugins.site_dir, env=env)

    rows = {row["scheme"]: row for row in found["stores"]}
    assert (status, page.returncode) == (1, 1)
    assert "127.0.0.1:1 accepts no connection" in rows["s3"]["problem"]
    assert rows["s3"]["variables"]["AWS_SECRET_ACCESS_KEY"] is True
    assert rows["hdfs"]["problem"].startswith("/nowhere/lib/native/libhdfs.so does not exist")
    assert _SECRET not in f"{found}{page.stdout}{page.stderr}"


def test_a_scheme_that_is_wanted_and_nobody_serves_fails():
    env = {"MODULAR_TF_FSSPEC_FALLBACK": "1"}
    without, before = _doctor(env=env)
    wanting = {**env, "S3_ENDPOINT": _SECRET, "AWS_ACCESS_KEY_ID": _SECRET}
    status, found = _doctor(env=wanting)

    rows = {row["scheme"]: row for row in found["schemes"]}
    assert (without, status, before["well"], found["well"]) == (0, 1, True, False)
    assert rows["s3"]["wanted_by"] == ["AWS_ACCESS_KEY_ID", "S3_ENDPOINT"]
    assert (
        rows["s3"]["remedy"] == "to have it: `modular-tf fetch tensorflow-io` or `pip install s3fs`"
    )
    assert _SECRET not in str(found)


def test_a_client_of_fsspec_and_the_configuration_count(tmp_path):
    config, client = tmp_path / "c.toml", tmp_path / "clients"
    config.write_text(
        '[filesystems]\nmine = "fsspec"\nmemory = "fsspec"\nlake = {object = "nowhere.at:all"}\n'
        'token = {fsspec = "memory", token = {env = "NO_SUCH_VARIABLE"}}\n'
    )
    client.mkdir()
    (client / "s3fs.py").write_text("raise SystemExit('imported')\n")
    env = {"MODULAR_TF_FSSPEC_FALLBACK": "1", "MODULAR_TF_CONFIG": str(config), "S3_ENDPOINT": "x"}

    status, found = _doctor(client, env=env)

    rows = {row["scheme"]: row for row in found["schemes"]}
    assert status == 1
    assert rows["s3"]["plugin"] == "fsspec.s3"
    assert rows["s3"]["message"] == "scheme 's3' is served by s3fs, since no plugin serves it"
    assert {scheme for scheme, row in rows.items() if row["bad"]} == {"mine", "lake", "token"}
    assert rows["mine"]["message"] == "fsspec knows no protocol 'mine'"
    assert rows["lake"]["message"].startswith("nowhere is not installed")
    assert "NO_SUCH_VARIABLE" in rows["token"]["message"]


@pytest.fixture
def page_of(monkeypatch, capsys):
    """Return what shows a diagnosis as the command does: its lines, and the exit status."""

    def show(*, problem="", files=(), plugins=(), schemes=()):
        installation = TensorFlowInstallation("/site/tensorflow", "2.21.0", problem)
        found = Diagnosis(installation, tuple(files), tuple(plugins), (), tuple(schemes), {})
        monkeypatch.setattr(doctor, "diagnose", lambda *_, **__: found)
        status = run_command(["doctor"])
        return capsys.readouterr().out.splitlines(), status

    return show


def test_the_page_marks_what_fails_and_has_the_remedy(page_of):
    remedy = "mv /site/tensorflow-plugins/x.so /site"
    row = FileRow("/site/x.so", "/site", ImportOutcome.ABORTS, "it ended by SIGABRT", remedy)
    wanted = AvailableScheme("s3", "", False, remedy="to have it: buy it", wanted_by=("S3_X",))
    lines, status = page_of(files=[row], schemes=[wanted])

    at = lines.index("! aborts       /site/x.so")
    assert [line.strip() for line in lines[at + 1 : at + 3]] == [
        "it ended by SIGABRT",
        f"-> {remedy}",
    ]
    at = lines.index("! s3           nobody")
    assert lines[at + 1].strip() == "-> to have it: buy it"
    assert (lines[-1], status) == ("Something will fail: see the lines that begin with !", 1)


def test_the_page_names_what_each_plugin_offers(page_of):
    def plugin(*offered):
        return PluginRow("x", "/site/x.so", ("filesystem", "device"), *offered, "loaded")

    everything, nothing = plugin(("s3", ""), ("NPU",), 7), plugin((), (), 0)
    lines, _ = page_of(plugins=[everything, nothing])

    assert "  loaded       x: s3, plain paths, device NPU, 7 kernels" in lines
    assert "  loaded       x: nothing of its filesystem and device" in lines


def test_the_page_names_what_nobody_serves_where_nothing_fails(page_of):
    lines, status = page_of(schemes=[AvailableScheme("az", "", False)])

    assert lines[-1].startswith("Nothing fails, but nobody serves az: ")
    assert status == 0


def test_a_library_that_hangs_is_ended(site, tmp_path):
    config = tmp_path / "c.toml"
    waits = (
        "int pause(void); __attribute__((constructor)) static void f(void) { for (;;) pause(); }"
    )
    source(waits)(site / "tensorflow-plugins" / "hangs.so")
    config.write_text("first_contact_timeout_s = 5\n")

    status, found = _doctor(site, env={"MODULAR_TF_CONFIG": str(config)})

    (row,) = found["files"]
    assert (status, row["outcome"]) == (1, "hangs")
    assert "within 5 s" in row["message"]


def test_a_tensorflow_that_cannot_be_imported_fails(site, page_of):
    _BY_NAME["good device"].make_in(site / "tensorflow-plugins")
    (site / "numpy.py").write_text("raise ImportError('no numpy today')\n")
    (site / "numpy").unlink()

    status, found = _doctor(site)

    assert (status, found["well"], found["lacking"]) == (1, False, [])
    assert "no numpy today" in found["tensorflow"]["problem"]
    assert [row["outcome"] for row in found["files"]] == ["unknown"]
    lines, status = page_of(problem="no numpy today")
    assert any(line.startswith("! fails        import tensorflow") for line in lines)
    assert status == 1


def test_an_interrupt_ends_the_children(site, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    source(f"""
        int open(const char*, int, ...); int pause(void);
        __attribute__((constructor)) static void f(void) {{ open("{fifo}", 1); for (;;) pause(); }}
    """)(site / "tensorflow-plugins/hangs.so")
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(site)]))
    command = [sys.executable, "-m", "modular_tf", "doctor"]
    environment = {**os.environ, "PYTHONPATH": path}

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        with fifo.open("rb") as stream:  # once the child runs the constructor
            process.send_signal(signal.SIGINT)
            assert stream.read() == b""  # once the child is gone
        assert process.wait(60) == 130
