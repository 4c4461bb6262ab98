"""Libraries that TensorFlow finds: those that it loads, that it passes over, and that end it.

The init functions create a file, if a variable names one, so that it is seen whether they were
called.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.build import build_plugin, framework_stub
from tests.plugins.matrix import TENSORFLOW_LIBRARY, variants

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MARK = "DOCTOR_CASE_MARK"
"""The variable that names the file that init functions create."""

_CALLED = (
    "char* getenv(const char*); int creat(const char*, unsigned); "
    f'static void called(void) {{ char* m = getenv("{MARK}"); if (m) creat(m, 0600); }} '
)
_CRASH = "int raise(int); __attribute__((constructor)) static void begin(void) { raise(11); } "
_KERNELS = _CALLED + "void TF_InitKernel(void) { called(); }"
_FILESYSTEM = _CALLED + "void TF_InitPlugin(void* info) { (void)info; called(); }"
_PLAIN = "int plain(void) { return 1; }"
_UNDEFINED = (
    "int gone_one(void); int gone_two(void); int (*kept)(void) = gone_two;"
    " int TF_InitKernel(void) { return gone_one(); }"
)
_ABORTS = "void abort(void); void SE_InitPlugin(void* i, void* s) { (void)i; (void)s; abort(); }"
_REFUSES = (
    "void TF_SetStatus(void*, int, const char*);"
    ' void SE_InitPlugin(void* i, void* s) { (void)i; TF_SetStatus(s, 5, "no hardware"); }'
)
_ABSENT = "int absent(void) { return 1; }"
_NEEDS_ABSENT = "int absent(void); void TF_InitKernel(void) { absent(); }"
_COMPANION = "int gone_deep(void); int companion(void) { return gone_deep(); }"
_NEEDS_COMPANION = "int companion(void); void TF_InitKernel(void) { companion(); }"


@dataclass(frozen=True)
class Case:
    """Files for TensorFlow to find, in one of its ways.

    Attributes:
        name: What is the matter with them.
        files: What makes each file, by its name; called with the path to make.
        way: `import`: they lie in `tensorflow-plugins`; `register`: the only one is given to
            `tf.experimental.register_filesystem_plugin`.
        variable: Names what TF_PLUGGABLE_DEVICE_LIBRARY_PATH is set to: a file of `files`, or one
            that is not there; "" for nothing.
    """

    name: str
    files: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    way: str = "import"
    variable: str = ""

    def make_in(self, folder: Path) -> None:
        """Make its files in a folder."""
        for name, make in self.files.items():
            make(folder / name)


def _linked(target: Path, source: str, *, framework: bool = False) -> None:
    _link(target, source, [str(framework_stub(TENSORFLOW_LIBRARY))] if framework else [])


def _link(target: Path, source: str, options: list[str]) -> None:
    text = target.with_name(f"{target.name}.c")
    text.write_text(source)
    try:
        compiled = compile_object(text, options=["-fvisibility=default"])
        shutil.copy(link_library(target.name, [compiled], options), target)
    finally:
        text.unlink()


def _with_library(target: Path, source: str, needed: str, *, stays: bool) -> None:
    """Link with a library of the folder, in a folder of its own where TensorFlow does not look."""
    folder = target.parent / "companions"
    folder.mkdir(exist_ok=True)
    library = folder / "libneeded.so"
    _link(library, needed, ["-Wl,-soname,libneeded.so"])
    _link(target, source, [str(library), "-Wl,-rpath,$ORIGIN/companions"])
    if not stays:
        library.unlink()


def _cut(target: Path, length: int) -> None:
    _linked(target, _PLAIN)
    os.truncate(target, length)


def _text(target: Path, *, length: int) -> None:
    target.write_text("x" * length)


def _device(target: Path, variant: str = "good", kind: str = "FIXTURE", name: str = "ONE") -> None:
    settings = {"FIXTURE_TYPE": kind, "FIXTURE_PLATFORM": name}
    shutil.copy(build_plugin(variants("device")[variant], settings), target)


def _filesystem(target: Path, variant: str = "good", scheme: str = "fx") -> None:
    settings = {"FIXTURE_SCHEME": scheme}
    shutil.copy(build_plugin(variants("filesystem")[variant], settings), target)


def source(text: str, *, framework: bool = False) -> Callable[[Path], None]:
    """Return what compiles and links a text to a library."""
    return partial(_linked, source=text, framework=framework)


def registered(name: str, make: Callable[[Path], None]) -> Case:
    """Return the case of one filesystem plugin that a program registers."""
    return Case(name, {"plugin.so": make}, way="register")


CASES = (
    Case("undefined symbol", {"undefined.so": source(_UNDEFINED)}),
    Case(
        "undefined symbol in a companion",
        {
            "c.so.1.2": partial(
                _with_library, source=_NEEDS_COMPANION, needed=_COMPANION, stays=True
            )
        },
    ),
    Case("text file", {"text.so": partial(_text, length=700)}),
    Case("file cut off in a segment", {"cut.so": partial(_cut, length=5000)}),
    Case(
        "needed library is missing",
        {"n.so": partial(_with_library, source=_NEEDS_ABSENT, needed=_ABSENT, stays=False)},
    ),
    Case("constructor crashes, no plugin", {"p.so": source(_CRASH + _PLAIN)}),
    Case("SE_InitPlugin aborts", {"aborts.so": source(_ABORTS)}),
    Case("SE_InitPlugin sets an error", {"refuses.so": source(_REFUSES, framework=True)}),
    Case("two copies of one platform", {"one.so": _device, "two.so": _device}),
    Case("filesystem only", {"filesystem.so": source(_FILESYSTEM)}),
    Case("kernels only", {"kernels.so": source(_KERNELS)}),
    Case("no name of a library", {"x.so.txt": source(_UNDEFINED)}),
    Case("no plugin", {"plain.so": source(_PLAIN)}),
    Case("good device", {"good.so": _device}),
    *(
        Case(f"device of {name}", {"d.so": partial(_device, variant=f"dialect-{variant}")})
        for name, variant in (
            ("TensorFlow 2.5", "2.5"),
            ("the RFC", "rfc"),
            ("the RFC, without sizes", "rfc-silent"),
        )
    ),
    Case("device of the variable", {"away": _device}, variable="away"),
    Case("device of the variable too", {"good.so": _device}, variable="good.so"),
    registered("good filesystem", _filesystem),
    registered("scheme of TensorFlow's own", partial(_filesystem, scheme="gs")),
    registered("TF_InitPlugin aborts", partial(_filesystem, variant="init-plugin-aborts")),
    registered("needs TensorFlow's inside", partial(_filesystem, variant="needs-the-inside")),
)
