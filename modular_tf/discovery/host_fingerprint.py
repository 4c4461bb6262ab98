"""The state of this host that a verdict about a plugin depends on, as a value."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from modular_tf import __version__
from modular_tf.discovery.privileges import linker_variable
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LINKER_VARIABLES = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"),
    *("GLIBC_TUNABLES", "LD_HWCAP_MASK", "LD_ASSUME_KERNEL"),
)
_DEVICE_FOLDERS = ("/dev", "/dev/accel", "/dev/dri")
# A driver makes its other files when it is used first, such as /dev/nvidia-uvm.
_DEVICE_NAMES = ("accel", "card", "kfd", "nvidia", "renderD")
_DRIVER_VERSIONS = "/sys/module/nvidia/version", "/sys/module/amdgpu/version"
_MACHINE_ID = "/etc/machine-id"
_PROGRAM = "/proc/self/exe"
_CPU_INFO = "/proc/cpuinfo"
_CPU_KEYS = ("CPU part", "Features", "flags", "isa", "model name")
_HEAD_BYTES = 8192  # the first processor's part
# Where the code and the tables lie that decide about plugins: all that runs while one is tried.
_PACKAGES = (
    "", "abi", "concurrency", "device", "device/arrays", "device/memory", "device/streams",
    "discovery", "discovery/elf", "discovery/linking", "discovery/sources", "discovery/trust",
    "events", "filesystem", "filesystem/workarounds", "first_contact", "kernel", "loading",
    "native", "native/lib", "processes", "rules",
)  # fmt: skip
_CODE_SUFFIXES = (".py", ".so", ".so.2", ".toml")


class HostFingerprint(NamedTuple):
    """The parts in a fixed order, each with a readable name and value."""

    parts: tuple[tuple[str, str], ...]

    def with_parts(self, more: Mapping[str, str]) -> HostFingerprint:
        """Return a fingerprint with more parts."""
        return HostFingerprint((*self.parts, *more.items()))

    @property
    def key(self) -> str:
        """Eight hexadecimal digits that differ for most other hosts; short enough for a name."""
        return _checksum(self.parts)

    def changes_since(self, then: Mapping[str, str]) -> list[str]:
        """Return what differs from the parts of another time, in words: `kernel: 6.1 -> 6.2`."""
        now = dict(self.parts)
        names = dict.fromkeys((*now, *then))
        return [
            f"{name}: {then.get(name, 'unknown')} -> {now.get(name, 'unknown')}"
            for name in names
            if then.get(name) != now.get(name)
        ]


@cache
def host_fingerprint() -> HostFingerprint:
    """Return the fingerprint of this host: what decides how a plugin behaves. [any thread]

    The same for the life of the process. A new version of this package or of its files, of Python,
    the kernel, the C library or a graphics driver, another machine, processor or set of device
    files each makes another one. Raises `ShortageError`.
    """
    kernel = os.uname()
    implementation = sys.implementation
    # An editable installation has a part of each room in two places.
    folders = [
        os.path.join(package, name) for package in package_directories() for name in _PACKAGES
    ]
    files = sorted(file for name in folders for file in _files_in(name))
    c_library = ""
    with suppress(ValueError, OSError):
        c_library = os.confstr("CS_GNU_LIBC_VERSION") or ""
    processor: dict[str, str] = {}  # what the first one is and can do
    for line in _text_of(_CPU_INFO).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in _CPU_KEYS:
            processor.setdefault(name.strip(), value.strip())
    model = processor.get("model name") or processor.get("CPU part", "")
    return HostFingerprint(
        (
            ("modular_tf", __version__),
            ("modular_tf's files", _checksum(files)),
            ("Python", f"{implementation.cache_tag} {sys.version.split()[0]}{sys.abiflags}"),
            ("machine", kernel.machine),
            ("kernel", kernel.release),
            ("C library", c_library),
            ("machine-id", _text_of(_MACHINE_ID)),
            ("processor", f"{model} {_checksum(processor)}"),
            ("devices", " ".join(sorted(_device_files()))),
            ("drivers", " ".join(filter(None, map(_text_of, _DRIVER_VERSIONS)))),
        )
    )


def _checksum(value: object) -> str:
    """Return eight hexadecimal digits that differ for most other values."""
    return f"{crc32(repr(value).encode('utf-8', 'backslashreplace')):08x}"


def linking_parts(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the parts that decide which libraries and symbols a plugin is linked with.

    That is the program, whose own libraries and symbols come first, and the linker's variables.
    """
    program = ""
    try:
        status = os.stat(_PROGRAM)
        program = f"{os.readlink(_PROGRAM)} {status.st_size} {status.st_mtime_ns}"
    except OSError as error:
        raise_shortage(error)
    variables = {name: linker_variable(name, environment) for name in _LINKER_VARIABLES}
    return {"program": program, **variables}


def _files_in(folder: str) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    # An editable installation has a part of each room in two places.
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_CODE_SUFFIXES):
                    status = entry.stat()
                    found.append((entry.name, status.st_size, status.st_mtime_ns))
    except OSError as error:
        raise_shortage(error)
    return found


def _device_files() -> Iterator[str]:
    for folder in _DEVICE_FOLDERS:
        try:
            names = os.listdir(folder)
        except OSError as error:
            raise_shortage(error)
            continue
        for name in names:
            path = os.path.join(folder, name)
            if name.rstrip("0123456789") in _DEVICE_NAMES and path not in _DEVICE_FOLDERS:
                yield path


def _text_of(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(_HEAD_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise_shortage(error)
        return ""
