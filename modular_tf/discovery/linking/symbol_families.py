"""The kind of library that could define a symbol, and readable forms of symbols' names."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.discovery.elf import UndefinedSymbol


class SymbolFamily(Enum):
    """A kind of library that could define a symbol."""

    PLUGIN_API = (
        "of TensorFlow's C API for plugins",
        (
            "Use a version of the plugin for another TensorFlow version, or ask this host's "
            "authors to offer these functions."
        ),
    )
    KERNEL_API = (
        "of TensorFlow's C API for kernels, operations and graphs",
        (
            "The plugin asks for functions of kernels or graph optimizers that this host does not "
            "have: use it with TensorFlow, or a build of it without them."
        ),
    )
    TENSORFLOW_CXX = (
        "of TensorFlow's C++ libraries",
        (
            "The plugin was linked with the inside of one TensorFlow version: use a build of it "
            "that needs the C API only."
        ),
    )
    PYTHON = (
        "of the Python C API",
        "Use a build of the plugin for this version of Python.",
    )
    CXX_LIBRARY = (
        "of the C++ standard library",
        "Install a newer libstdc++, or use a build of the plugin for an older one.",
    )
    C_LIBRARY = (
        "of the C library",
        "Use a build of the plugin for an older glibc (manylinux), or a newer system.",
    )
    OTHER = (
        "of other libraries",
        "Install the library that defines them; the plugin should name it as needed (DT_NEEDED).",
    )

    @property
    def words(self) -> str:
        """The family in words, for messages."""
        return self.value[0]

    @property
    def remedy(self) -> str:
        """The remedy for missing symbols of this family."""
        return self.value[1]


# The patterns are compiled at their first use, which most processes never reach.
# What tf_status.h, env.h, logging.h, tf_file_statistics.h and tstring.h declare: the part of
# the C API that a filesystem or a device needs. All other names that begin with TF_ or TFE_
# serve kernels, operations, graphs, sessions or eager execution.
_PLUGIN_API = (
    r"TSL_|TF_(?:NewStatus|DeleteStatus|SetStatus|SetPayload|ForEachPayload|GetCode|Message"
    r"|D?V?Log$|CreateDir|DeleteDir|DeleteRecursively|DeleteFile|FileStat|NewWritableFile"
    r"|(?:Close|Sync|Flush|AppendTo|Append)WritableFile|StringStream|DefaultThreadOptions"
    r"|GetChildren|StartThread|JoinThread|Now|GetTempFileName|GetLocalTempDirectories"
    r"|LoadSharedLibrary|GetSymbolFromLibrary|TString|String(?:Init|Copy|Assign|Get|Dealloc))"
)
_TENSORFLOW_NAMESPACES = frozenset(
    ("tensorflow", "tsl", "xla", "absl", "stream_executor", "mlir", "google", "Eigen")
)
_ABSL_IN_C = "AbslInternal"  # what Abseil defines without a mangled name
_PYTHON = r"_?Py[A-Z_]"
_CXX_RUNTIME = r"_ZN?K?S[a-z]|_ZT[VISTh][A-Z0-9]*S[a-z]|_Z(?:nw|na|dl|da)|__cxa_|__gxx_"
_CXX_VERSIONS = ("GLIBCXX_", "CXXABI_")
_SPECIAL = r"_Z(?:T[VISTW]|GV|GR|Th\d+_|Tv\d+_n\d+_)?"
_ABBREVIATIONS = {
    "St": ("std",),
    "Sa": ("std", "allocator"),
    "Ss": ("std", "string"),
    "Si": ("std", "istream"),
    "So": ("std", "ostream"),
    "Sd": ("std", "iostream"),
}
_SPECIAL_ENDINGS = (("C", "{0}::{0}"), ("D", "{0}::~{0}"))


def family_of(symbol: UndefinedSymbol) -> SymbolFamily:
    """Return the kind of library that could define a symbol."""
    name, version = symbol.name, symbol.version or ""
    if name.startswith(("TF_", "TFE_", "TSL_")):
        plugin = re.match(_PLUGIN_API, name) is not None
        return SymbolFamily.PLUGIN_API if plugin else SymbolFamily.KERNEL_API
    if re.match(_PYTHON, name):
        return SymbolFamily.PYTHON
    if version.startswith("GLIBC_"):
        return SymbolFamily.C_LIBRARY
    if version.startswith(_CXX_VERSIONS) or re.match(_CXX_RUNTIME, name):
        return SymbolFamily.CXX_LIBRARY
    if name.startswith(_ABSL_IN_C) or _namespace_of(name) in _TENSORFLOW_NAMESPACES:
        return SymbolFamily.TENSORFLOW_CXX
    return SymbolFamily.OTHER


def origin_of(name: str) -> str:
    """Return which part of TensorFlow a symbol of its C++ libraries is of, such as "tsl".

    Of Abseil also the release, where the name has it: each TensorFlow is built with one.
    """
    namespace = "absl" if name.startswith(_ABSL_IN_C) else _namespace_of(name)
    if namespace == "absl" and (release := re.search(r"lts_(\d{8})", name)) is not None:
        return f"absl (LTS {release[1]})"
    return "protobuf" if namespace == "google" else namespace


def _namespace_of(name: str) -> str:
    return readable_name(name).partition("::")[0]


def readable_name(name: str) -> str:
    """Return the plain part of a mangled C++ name: "tsl::mutex::unlock"; else the name itself."""
    match = re.match(_SPECIAL, name)
    if match is None:
        return name
    at = match.end()
    nested = name[at : at + 1] == "N"
    if nested:
        at += 1
        while name[at : at + 1] in {"K", "V", "R", "O"}:  # const, volatile, & and &&
            at += 1
    namespaces = _ABBREVIATIONS.get(name[at : at + 2], ())
    at += 2 if namespaces else 0
    parts, rest = _source_names(name, at, most=64 if nested else 1)
    if not parts:
        return name
    parts = [*namespaces, *parts]
    for letter, form in _SPECIAL_ENDINGS:
        if nested and rest[:1] == letter and rest[1:2].isdigit():
            parts[-1] = form.format(parts[-1])
    return "::".join(parts)


def _source_names(name: str, at: int, *, most: int) -> tuple[list[str], str]:
    """Return the length-prefixed parts from `at` on, and what follows them."""
    parts: list[str] = []
    while len(parts) < most:
        match = re.compile(r"[1-9][0-9]{0,4}").match(name, at)
        if match is None or match.end() + int(match[0]) > len(name):
            break
        at = match.end() + int(match[0])
        parts.append(name[match.end() : at])
    return parts, name[at : at + 2]
