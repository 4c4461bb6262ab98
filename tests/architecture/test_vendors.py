"""Vendors are named in data files and in the module of their store, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.imports import modules

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
# Names of vendors, their products and their schemes. TensorFlow itself is not one of them: its
# interface is what this project is about.
VENDOR_WORDS = {
    "abfs", "alibaba", "aliyun", "amazon", "aws", "az", "azblob", "azure", "cuda", "gcp", "gcs",
    "google", "gs", "hadoop", "har", "hdfs", "huawei", "intel", "itex", "metal", "minio", "nvidia",
    "oss", "rocm", "s3", "tfio", "viewfs", "wasb",
}  # fmt: skip
# Names that others gave to things which are no plugin's, by the module that must know them.
NOT_OF_PLUGINS = {
    "modular_tf.abi.dlpack_devices": {"cuda", "metal", "rocm"},  # DLPack's list of device types
    "modular_tf.discovery.elf.image": {"cuda"},  # a processor in the ELF standard's list
    "modular_tf.discovery.host_fingerprint": {"nvidia"},  # the kernel's device files and modules
    "modular_tf.discovery.linking.symbol_families": {"google"},  # the C++ namespace of protobuf
    "modular_tf.filesystem.pyarrow_ops": {"gcs", "hdfs"},  # pyarrow's names for its classes
    "modular_tf.fsspec.registration": {"az", "gs", "hdfs", "s3", "viewfs"},  # schemes of libraries
    "modular_tf.filesystem.python_errors": {"aws", "azure"},  # messages of pyarrow's libraries
}
STORES = "modular_tf.filesystem.workarounds."
VENDOR_PARTS = ("tensorflow_io", "tensorflow-io")
C_FOLDERS = ("modular_tf/include", "modular_tf/native", "contrib")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def vendor_words(text: str) -> set[str]:
    """Return the vendors that a text names, as whole words; `_` and case separate words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ")
    words = {word.lower() for word in _WORD.findall(apart)}
    return (words & VENDOR_WORDS) | {part for part in VENDOR_PARTS if part in text.lower()}


def _docstrings(tree: ast.Module) -> set[int]:
    """Return the identities of constants that are docstrings: they may give examples."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _texts(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield identifiers and strings of a module's code, with their lines."""
    examples = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in examples:
                yield node.value, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def test_python_names_no_vendor():
    named = [
        f"{module.name}, line {line}: {text!r}"
        for module in modules()
        if not module.name.startswith(STORES)
        for text, line in _texts(module.tree)
        if vendor_words(text) - NOT_OF_PLUGINS.get(module.name, set())
    ]

    assert named == []


@pytest.mark.parametrize("folder", C_FOLDERS)
def test_c_names_no_vendor(folder):
    named = [
        f"{path.relative_to(CHECKOUT)}: {sorted(found)}"
        for path in sorted((CHECKOUT / folder).rglob("*"))
        if path.suffix in {".c", ".cc", ".h"}
        and (found := vendor_words(_C_COMMENT.sub(" ", path.read_text(encoding="utf-8"))))
    ]

    assert named == []
