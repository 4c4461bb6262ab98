"""Runs one recorded case against a module that speaks like `tf.io.gfile`.

The recorder (with TensorFlow) and the replay (with `modular_tf`) share this file, so that both
sides see the same tree, evaluate the same expressions and write down results in the same form.
It therefore imports neither.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What stands at the root of a case before its first step: bytes are files, None is a directory.
SETUPS: dict[str, dict[str, bytes | None]] = {
    "empty": {},
    "tree": {
        "a.txt": b"alpha\nbeta\ngamma\n",
        "b.txt": b"first\nno newline at the end",
        "crlf.txt": b"one\r\ntwo\r\nlone \r here\n",
        "data.bin": bytes(range(256)),
        "empty.txt": b"",
        "utf8.txt": "grüße\n日本語\n".encode(),
        ".hidden": b"h",
        "sub": None,
        "sub/c.txt": b"c",
        "sub/deep": None,
        "sub/deep/d.txt": b"d",
        "sub/deep/e.log": b"e",
        "void": None,
    },
    "names": {
        "aa.txt": b"1",
        "ab.txt": b"2",
        "ac.log": b"3",
        "b-1": b"4",
        "br[a]cket": b"5",
        "sta*r": b"6",
        "que?ry": b"7",
        "sp ace": b"8",
        "back\\slash": b"9",
        ".dot": b"10",
        "ünï": b"11",
        "{x}": b"12",
        "d1": None,
        "d1/aa.txt": b"13",
        "d1/e": None,
        "d1/e/aa.txt": b"14",
        "d2": None,
        "d2/aa.txt": b"15",
        "d2/.dot": b"16",
    },
    "large": {
        "large.bin": bytes(range(251)) * 8000,
        "long-line.txt": b"x" * 1_500_000 + b"\nend\n",
    },
}
LONGEST_SHOWN = 400


@dataclass(frozen=True)
class Place:
    """Where a case runs: the URI of its root and, on local disk, the directory behind it."""

    root: str
    directory: Path | None


def place_for(store: str, directory: Path, key: str) -> Place:
    """Return the root of a case on `store`, one of "local", "file" and "ram"."""
    if store == "ram":  # the dot: TensorFlow's takes a prefix of a name for a directory
        return Place(f"ram://store/{key}.", None)
    root = str(directory)
    return Place(f"file://{root}" if store == "file" else root, directory)


def run_case(gfile: Any, case: dict[str, Any], place: Place) -> dict[str, Any]:
    """Build the tree, evaluate the steps one after the other, and say what changed on the way."""
    before = SETUPS[case.get("setup", "tree")]
    _build(gfile, before, place)
    names = _names(gfile, place)
    steps = [{"call": step, **_outcome(step, names, place)} for step in case["steps"]]
    names.clear()
    gc.collect()
    return {"steps": steps, "changes": _changes(before, _snapshot(gfile, place))}


def _build(gfile: Any, tree: dict[str, bytes | None], place: Place) -> None:
    if place.directory is None:
        gfile.makedirs(place.root)
    for name, content in tree.items():
        if place.directory is not None:
            path = place.directory / name
            path.mkdir() if content is None else path.write_bytes(content)
        elif content is None:
            gfile.makedirs(f"{place.root}/{name}")
        else:
            with gfile.GFile(f"{place.root}/{name}", "wb") as file:
                file.write(content)


def _names(gfile: Any, place: Place) -> dict[str, Any]:
    return {
        "gfile": gfile,
        "root": place.root,
        "local": None if place.directory is None else str(place.directory),
        "Path": Path,
        "os": os,
        "fails_in_with": _fails_in_with,
        "is_recent": _is_recent,
        "parents_first": _parents_first,
        "pruned": _pruned,
        "tree_of": _tree_of,
        "raiser": _raiser,
        "digest": lambda data: hashlib.sha256(data).hexdigest(),
    }


def _fails_in_with(file: Any) -> str:
    """Leave a with-statement by an exception, after one write."""
    try:
        with file as same:
            same.write("before the failure")
            raise KeyError("left early")
    except KeyError as error:
        return f"came through: {error}"


def _is_recent(mtime_nsec: int) -> bool:
    """Whether a time in nanoseconds lies within ten minutes of now."""
    return abs(mtime_nsec / 1e9 - time.time()) < 600


def _tree_of(walk: Any) -> list[Any]:
    """What a walk yields, without the order that listing a directory leaves undefined."""
    return sorted([top, sorted(subdirs), sorted(files)] for top, subdirs, files in walk)


def _parents_first(walk: Any) -> list[bool]:
    """For each directory that a walk yields but its top: did its parent come before it?"""
    seen: list[str] = [top.rstrip("/") for top, _, _ in walk]
    inner = sorted(top for top in seen if top.rpartition("/")[0] in seen)
    return [seen.index(top.rpartition("/")[0]) < seen.index(top) for top in inner]


def _pruned(walk: Any, unwanted: str) -> list[str]:
    tops = []
    for top, subdirs, _ in walk:
        tops.append(top)
        if unwanted in subdirs:
            subdirs.remove(unwanted)
    return sorted(tops)


def _raiser(error: BaseException) -> None:
    raise RuntimeError(type(error).__name__)


def _outcome(step: str, names: dict[str, Any], place: Place) -> dict[str, Any]:
    try:
        value = eval(step, names)  # the expressions are the committed table
    except Exception as error:  # noqa: BLE001 - the kind of error is what is recorded
        return {"error": type(error).__name__}
    return {"result": _normal(value, place)}


def _normal(value: Any, place: Place) -> Any:
    """Return `value` as JSON has it, with the root of the case replaced by a placeholder."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return _normal_text(value, place)
    if isinstance(value, bytes):
        return {"bytes": _normal_text(value.decode("latin-1"), place)}
    if isinstance(value, list):
        return [_normal(item, place) for item in value]
    return _normal_object(value, place)


def _normal_text(text: str, place: Place) -> str:
    rooted = text.replace(place.root, "{root}")
    return _short(rooted.replace(str(place.directory), "{directory}"))


def _normal_object(value: Any, place: Place) -> dict[str, Any]:
    if hasattr(value, "mtime_nsec"):
        return {"length": value.length, "is_directory": value.is_directory}
    if isinstance(value, tuple):
        return {"tuple": [_normal(item, place) for item in value]}
    return {"object": type(value).__name__}


def _short(text: str) -> str:
    if len(text) <= LONGEST_SHOWN:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{len(text)} characters, sha256 {digest}"


def _snapshot(gfile: Any, place: Place) -> dict[str, bytes | None]:
    if place.directory is not None:
        return _snapshot_of_directory(place.directory)
    found: dict[str, bytes | None] = {}
    for top, subdirs, files in gfile.walk(place.root):
        for name in subdirs:
            found[f"{top}/{name}"[len(place.root) + 1 :]] = None
        for name in files:
            found[f"{top}/{name}"[len(place.root) + 1 :]] = _content(gfile, f"{top}/{name}")
    return found


def _content(gfile: Any, uri: str) -> bytes:
    try:
        return gfile.GFile(uri, "rb").read()
    except Exception as error:  # noqa: BLE001 - a listed file that cannot be read is a finding
        return f"(listed, but {type(error).__name__} when read)".encode()


def _snapshot_of_directory(directory: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for path in directory.rglob("*"):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = b"-> " + os.fsencode(path.readlink())
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def _changes(before: dict[str, bytes | None], after: dict[str, bytes | None]) -> dict[str, str]:
    changes = {}
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            changes[name] = "gone"
        elif name not in before or before[name] != after[name]:
            content = after[name]
            changes[name] = (
                "directory" if content is None else "file: " + _short(content.decode("latin-1"))
            )
    return changes


def run_in_fresh_directory(
    gfile: Any, case: dict[str, Any], store: str, directory: Path
) -> dict[str, Any]:
    """Run `case` with a new empty `directory`, as the current one, and remove it afterwards."""
    directory.mkdir(parents=True)
    previous = Path.cwd()
    os.chdir(directory)
    try:
        return run_case(gfile, case, place_for(store, directory, case["id"]))
    finally:
        os.chdir(previous)
        shutil.rmtree(directory)
