"""Plugins with a misdeed, and the trials that find it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import Trials, try_plugins
from modular_tf.loading.task import Task
from tests.fixtures.compiler import compile_object, link_library

_FOLDER = Path(__file__).parent
_DIALECTS = _FOLDER.parent / "device" / "dialects"
_THROW = _FOLDER.parent / "plugins" / "throw.cc"
_LAYOUT = "LAYOUT=209"
PATIENT = Limits(seconds=60.0)  # what nobody needs who is not meant to hang
_warm: dict[Limits, Trials] = {}


@pytest.fixture(autouse=True)
def with_first_contact(monkeypatch, tmp_path_factory):
    """Take away what keeps the other tests from it, and what they would remember of each other."""
    monkeypatch.delenv("MODULAR_TF_FIRST_CONTACT")
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module", autouse=True)
def end_of_warm_trials():
    """End the processes that `find_one` has started for the tests of a module."""
    yield
    while _warm:
        _warm.popitem()[1].close()


@pytest.fixture(scope="session")
def misdeed():
    """Build a plugin that does something, one of `misdeed.c`, at a place."""
    return build_misdeed


def build_misdeed(deed, place="INIT", kind="device"):
    """Return a library that misbehaves; `kind` is `device` or `filesystem`."""
    macros = (f"MISDEED={deed}", f"PLACE={place}")
    sources = (_FOLDER / "process_deeds.c", _FOLDER / "later_deeds.c", _THROW)
    objects = [compile_object(_FOLDER / "misdeed.c", macros), *map(compile_object, sources)]
    if kind == "device":
        good = (_LAYOUT, "SE_InitPlugin=dialect_init")
        objects += [compile_object(_FOLDER / "device_misdeed.c", (_LAYOUT,))]
        objects += [
            compile_object(_DIALECTS / f"{name}.c", good) for name in ("plugin", "executor")
        ]
    else:
        objects += [compile_object(_FOLDER / "filesystem_misdeed.c")]
    suffix = "" if kind == "device" else f"_of_{kind}"
    name = f"lib{deed.lower()}_at_{place.lower()}{suffix}.so"
    return link_library(name, objects, ["-lpthread", "-ldl"], cxx=True)


@pytest.fixture(scope="session")
def rfc_example():
    """Build what the RFC gives as its usage example."""
    example = compile_object(_DIALECTS / "rfc_example.c", ["LAYOUT=2020"])
    return link_library("librfc_example.so", [example])


def misdeed_task(deed, place="INIT", kind="device"):
    """Return the task of trying a plugin with a misdeed."""
    return Task("bad", str(build_misdeed(deed, place, kind)), kinds=(kind,))


def find_one(deed, place="INIT", kind="device", limits=PATIENT):
    """Try a plugin with a misdeed, by a process that the tests of a module share."""
    return find_of(misdeed_task(deed, place, kind), limits)


def find_of(task, limits=PATIENT):
    """Try any plugin, by a process that the tests of a module share."""
    (found,) = _warm.setdefault(limits, Trials(limits)).try_plugins([task])
    return found


def find_alone(deed, place="INIT", kind="device", limits=PATIENT):
    """Try a plugin with a misdeed, by a new process: it has the environment of this one."""
    (found,) = try_plugins([misdeed_task(deed, place, kind)], limits)
    return found


def processes_with(library):
    """Return the processes that have a library mapped, but for this one.

    It must lie in a folder of the test's own: other tests map what the compiler's cache holds.
    """
    path, found = os.fsencode(library), []
    for process in Path("/proc").iterdir():
        try:
            mapped = process.name.isdecimal() and path in (process / "maps").read_bytes()
        except OSError:
            continue
        if mapped and process.name != str(os.getpid()):
            found.append(process.name)
    return found
