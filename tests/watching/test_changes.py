"""What a service reports of plugin files that come, change and go, and what serves then."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.watching.conftest import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from modular_tf.service.report import PluginChange


class Step(NamedTuple):
    """What is done to the folder, what a refresh reports of it, and who serves what then."""

    deeds: tuple[Callable[[Files], object], ...]
    reported: tuple[str, ...]  # a kind, a name, a state, and the rule of what refuses the file
    schemes: dict[str, str]


class Files:
    """The plugin files of a folder."""

    def __init__(self, folder: Path, put: Callable[..., str], overwrite: Callable[..., None]):
        self.folder, self.put, self.overwrite = folder, put, overwrite

    def touch(self, name: str) -> None:
        os.utime(self.folder / name, (1, 1))

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def rename(self, name: str, other: str) -> None:
        (self.folder / name).rename(self.folder / other)

    def link(self, name: str, other: str) -> None:
        os.link(self.folder / name, self.folder / other)

    def begin(self, name: str) -> None:
        (self.folder / name).write_bytes(b"\x7fELF")


def deed(name: str) -> Callable[..., Callable[[Files], object]]:
    """Return what makes a deed of a file's name and more."""
    return lambda *given, **named: lambda files: getattr(files, name)(*given, **named)


put, overwrite, touch, remove, rename, link, begin = map(
    deed, ("put", "overwrite", "touch", "remove", "rename", "link", "begin")
)
A, B, X, Z = "liba.so", "libb.so", "libx.so", "libz.so"
put_a, put_b, put_x = partial(put, A), partial(put, B), partial(put, X)
two_schemes = partial(put, variant="two-schemes")

TWO = (put_a(), put_b()), ("appeared a loaded", "appeared b shadowed FS-018"), {"first": "a"}

CASES = {
    "appear, replace, remove, back again": [
        Step((put_x(),), ("appeared x loaded",), {"first": "x"}),
        Step((put_x(scheme="second"),), ("replaced x loaded",), {"second": "x"}),
        Step((overwrite(X, scheme="third"),), ("replaced x loaded",), {"third": "x"}),
        Step((remove(X),), ("removed x loaded",), {}),
        Step((put_x(scheme="third"),), ("appeared x loaded",), {"third": "x"}),
        Step((remove(X), put_x(scheme="first")), ("replaced x loaded",), {"first": "x"}),
        Step((rename(X, A),), ("removed x loaded", "appeared a loaded"), {"first": "a"}),
    ],
    "the same bytes": [
        Step((put_x(),), ("appeared x loaded",), {"first": "x"}),
        Step((put_x(), touch(X)), (), {"first": "x"}),
        Step((put_x(scheme="second"), put_x()), (), {"first": "x"}),
    ],
    "refused at first": [
        Step((put_x(variant="no-init"),), ("appeared x rejected LD-010",), {}),
        Step((put_x(variant="unresolved-symbol"),), ("replaced x rejected LD-014",), {}),
        Step((put_x(),), ("replaced x loaded",), {"first": "x"}),
        Step((put_x(variant="no-init"),), ("replaced x loaded LD-085",), {"first": "x"}),
        Step((put_x(),), (), {"first": "x"}),
        Step((put_x(variant="no-init"),), ("replaced x loaded LD-085",), {"first": "x"}),
        Step((put_x(scheme="second"),), ("replaced x loaded",), {"second": "x"}),
    ],
    "refused later": [
        Step((put_x(),), ("appeared x loaded",), {"first": "x"}),
        *[
            Step((put_x(variant=variant),), ("replaced x loaded LD-085",), {"first": "x"})
            for variant in ("unresolved-symbol", "init-plugin-crashes", "scheme-null")
        ],
        Step((put_x(scheme="second"),), ("replaced x loaded",), {"second": "x"}),
    ],
    "unfinished": [
        Step((begin(X),), ("appeared x rejected LD-005",), {}),
        Step((put_x(),), ("replaced x loaded",), {"first": "x"}),
    ],
    "a scheme that is given up": [
        Step(*TWO),
        Step((put_a(scheme="other"),), ("replaced a loaded",), {"other": "a", "first": "b"}),
        Step((two_schemes(A, scheme="other"),), ("replaced a loaded",),
             {"other": "a", "fixture2": "a", "first": "b"}),
        Step((put_a(scheme="other"),), ("replaced a loaded",), {"other": "a", "first": "b"}),
        Step((put_b(scheme="other"),), ("replaced b loaded LD-085",), {"other": "a", "first": "b"}),
    ],
    "a plugin in the shadow of a removed one": [
        Step(*TWO),
        Step((remove(A),), ("removed a loaded",), {"first": "b"}),
    ],
    "two new generations with one scheme": [
        Step((put_a(scheme="one"), put_b(scheme="two")), ("appeared a loaded", "appeared b loaded"),
             {"one": "a", "two": "b"}),
        Step((put_a(scheme="same"), put_b(scheme="same")),
             ("replaced a loaded", "replaced b loaded LD-085"), {"same": "a", "two": "b"}),
        Step((two_schemes(B, scheme="same"),), ("replaced b loaded FS-018",),
             {"same": "a", "fixture2": "b"}),
    ],
}  # fmt: skip


def told(change: PluginChange) -> str:
    """Return what a change says."""
    refusal = change.refusal or change.record.reason
    said = f"{change.kind} {change.plugin} {change.record.state}"
    return f"{said} {refusal.rule}" if refusal else said


@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_reported_and_serves(case, is_used, service, folder, put, overwrite, monkeypatch):
    monkeypatch.setenv("MODULAR_TF_FIRST_CONTACT", "new")
    files = Files(folder, put, overwrite)
    service.watch().close()  # from now on files may be overwritten in place
    for step in CASES[case]:
        for deed in step.deeds:
            deed(files)
        changes = service.refresh()

        assert sorted(map(told, changes)) == sorted(step.reported)
        assert service.schemes() == step.schemes
        assert service.refresh() == []
        for scheme in step.schemes if is_used else ():
            write(service, f"{scheme}://host/file")
        refused = {change.plugin for change in changes if change.refusal}
        for record in service.plugins():
            assert ("LD-085" in [it.rule for it in record.warnings]) == (record.name in refused)


@pytest.mark.parametrize(
    ("deed", "kind"),
    [(remove(X), "removed"), (put_x(scheme="second"), "replaced")],
    ids=["removed", "replaced"],
)
def test_another_name_of_the_old_file_becomes_a_plugin_of_its_own(
    deed, kind, service, folder, put, overwrite
):
    files = Files(folder, put, overwrite)
    path = put(X)
    service.load("x")
    link(X, Z)(files)
    assert service.refresh() == []
    deed(files)

    changes = service.refresh([path])

    assert [(str(each.kind), each.plugin) for each in changes] == [(kind, "x"), ("appeared", "z")]
    assert service.schemes()["first"] == "z"
