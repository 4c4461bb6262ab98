"""`modular-tf fetch`: the plugins of a wheel, whatever Python it is for."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from modular_tf.cli.process import Exit
from modular_tf.service import fetching
from tests.discovery.elf_builder import ElfBuilder
from tests.fixtures.compiler import link_library, object_of_text
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT, cached_folder
from tests.fixtures.process_group import run_in_group
from tests.fixtures.wheels import make_wheel, package_index

NAME, FILE_NAME = "tensorflow-io", "tensorflow_io"
LIBRARY = "tensorflow_io/python/ops/libtensorflow_io_plugins.so"
PLATFORM = "manylinux2014_x86_64.manylinux_2_17_x86_64"
TIMEOUT_S = 120
TEMPORARY = ".modular-tf-fetch"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A new user's home, and no plugin but those of the package."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def drop_in(home):
    return home / ".local/share/modular_tf/plugins"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index that pip and uv are configured for."""
    for variable in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with package_index(tmp_path / "index") as served:
        monkeypatch.setenv("PIP_INDEX_URL", served.url)
        monkeypatch.setenv("UV_DEFAULT_INDEX", served.url)
        yield served


@pytest.fixture
def library(fixture_plugin):
    return fixture_plugin("good").read_bytes()


@pytest.fixture
def publish(index, library):
    """Put a wheel into the index."""

    def put(version="1.0", *, python="cp312", platform=PLATFORM, content=library, **more):
        tag = f"{python}-{python}-{platform}"
        files = {LIBRARY: content, "tensorflow_io/__init__.py": b"raise ImportError", **more}
        return make_wheel(index.folder / NAME, FILE_NAME, version, files, tag=tag)

    return put


@pytest.fixture
def wheel(tmp_path, library):
    """Write a wheel that is not in the index."""

    def write(version="1.0", *, name=FILE_NAME, library=library, **more):
        return make_wheel(tmp_path / "wheels", name, version, {LIBRARY: library}, **more)

    return write


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def laid_out(version):
    metadata = f"{FILE_NAME}-{version}.dist-info"
    return [f"{metadata}/{name}" for name in ("METADATA", "RECORD", "WHEEL")] + [LIBRARY]


# -- what is served then -------------------------------------------------------------------------


def test_a_package_is_served_afterwards(mtf, publish, drop_in, library):
    publish("1.0", python="cp311")
    publish("2.0", python="cp312")

    ended = mtf("fetch", "Tensorflow_IO", "--json")

    folder = drop_in / "tensorflow-io.wheel"
    assert ended.code == Exit.DONE, ended.err
    fetched = ended.object
    (served,) = fetched.pop("served")
    assert fetched == {
        "schema_version": 1,
        "name": NAME,
        "version": "2.0",
        "folder": str(folder),
        "plugins": [str(folder / LIBRARY)],
        "changed": True,
    }
    assert (served["name"], served["state"], served["schemes"]) == (NAME, "loaded", ["fixture"])
    assert (served["source"], served["distribution"]) == ("user-directory", "tensorflow-io 2.0")
    assert files_in(drop_in) == [f"tensorflow-io.wheel/{name}" for name in laid_out("2.0")]
    assert (folder / LIBRARY).read_bytes() == library
    listed = {plugin["name"]: plugin for plugin in mtf("list", "--json").object["plugins"]}
    assert listed[NAME]["distribution"] == "tensorflow-io 2.0"
    assert "user-directory 2.0" in mtf("list").out.decode()
    (locked,) = mtf("lock", "--no-bundled", "--output", "-").object["plugins"]
    assert (locked["name"], locked["distribution"]) == (NAME, "tensorflow-io 2.0")


def test_what_is_there_needs_no_request_and_another_version_or_damage_is_replaced(
    mtf, publish, index, drop_in, library
):
    one, two = publish("1.0"), publish("2.0.0")
    installed = drop_in / "tensorflow-io.wheel"

    (line,) = mtf("fetch", f"{NAME}==2").lines
    assert line.split("\t")[:5] == [
        "tensorflow-io", "loaded", "filesystem", "fixture://", "user-directory 2.0.0",
    ]  # fmt: skip
    assert index.requests[0] == f"/{NAME}/"
    assert [path for path in index.requests if path.endswith("/")] == [f"/{NAME}/"]
    before, asked = installed.stat(), len(index.requests)
    # Zeros at the end of a version do not count.
    assert mtf("fetch", f"{NAME}==2.0", "--json").object["changed"] is False
    assert mtf("fetch", f"{NAME}==2.0", "--from", two).code == Exit.DONE
    assert (installed.stat(), len(index.requests)) == (before, asked)

    before = (installed / LIBRARY).stat().st_ino
    assert mtf("fetch", f"{NAME}==1.0", "--from", one, "--json").object["changed"]
    assert files_in(installed) == laid_out("1.0")
    assert (installed / LIBRARY).stat().st_ino != before

    (installed / LIBRARY).write_bytes(b"cut off")
    assert mtf("fetch", f"{NAME}==1.0", "--json").object["changed"]
    assert (installed / LIBRARY).read_bytes() == library


def test_a_folder_that_is_named_holds_what_only_its_owner_can_write(mtf, wheel, drop_in, tmp_path):
    folder, before = tmp_path / "new" / "plugins", os.umask(0)
    try:
        ended = mtf("fetch", "--from", wheel(), "--to", folder, "--json")
    finally:
        os.umask(before)

    assert ended.object["served"][0]["distribution"] == "tensorflow-io 1.0"
    assert not drop_in.exists()
    listed = mtf("--plugin-dir", folder, "list", "--json").object["plugins"]
    assert [plugin["name"] for plugin in listed if plugin["source"] == "argument"] == [NAME]
    made = [path for path in (folder, *folder.rglob("*")) if path.name != "lock"]
    assert {path.name for path in made if stat.S_IMODE(path.stat().st_mode) & 0o022} == set()
    assert stat.S_IMODE((folder / "tensorflow-io.wheel").stat().st_mode) == 0o755


def test_companions_keep_their_places(mtf, tmp_path, drop_in):
    name = "libhelper-1a2b.so.1"
    code = object_of_text("int help(void) { return 1; }")
    helper = link_library(name, [code], [f"-Wl,-soname,{name}"])
    code = object_of_text(
        'int help(void); char *opened = "libopened.so";'
        "void TF_InitPlugin(void *info) { (void)info; help(); }"
    )
    options = [str(helper), "-Wl,-rpath,$ORIGIN/../../spam.libs"]
    plugin = link_library("libspam.so", [code], options)
    other = ElfBuilder(exports=("something",)).build()
    taken = {
        f"spam.libs/{name}": helper.read_bytes(),
        "spam/deep/libopened.so": other,
        "spam/ops/libspam.so": plugin.read_bytes(),
    }
    files = {**taken, "spam/libother.so": other, "spam/data.bin": b"data"}

    mtf("fetch", "--from", make_wheel(tmp_path, "spam", "1.0", files))

    found = [name for name in files_in(drop_in / "spam.wheel") if "dist-info" not in name]
    assert found == [*taken]


# -- failures ------------------------------------------------------------------------------------


def refused(ended, drop_in, *words):
    """Assert that a command failed in one sentence, and left nothing."""
    assert ended.code == Exit.NO, ended.err
    assert len(ended.err.splitlines()) == 1
    for word in words:
        assert word in ended.err
    assert not drop_in.exists() or list(drop_in.iterdir()) == []


def test_what_the_index_lacks_is_named(mtf, publish, index, drop_in, monkeypatch):
    monkeypatch.setattr(fetching, "_NEWEST_PYTHON", 9)  # tries wheels of two Pythons, not of six
    for name, close in (("tensorflow-oi", "did you mean tensorflow-io?"), ("numpy", "known are")):
        ended = mtf("fetch", name)
        refused(ended, drop_in, close, "tensorflow-io-gcs-filesystem", "with --from WHEEL")
    assert index.requests == []

    publish(platform="manylinux2014_s390x")
    words = ("no wheel of tensorflow-io for this machine", "any Python from 3.9", "--from WHEEL")
    refused(mtf("fetch", NAME), drop_in, *words)
    publish("1.0", python="cp39")
    refused(mtf("fetch", f"{NAME}==9.9"), drop_in, "no wheel of tensorflow-io==9.9", "1.0")


def test_why_nothing_is_downloaded_is_told(mtf, publish, drop_in, monkeypatch, tmp_path):
    publish("1.0")
    with monkeypatch.context() as patched:
        patched.setenv("PIP_REQUIRE_HASHES", "1")
        refused(mtf("fetch", NAME), drop_in, "cannot be downloaded: pip reports: ")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "1")
    refused(mtf("fetch", NAME), drop_in, "cannot be downloaded", "Connection refused", "--from")

    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(mtf("fetch", NAME), drop_in, "neither pip nor uv", "ensurepip", "--from WHEEL")


def test_a_folder_pip_of_the_working_directory_is_not_run(
    mtf, publish, drop_in, monkeypatch, tmp_path
):
    publish("1.0")
    stranger = tmp_path / "work/pip"
    stranger.mkdir(parents=True)
    (stranger / "__init__.py").touch()
    (stranger / "__main__.py").write_text("raise SystemExit('the pip of a stranger')")
    monkeypatch.chdir(stranger.parent)

    assert mtf("fetch", NAME).code == Exit.DONE


EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
NOT_AS_RECORDED = "is not what its RECORD"
# What a wheel is made with, and what is in the complaint.
DAMAGED = {
    "other content": ({"record": {LIBRARY: f"{LIBRARY},{EMPTY},"}}, NOT_AS_RECORDED),
    "another size": (
        {"unlisted": {"a.py": b""}, "record": {"a.py": f"a.py,{EMPTY},1"}},
        NOT_AS_RECORDED,
    ),
    "no hash": ({"record": {LIBRARY: f"{LIBRARY},,"}}, "no hash of"),
    "not listed": ({"record": {LIBRARY: None}}, "does not list tensorflow_io"),
    "missing": ({"record": {"gone.py": f"gone.py,{EMPTY},0"}}, "gone.py is missing"),
    "no record": ({"record": {"RECORD": None}}, "it has no RECORD"),
    "no text": ({"record": {"bytes": f"\udcff,{EMPTY},0"}}, "its RECORD cannot be read"),
    "leads up": ({"unlisted": {"a/../../out.so": b"out"}}, "'a/../../out.so'"),
    "leads out": ({"unlisted": {"/tmp/out.so": b"out"}}, "'/tmp/out.so'"),
    "a file is a directory": ({"unlisted": {f"{LIBRARY}/deeper": b"content"}}, ""),
    "a name with controls": ({"name": "a\x1b[31mb"}, "name of a package"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_wheel_is_refused(mtf, wheel, drop_in, tmp_path, damage):
    made_with, words = DAMAGED[damage]

    ended = mtf("fetch", "--from", wheel(**made_with))

    refused(ended, drop_in, "the wheel is damaged", words, "download it again")
    assert [*tmp_path.rglob("out.so")] == []
    assert not Path("/tmp/out.so").exists()


def test_a_file_that_is_no_whole_wheel_is_refused(mtf, wheel, drop_in):
    path = wheel()
    content = path.read_bytes()
    third = len(content) // 3
    flipped = content[:third] + bytes([content[third] ^ 255]) + content[third + 1 :]
    for damaged in (b"<html>", content[:-1000], flipped):
        path.write_bytes(damaged)
        ended = mtf("fetch", "--from", path)
        refused(ended, drop_in, "the wheel is damaged", "download it again")


def test_a_wheel_or_place_that_does_not_serve_is_named(mtf, wheel, drop_in, tmp_path):
    for library, said in [
        (ElfBuilder(exports=("something",)), "has no plugin"),
        (ElfBuilder(machine=183), "for this machine (x86_64)"),
        (ElfBuilder(bits=32), "for this machine (x86_64)"),
    ]:
        refused(mtf("fetch", "--from", wheel(library=library.build())), drop_in, said, "--from")

    path, file = wheel(), tmp_path / "file"
    file.touch()
    for said, *words in [
        ("of tensorflow-io 1.0, not of tensorflow-io-gcs", f"{NAME}-gcs-filesystem", path),
        ("of tensorflow-io 1.0, not of tensorflow-io 2.0", f"{NAME}==2.0", path),
        ("no.whl cannot be read: No such", tmp_path / "no.whl"),
        ("cannot be read: Is a directory", tmp_path),
        ("file cannot be written: Not a directory", "--to", file / "plugins", path),
    ]:
        refused(mtf("fetch", *words[:-1], "--from", words[-1]), drop_in, said)


@pytest.fixture
def small_disk(tmp_path):
    """A directory on a disk of one MiB, in a mount namespace: the words before a command."""
    folder = tmp_path / "small"
    folder.mkdir()
    script = f'mount -t tmpfs -o size=1m none "{folder}" && exec "$@"'
    words = ["unshare", "-rm", "sh", "-c", script, "sh"]
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount anything")
    return words, folder


@pytest.mark.parametrize("by", ["wheel", "pip"])
def test_a_full_disk(small_disk, publish, wheel, home, tmp_path, by):
    start, folder = small_disk
    more = {"tensorflow_io/data.bin": os.urandom(2 << 20)}
    words = [NAME]
    if by == "pip":
        publish("1.0", **more)
    else:
        files = {LIBRARY: b"", **more}
        words = ["--from", str(make_wheel(tmp_path, FILE_NAME, "1.0", files))]
    command = [*start, sys.executable, "-m", "modular_tf", "fetch", *words, "--to", str(folder)]

    ended = run_in_group(command, cwd=tmp_path, env=os.environ, timeout=TIMEOUT_S)

    assert ended.returncode == Exit.NO
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert f"the disk of {folder} is full (0 MiB are free)" in ended.stderr.replace(
        "1 MiB are", "0 MiB are"
    )
    assert "--to" in ended.stderr


def test_usage_and_no_home(mtf, index, monkeypatch, home):
    for words in ([], ["a b"], [f"{NAME}=="]):
        assert mtf("fetch", *words).code == Exit.USAGE
    assert index.requests == []
    monkeypatch.setenv("HOME", "")

    ended = mtf("fetch", NAME)
    assert ended.code == Exit.USAGE
    assert "there is no drop-in directory: there is no home directory" in ended.err
    assert "name a directory with --to" in ended.err


# -- interrupts, and others ----------------------------------------------------------------------


@contextmanager
def fetching_process(index):
    """Run a fetch in a process of its own, to the moment at which it downloads the wheel."""
    index.hold = ".whl"
    command = [sys.executable, "-m", "modular_tf", "fetch", NAME]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            assert index.held.wait(TIMEOUT_S)
            yield child
        finally:
            index.released.set()
            child.kill()


@pytest.mark.parametrize(
    ("by", "group"),
    [(signal.SIGINT, True), (signal.SIGHUP, True), (signal.SIGTERM, False)],
    ids=["terminal", "closed terminal", "kill"],
)
def test_an_interrupt_leaves_nothing(publish, index, drop_in, by, group):
    publish("1.0")
    with fetching_process(index) as child:
        assert [path.name.rpartition("-")[0] for path in drop_in.iterdir()] == [TEMPORARY]

        os.killpg(child.pid, by) if group else child.send_signal(by)

        assert child.wait(TIMEOUT_S) == Exit.INTERRUPTED
        assert list(drop_in.iterdir()) == []


def test_what_a_killed_process_leaves_is_no_plugin_and_goes_with_the_next(
    mtf, publish, index, drop_in
):
    publish("1.0")
    (drop_in / ".fetch-notes").mkdir(parents=True)  # somebody else's
    with fetching_process(index) as child:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(TIMEOUT_S)
        assert any(path.name.startswith(TEMPORARY) for path in drop_in.iterdir())
    listed = mtf("list", "--no-bundled", "--json").object["plugins"]
    assert NAME not in {plugin["name"] for plugin in listed}

    assert mtf("fetch", NAME).code == Exit.DONE

    assert sorted(path.name for path in drop_in.iterdir()) == [
        ".fetch-notes", "tensorflow-io.wheel",
    ]  # fmt: skip


def test_two_at_once(mtf, publish, index, drop_in):
    publish("1.0")
    with fetching_process(index) as first:
        command = [sys.executable, "-m", "modular_tf", "fetch", NAME]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as second:
            index.released.set()
            assert (first.wait(TIMEOUT_S), second.wait(TIMEOUT_S)) == (Exit.DONE, Exit.DONE)

    assert files_in(drop_in) == [f"tensorflow-io.wheel/{name}" for name in laid_out("1.0")]


@pytest.mark.parametrize("after", [1, 2])
def test_an_interrupt_after_a_rename_loses_no_plugin(mtf, wheel, drop_in, monkeypatch, after):
    mtf("fetch", "--from", wheel("1.0"))
    rename, renames = os.rename, []

    def interrupted(source, target):
        rename(source, target)
        renames.append(target)
        if len(renames) == after:
            raise KeyboardInterrupt

    path = wheel("2.0")
    monkeypatch.setattr(fetching.os, "rename", interrupted)

    assert mtf("fetch", "--from", path).code == Exit.INTERRUPTED

    version = {1: "1.0", 2: "2.0"}[after]
    assert files_in(drop_in) == [f"tensorflow-io.wheel/{name}" for name in laid_out(version)]


# -- uv ------------------------------------------------------------------------------------------


def _install_uv(folder):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    command += [str(folder), "uv"]
    done = run_in_group(command, cwd=folder, env=DEVELOPER_ENVIRONMENT, timeout=280)
    if done.returncode != 0:
        pytest.fail(f"pip cannot install uv:\n{done.stderr}", pytrace=False)


@pytest.fixture
def uv_alone(monkeypatch, index, tmp_path):
    """Have uv and no pip."""
    folder = cached_folder("uv", _install_uv)
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))


def test_uv_serves_where_there_is_no_pip(mtf, publish, uv_alone, drop_in, monkeypatch):
    path = publish("1.0", python="cp311")
    refused(mtf("fetch", f"{NAME}==9.9"), drop_in, "no wheel of tensorflow-io==9.9", "uv reports")

    ended = mtf("fetch", NAME, "--json")

    assert ended.code == Exit.DONE, ended.err
    assert ended.object["served"][0]["state"] == "loaded"
    # The bytes of a wheel are the same, however it comes.
    assert mtf("fetch", "--from", path, "--json").object["changed"] is False
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/")
    unreachable = mtf("fetch", f"{NAME}==2.0").err
    assert "cannot be downloaded: uv reports: " in unreachable
    assert "--from WHEEL" in unreachable


# -- the published packages ----------------------------------------------------------------------
