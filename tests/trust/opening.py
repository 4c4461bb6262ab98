"""Plugins that bring in libraries of which the probe knows nothing, and those libraries."""

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

from modular_tf.discovery.trust.lock import LockedFile, LockedPlugin, LockFile
from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

_SOURCE = Path(__file__).with_name("opening.c")


def opening_plugin(place, scheme="opening", options=()):
    """Put a plugin in its place that serves a scheme and opens what variables name."""
    good = variants("filesystem")["needed-none"]
    renamed = replace(good, defines=("TF_InitPlugin=fixture_init",))
    more = compile_object(_SOURCE, ["IS_PLUGIN", f'NAME="{place.stem}"'])
    built = build_plugin(renamed, {"FIXTURE_SCHEME": scheme}, [more], options)
    return _put(built, place)


def opened_library(
    place,
    name="opened",
    value=1,
    soname="",
    options=(),
):
    """Put a library in its place that leaves a trace of its name."""
    compiled = compile_object(_SOURCE, [f'NAME="{name}"', f"VALUE={value}"])
    named = [f"-Wl,-soname,{soname}"] if soname else []
    return _put(link_library(place.name, [compiled], [*named, *options]), place)


def write_lock(lock, plugin, *companions, others=()):
    """Write a lock file with a plugin, its companions and other plugins; return a frozen policy."""
    library, *more = map(_locked, (plugin, *companions))
    plugins = [LockedPlugin("x", library, companions=tuple(more))]
    plugins += [LockedPlugin(other.stem, _locked(other)) for other in others]
    lock.write_text(LockFile.of(plugins).text())
    return {"frozen": True, "lock": str(lock)}


def _locked(file):
    return LockedFile(file.name, hashlib.sha256(file.read_bytes()).hexdigest(), 1)


def _put(built, place):
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(built, place)
    with place.open("ab") as stream:  # where no linker looks
        stream.write(os.urandom(16))
    return place
