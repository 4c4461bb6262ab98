"""What `modular-tf doctor` reports of files, plugins and stores, against what happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fixtures.tensorflow import VERSION as TENSORFLOW
from tests.fixtures.wild import *  # noqa: F403
from tests.tensorflow.bad_libraries import CASES, MARK, Case, source
from tests.tensorflow.loading_trials import Trials, difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.fixtures.wild import WildPlugins

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("tensorflow")]

_SAMPLE = (
    "undefined symbol",
    "undefined symbol in a companion",
    "file cut off in a segment",
    "directory",
    "needed library is missing",
    "constructor crashes, no plugin",
    "SE_InitPlugin aborts",
    "SE_InitPlugin sets an error",
    "two copies of one platform",
    "filesystem only",
    "kernels only",
    "no name of a library",
    "good device",
    "device of TensorFlow 2.7",
    "device of TensorFlow 2.5",
    "device without timers",
    "device of the variable too",
    "scheme of TensorFlow's own",
)
_BY_NAME = {case.name: case for case in CASES}
_SECRET = "dont-show-me"


@pytest.fixture(scope="session")
def tensorflow_folder(tensorflow_environment: dict[str, str]) -> Path:
    """Return the folder that TensorFlow was installed into; it has all that it needs."""
    return Path(tensorflow_environment["PYTHONPATH"].partition(os.pathsep)[0])


@pytest.fixture(scope="module")
def trials(tensorflow_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    """TensorFlow, imported once, and doctor beside it."""
    scratch = tmp_path_factory.mktemp("trials")
    with Trials(tensorflow_folder, sys.executable, scratch, os.environ) as made:
        yield made


@pytest.fixture
def site(tmp_path: Path, tensorflow_folder: Path) -> Path:
    """A folder `site-packages` with TensorFlow, and an empty `tensorflow-plugins`."""
    made = Trials(tensorflow_folder, sys.executable, tmp_path, os.environ).site
    (made / "tensorflow-plugins").mkdir()
    return made


def _run(
    *paths: Path, env: Mapping[str, str] | None = None, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *map(str, paths)]))
    environment = {**os.environ, **(env or {}), "PYTHONPATH": path}
    command = [sys.executable, "-m", "modular_tf", "doctor", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def _doctor(*paths: Path, env: Mapping[str, str] | None = None) -> tuple[int, Any]:
    done = _run(*paths, env=env, options=("--json",))
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, json.loads(done.stdout)


def _lay(site: Path, name: str) -> Case:
    _BY_NAME[name].lay(site / "tensorflow-plugins")
    return _BY_NAME[name]


@pytest.mark.parametrize("name", _SAMPLE)
def test_reports_what_tensorflow_does(trials: Trials, name: str) -> None:
    case = _BY_NAME[name]
    trials.lay(case)

    observed = trials.observe(case)
    reported, status = trials.report(case)

    assert not difference(observed, reported)
    if case.way == "import" and observed.outcome not in {"loads", "ignored"}:
        assert status == 1


def test_the_sample_has_each_kind() -> None:
    assert {_BY_NAME[name].kind for name in _SAMPLE} == set(range(11))


@pytest.mark.parametrize("name", ["SE_InitPlugin aborts", "constructor crashes, no plugin"])
def test_no_plugin_runs_in_its_own_process(site: Path, name: str) -> None:
    _lay(site, name)

    env = {"MODULAR_TF_FIRST_CONTACT": "never", "MODULAR_TF_LOAD": "eager"}
    status, found = _doctor(site, env=env)

    assert status == 1
    assert [row["outcome"] for row in found["files"]] == ["aborts"]


def test_the_remedy_is_a_command_that_helps(site: Path) -> None:
    _lay(site, "undefined symbol")
    status, found = _doctor(site)
    (row,) = found["files"]

    subprocess.run(["sh", "-c", row["remedy"]], check=True)

    assert status == 1
    assert _doctor(site)[1]["files"] == []
    assert (site / Path(row["path"]).name).exists()


def test_what_is_not_trusted_is_not_run(site: Path, tmp_path: Path) -> None:
    _lay(site, "kernels only")
    (site / "tensorflow-plugins/kernels.so").chmod(0o777)

    status, found = _doctor(site, env={MARK: str(tmp_path / "ran")})

    (row,) = found["files"]
    assert (status, row["outcome"]) == (1, "unknown")
    assert "not tried" in row["message"]
    assert not (tmp_path / "ran").exists()


def test_plugins_outside_of_packages_are_not_opened(tensorflow_folder: Path, site: Path) -> None:
    _lay(site, "undefined symbol")
    elsewhere = site.with_name("elsewhere")
    elsewhere.mkdir()
    (site / "tensorflow").rename(elsewhere / "tensorflow")

    _, found = _doctor(site, elsewhere)

    (row,) = found["files"]
    assert row["outcome"] == "ignored"
    assert str(elsewhere) in row["message"]


def test_a_fifo_keeps_nobody_waiting(site: Path) -> None:
    os.mkfifo(site / "tensorflow-plugins/fifo.so")

    _, found = _doctor(site)

    assert "FIFO" in found["files"][0]["message"]


def test_its_help_names_each_key_of_its_answer(site: Path) -> None:
    _, found = _doctor(site)
    shown = _run(options=("--help",)).stdout

    keys = found.keys() - {"schema_version"}  # of every command
    assert [key for key in keys if f"`{key}`" not in shown] == []


def test_tells_what_is_served_without_tensorflow(wild_plugins: WildPlugins) -> None:
    status, found = _doctor(wild_plugins.site_dir)

    rows = {row["plugin"]: row for row in found["plugins"]}
    assert (status, found["tensorflow"], found["well"]) == (0, None, True)
    assert {"s3", "az", "http"} <= set(rows["tensorflow-io"]["schemes"])
    assert rows["tensorflow-io"]["in_tensorflow"] is None


@pytest.mark.skipif(
    tuple(map(int, TENSORFLOW.split(".")[:2])) < (2, 18), reason="it loads these plugins by itself"
)
def test_tells_what_tensorflow_lacks(wild_plugins: WildPlugins, site: Path) -> None:
    status, found = _doctor(wild_plugins.site_dir, site)

    rows = {row["plugin"]: row for row in found["plugins"]}
    assert status == 0  # they serve here
    assert rows["tensorflow-io"]["in_tensorflow"] == "fails"
    assert "undefined symbol: _ZN3tsl" in rows["tensorflow-io"]["in_tensorflow_message"]
    assert "modular_tf.tensorflow.auto" in rows["tensorflow-io"]["remedy"]
    assert "s3" in found["lacking"]


def test_a_dead_server_is_told_without_secrets(wild_plugins: WildPlugins) -> None:
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


_BRINGS_S3 = "to have it: `modular-tf fetch tensorflow-io` or `pip install s3fs`"


@pytest.mark.parametrize("variable", ["S3_ENDPOINT", "AWS_ACCESS_KEY_ID"])
def test_a_scheme_that_is_wanted_and_nobody_serves_fails(site: Path, variable: str) -> None:
    env = {"MODULAR_TF_FSSPEC_FALLBACK": "1"}
    without, before = _doctor(site, env=env)
    status, found = _doctor(site, env={**env, variable: _SECRET})
    page = _run(site, env={**env, variable: _SECRET}).stdout

    rows = {row["scheme"]: row for row in found["schemes"]}
    assert (without, status, before["well"], found["well"]) == (0, 1, True, False)
    assert rows["s3"]["wanted_by"] == [variable]
    assert rows["s3"]["remedy"] == _BRINGS_S3
    assert (rows["gs"]["in_tensorflow"], rows["gs"]["remedy"]) == (True, "")
    assert "! s3           nobody" in page
    assert f"-> {_BRINGS_S3}" in page
    assert _SECRET not in f"{found}{page}"


def test_what_nobody_serves_is_named_where_nothing_fails(site: Path) -> None:
    done = _run(site)
    assert done.returncode == 0
    (last,) = [line for line in done.stdout.splitlines() if line.startswith("Nothing fails")]
    assert last.startswith("Nothing fails, but nobody serves az, ")


def test_a_client_of_fsspec_and_the_configuration_count(site: Path, tmp_path: Path) -> None:
    config, client = tmp_path / "c.toml", tmp_path / "clients"
    config.write_text(
        '[filesystems]\nmine = "fsspec"\nmemory = "fsspec"\nlake = {object = "nowhere.at:all"}\n'
        'token = {fsspec = "memory", token = {env = "NO_SUCH_VARIABLE"}}\n'
    )
    client.mkdir()
    (client / "s3fs.py").write_text("raise SystemExit('imported')\n")
    env = {"MODULAR_TF_FSSPEC_FALLBACK": "1", "MODULAR_TF_CONFIG": str(config), "S3_ENDPOINT": "x"}

    status, found = _doctor(site, client, env=env)

    rows = {row["scheme"]: row for row in found["schemes"]}
    assert status == 1
    assert rows["s3"]["plugin"] == "fsspec.s3"
    assert rows["s3"]["message"] == "scheme 's3' is served by s3fs, since no plugin serves it"
    assert {scheme for scheme, row in rows.items() if row["bad"]} == {"mine", "lake", "token"}
    assert rows["mine"]["message"] == "fsspec knows no protocol 'mine'"
    assert rows["lake"]["message"].startswith("nowhere is not installed")
    assert "NO_SUCH_VARIABLE" in rows["token"]["message"]
    assert {"s3", "memory"} <= set(found["lacking"])


def test_the_page_marks_what_fails_and_says_what_to_do(site: Path) -> None:
    _lay(site, "SE_InitPlugin aborts")

    done = _run(site)

    lines = done.stdout.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("! aborts")]
    assert lines[at].endswith("aborts.so")
    assert "SIGABRT" in lines[at + 1]
    assert lines[at + 2].lstrip().startswith("-> mv ")
    assert done.returncode == 1


def test_a_library_that_hangs_is_ended(site: Path, tmp_path: Path) -> None:
    plugins, config = site / "tensorflow-plugins", tmp_path / "c.toml"
    _lay(site, "kernels only")
    source("__attribute__((constructor)) static void f(void) { for (;;) {} }")(plugins / "hangs.so")
    config.write_text("first_contact_timeout_s = 5\n")

    status, found = _doctor(site, env={"MODULAR_TF_CONFIG": str(config)})

    rows = {Path(row["path"]).name: row for row in found["files"]}
    assert status == 1
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "kernels.so": "loads",
        "hangs.so": "hangs",
    }
    assert "within 5 s" in rows["hangs.so"]["message"]


def test_a_tensorflow_that_cannot_be_imported_fails(site: Path) -> None:
    _lay(site, "good device")
    (site / "numpy.py").write_text("raise ImportError('no numpy today')\n")
    numpy = site / "numpy"
    numpy.unlink()

    status, found = _doctor(site)
    page = _run(site).stdout

    assert (status, found["well"], found["lacking"]) == (1, False, [])
    assert "no numpy today" in found["tensorflow"]["problem"]
    assert [row["outcome"] for row in found["files"]] == ["unknown"]
    assert "! fails        import tensorflow" in page


def test_an_interrupt_ends_the_children(site: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    source(f"""
        int open(const char*, int, ...);
        __attribute__((constructor)) static void f(void) {{ open("{fifo}", 1); for (;;) {{}} }}
    """)(site / "tensorflow-plugins/hangs.so")
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(site)]))
    command = [sys.executable, "-m", "modular_tf", "doctor"]
    environment = {**os.environ, "PYTHONPATH": path}

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as doctor:
        with fifo.open("rb") as stream:  # once the child runs the constructor
            doctor.send_signal(signal.SIGINT)
            assert stream.read() == b""  # once the child is gone
        assert doctor.wait(60) == 130
