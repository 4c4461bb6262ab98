"""`modular-tf lock`, and what --frozen makes of the file that it writes."""

import hashlib
import json
import shutil
import sys

import pytest

from modular_tf.cli import lock as lock_command
from modular_tf.cli.process import Exit
from modular_tf.discovery import file_identity
from tests.discovery.site_folder import install


@pytest.fixture
def plugins(tmp_path, fixture_plugin):
    """Return a folder with a plugin, and one with a companion."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    shutil.copy(fixture_plugin("good"), folder / "libgood.so")
    with_companion = fixture_plugin("companion", scheme="second")
    shutil.copy(with_companion, folder / "libsecond.so")
    name = "libfixture_companion.so"
    shutil.copy(with_companion.parent / name, folder / name)
    return folder


@pytest.fixture
def command(mtf, plugins):
    """Run a command with the plugins of the folder alone, whose companion is no candidate."""
    libraries = [plugins / name for name in ("libgood.so", "libsecond.so")]
    given = [word for library in libraries for word in ("--plugin", library)]
    return lambda *words: mtf(*words, *given, "--no-bundled")


@pytest.fixture
def lock(command, tmp_path):
    """Write a lock file."""
    path = tmp_path / "plugins.lock"
    assert command("lock", "--output", path).code == Exit.DONE
    return path


@pytest.fixture
def configured(lock, tmp_path, monkeypatch):
    """Let the configuration name the lock file."""
    path = tmp_path / "modular-tf.toml"
    path.write_text('[trust]\nlock = "plugins.lock"\n')
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(path))
    return path


def states(ended):
    return {found["name"]: found["state"] for found in ended.object["plugins"]}


def rules(ended):
    reasons = {found["name"]: found["reason"] for found in ended.object["plugins"]}
    return {name: (reason["stage"], reason["rule"]) for name, reason in reasons.items() if reason}


def change(path):
    """Give a library other bytes that mean the same."""
    with path.open("ab") as stream:
        stream.write(b"where no linker looks")


def test_the_file_tells_what_is_locked(lock, plugins):
    good, second = json.loads(lock.read_text())["plugins"]

    assert good == {
        "name": "good",
        "file": "libgood.so",
        "sha256": hashlib.sha256((plugins / "libgood.so").read_bytes()).hexdigest(),
        "size": (plugins / "libgood.so").stat().st_size,
        "distribution": None,
        "schemes": [],
        "device_types": [],
        "companions": [],
    }
    assert [entry["file"] for entry in second["companions"]] == ["libfixture_companion.so"]
    assert lock.stat().st_mode & 0o777 == 0o644


def test_the_same_plugins_give_the_same_file_with_schemes_where_they_are_loaded(
    command, lock, tmp_path, monkeypatch
):
    before = lock.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert command("lock", "--output", lock).code == Exit.DONE
    assert lock.read_bytes() == before
    assert command("lock", "--output", "-").out == before
    assert not (tmp_path / "-").exists()

    ended = command("lock", "--load", "--json", "--output", lock)
    assert ended.code == Exit.DONE
    assert [found["schemes"] for found in ended.object["plugins"]] == [["fixture"], ["second"]]


@pytest.fixture
def swap_before_locking(plugins, monkeypatch):
    """Replace a file after it was judged; return the hash of what was."""
    # As if the files were old: their times tell all, and only the plugin's own bytes are read.
    monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", 0)
    make_lock = lock_command._lock_of

    def swap(name):
        judged = (plugins / name).read_bytes()

        def swap_first(*arguments, **options):
            (plugins / "evil").write_bytes(judged + b"evil")
            (plugins / "evil").replace(plugins / name)
            return make_lock(*arguments, **options)

        monkeypatch.setattr(lock_command, "_lock_of", swap_first)
        return hashlib.sha256(judged).hexdigest()

    return swap


def test_what_was_judged_is_locked_and_nothing_that_took_its_place(
    command, swap_before_locking, tmp_path
):
    judged = swap_before_locking("libgood.so")
    assert command("lock", "--output", tmp_path / "x.lock").code == Exit.DONE
    assert judged in (tmp_path / "x.lock").read_text()

    swap_before_locking("libfixture_companion.so")
    ended = command("lock", "--output", tmp_path / "y.lock")
    assert ended.code == Exit.NO
    assert "libfixture_companion.so" in ended.err
    assert "it changed since it was looked at" in ended.err
    assert not (tmp_path / "y.lock").exists()


def test_a_link_in_the_place_of_the_lock_file_stays(command, configured, lock, tmp_path):
    lock.rename(tmp_path / "target")
    lock.symlink_to(tmp_path / "target")
    before = (tmp_path / "target").read_bytes()
    for words in ([], ["--load"], ["--output", lock]):
        ended = command("lock", *words)
        assert (ended.code, ended.out) == (Exit.NO, b"")
        assert f"{lock}: is a symbolic link; name a regular file" in ended.err

    assert (lock.is_symlink(), (tmp_path / "target").read_bytes()) == (True, before)
    assert command("lock", "--check").code == Exit.DONE  # which reads


def test_new_bytes_are_refused_where_plugins_are_frozen_until_they_are_locked(
    command, plugins, tmp_path, monkeypatch
):
    """By the file beside the configuration, which names no other."""
    (tmp_path / "modular-tf.toml").write_text("")
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(tmp_path / "modular-tf.toml"))
    assert command("lock").code == Exit.DONE
    assert (tmp_path / "modular-tf.lock").is_file()
    change(plugins / "libgood.so")
    assert states(command("list", "--json"))["good"] == "loaded"

    ended = command("list", "--json", "--frozen")
    assert states(ended) == {"good": "rejected", "second": "loaded"}
    assert rules(ended) == {"good": ("trust", "LD-080")}

    assert command("lock", "--frozen").code == Exit.DONE
    assert states(command("list", "--frozen", "--json"))["good"] == "loaded"


def test_a_check_reports_each_difference(command, mtf, lock, plugins, fixture_plugin):
    same = command("lock", "--check", "--output", lock)
    assert (same.code, same.lines) == (Exit.DONE, [])
    fewer = mtf("lock", "--check", "--json", "--output", lock, "--no-bundled",
                "--plugin", plugins / "libgood.so")  # fmt: skip
    assert fewer.code == Exit.NO
    (found,) = fewer.object["differences"]
    assert found["plugin"] == "second"
    assert found["what"].startswith("gone: libsecond.so")

    change(plugins / "libgood.so")
    change(plugins / "libfixture_companion.so")
    shutil.copy(fixture_plugin("good", scheme="new"), plugins / "libnew.so")
    before = lock.read_bytes()

    ended = command("lock", "--check", "--output", lock, "--plugin", plugins / "libnew.so")

    differences = sorted(" ".join(line.split()[:3]) for line in ended.lines)
    assert ended.code == Exit.NO
    assert differences == ["good: its sha256", "new: new: libnew.so,", "second: companion gone:",
                    "second: new companion:"]  # fmt: skip
    assert lock.read_bytes() == before


def test_where_there_is_nothing_to_lock_or_to_compare_nothing_is_written(mtf, command, tmp_path):
    path = tmp_path / "x.lock"
    nothing = mtf("lock", "--no-bundled", "--output", path, "--plugin", tmp_path)
    assert nothing.code == Exit.NOTHING
    assert "nothing to lock" in nothing.err
    for option in ("--check", "--json"):  # standard output takes the file alone
        ended = command("lock", "--output", "-", option)
        assert (ended.code, ended.out) == (Exit.USAGE, b"")
    missing = command("lock", "--check", "--output", path)
    assert not path.exists()
    path.write_text("{}")
    for ended in (missing, command("lock", "--check", "--output", path)):
        assert ended.code == Exit.NO
        assert "the lock file cannot be read" in ended.err


@pytest.mark.parametrize("locked", ["good", "second"])
def test_what_is_disabled_or_refused_is_not_locked(command, configured, plugins, lock, locked):
    if locked == "good":
        configured.write_text('disable = ["second"]\n' + configured.read_text())
    else:
        (plugins / "libgood.so").chmod(0o666)

    assert command("lock").code == Exit.DONE
    assert [entry["name"] for entry in json.loads(lock.read_text())["plugins"]] == [locked]


# -- hooks -----------------------------------------------------------------------------------------


@pytest.fixture
def hooked(tmp_path, monkeypatch):
    """Install a package with a hook; return its code, and what tells whether that was run since."""
    package, site, ran = "hooked_package", tmp_path / "site", tmp_path / "imported"
    code = site / package / "more.py"
    noted = f"open({str(ran)!r}, 'a').close()\nclass Hooks:\n    pass\n"
    files = {"__init__": f"from {package}.more import Hooks\n", "more": noted}
    install(
        site,
        package,
        files={f"{package}/{name}.py": text.encode() for name, text in files.items()},
        entry_points=f"[modular_tf.hooks]\nmine = {package}:Hooks\nbroken = no_such_module:x",
    )
    monkeypatch.syspath_prepend(str(site))

    def was_run():
        for name in (package, f"{package}.more"):
            sys.modules.pop(name, None)
        is_there = ran.exists()
        ran.unlink(missing_ok=True)
        return is_there

    yield code, was_run
    was_run()


def test_a_hook_runs_where_plugins_are_frozen_only_if_it_is_locked(
    command, configured, lock, hooked
):
    code, was_run = hooked
    ended = command("--frozen", "list", "-v")
    assert not was_run(), "the lock file is of a time without it"
    assert "LD-080" in ended.err
    assert "hooked-package 1.0: mine" in ended.err

    assert command("lock", "--output", lock).code == Exit.DONE
    was_run()
    command("--frozen", "list")
    assert was_run()
    assert command("lock", "--output", lock, "--check").code == Exit.DONE

    code.write_text(code.read_text() + "# altered\n")
    was_run()
    command("--frozen", "list")
    assert not was_run()
    ended = command("lock", "--output", lock, "--check")
    assert (ended.code, b"hooked-package 1.0: mine" in ended.out) == (Exit.NO, True)

    command("list")
    assert was_run(), "without freezing a hook need not be locked"
