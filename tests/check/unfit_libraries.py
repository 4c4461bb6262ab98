"""Libraries that are not fit to be loaded: no plugin, none for this machine, or a dangerous one.

They are the defects of checks of files, and of what loading does to the process.
"""

from __future__ import annotations

import os

from tests.discovery.elf_builder import ElfBuilder
from tests.first_contact.conftest import build_misdeed
from tests.fixtures.compiler import compile_object, link_library

_PROGRAM, _M68K = 2, 4
_VISIBLE = '__attribute__((visibility("default")))'
_DATA = f"{_VISIBLE} int TF_InitPlugin = 1;"
_GRAPH = f"{_VISIBLE} void TF_InitGraph(void) {{}}"
_WITH_KERNELS = f"""
    void TF_LookUpOpDef(void);
    {_VISIBLE} void TF_InitPlugin(void* info) {{ (void)info; }}
    {_VISIBLE} void SE_InitPlugin(void* params) {{ (void)params; TF_LookUpOpDef(); }}
"""
# What the file says is a function, and lies in memory that is not executable.
_NO_CODE = """
    __asm__(".data\\n.globl TF_InitPlugin\\n.type TF_InitPlugin, @function\\n"
            "TF_InitPlugin: .quad 0\\n.size TF_InitPlugin, 8\\n.text\\n");
"""
_NEEDY = f"int from_there(void); {_VISIBLE} void TF_InitPlugin(void) {{ from_there(); }}"


def unfit_library(check_id, folder):
    """Make the file that a check must find wanting, in an empty folder."""
    return _MAKERS[check_id](folder)


def _missing(folder):
    return folder / "libnowhere.so"


def _directory(folder):
    path = folder / "libdirectory.so"
    path.mkdir()
    return path


def _without_permission(folder):
    """Make a link to itself: even the superuser may not open it, who may read everything."""
    path = folder / "libforbidden.so"
    path.symlink_to(path)
    return path


def _file(content):
    def make(folder):
        path = folder / "libfile.so"
        path.write_bytes(content)
        return path

    return make


def _foreign(**differences):
    return _file(ElfBuilder(**differences).build())


def _compiled(text, *options):
    def make(folder):
        source = folder / "unfit.c"
        source.write_text(text, encoding="utf-8")
        return link_library("libunfit.so", [compile_object(source)], options)

    return make


def _versioned(soname, version):
    """Return the maker of a library that needs a version that nobody has, of a library of all."""

    def make(folder):
        script = folder / "versions"
        script.write_text(f"{version} {{ *; }};", encoding="utf-8")
        source = folder / "stub.c"
        source.write_text(f"{_VISIBLE} int from_there(void) {{ return 1; }}", encoding="utf-8")
        options = [f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}"]
        stub = link_library(f"stub-{soname}", [compile_object(source)], options)
        return _compiled(_NEEDY, os.fspath(stub))(folder)

    return make


def _misdeed(deed):
    return lambda _: build_misdeed(deed, kind="filesystem")


_MAKERS = {
    "LD-001": _missing,
    "LD-002": _directory,
    "LD-003": _without_permission,
    "LD-004": _file(b"#!/bin/sh\nexit 1\n"),
    "LD-005": _file(ElfBuilder().build()[:400]),
    "LD-006": _foreign(bits=32),
    "LD-007": _foreign(order=">"),
    "LD-008": _foreign(machine=_M68K),
    "LD-009": _foreign(type=_PROGRAM),
    "LD-011": _compiled(_DATA),
    "LD-012": _compiled(_GRAPH),
    "LD-015": _versioned("libc.so.6", "GLIBC_2.999"),
    "LD-016": _versioned("libm.so.6", "GLIBCXX_3.4.999"),
    "LD-017": _compiled(_WITH_KERNELS),
    "LD-051": _compiled(_NO_CODE),
    "LD-060": _misdeed("ABORT"),
    "LD-061": _misdeed("HANG"),
    "LD-062": _misdeed("CLOSE_OUTPUT"),
    "LD-064": _misdeed("ALLOCATE"),
    "LD-065": _misdeed("UNFLUSHED"),
    "LD-066": _misdeed("CATCH_INTERRUPT"),
    "LD-067": _misdeed("CHANGE_LOCALE"),
    "LD-068": _misdeed("FORK"),
    "LD-069": _misdeed("CHANGE_UMASK"),
    "LD-120": _misdeed("NO_FILE_SIZE"),
    "LD-121": _misdeed("ALARM"),
    "LD-122": _misdeed("FILTER_OPEN"),
    "SE-001": _compiled(_GRAPH),
}
UNFIT = frozenset(_MAKERS)
"""The checks that find such a file wanting."""
