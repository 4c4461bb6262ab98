"""Copies from standard input and to standard output."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from modular_tf.cli.fs.globbing import expand
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.stream import CHUNK, chunks
from modular_tf.cli.fs.transfers import FileWatch, Transfers, watched
from modular_tf.filesystem.files import known_length

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedReader

    from modular_tf.filesystem.files import WritableFile
    from modular_tf.service.service import PluginService

STANDARD = "-"
"""What stands for standard input or output on the command line."""


def copy_out(transfers: Transfers[Any], service: PluginService, uris: Sequence[str]) -> None:
    """Write files to standard output, one after the other."""

    def step(uri: str) -> None:
        for place in expand(service, uri, transfers.failures):
            with watched(transfers, place) as watch:
                _write_out(place, watch)

    sys.stdout.flush()
    transfers.totals.find(len(uris))
    transfers.run(step, uris, str)


def _write_out(place: Place, watch: FileWatch) -> None:
    with place.filesystem.new_random_access_file(place.uri) as file:
        watch.begun(known_length(file))
        for chunk in chunks(file):
            sys.stdout.buffer.write(chunk)
            watch.advance(len(chunk))
    sys.stdout.buffer.flush()


def copy_in(transfers: Transfers[Any], service: PluginService, target: str) -> None:
    """Write standard input to a file; what is not read to its end is not stored."""

    def step(uri: str) -> None:
        place = Place.of(service, uri)
        with watched(transfers, place) as watch:
            _read_in(place, watch)

    transfers.totals.find(1)
    transfers.run(step, [target], str)


def _read_in(place: Place, watch: FileWatch) -> None:
    from modular_tf.filesystem.copying import write_whole  # noqa: PLC0415  (help needs no core)
    from modular_tf.filesystem.unchanged import require_all_read  # noqa: PLC0415  (likewise)

    source = cast("BufferedReader", sys.stdin.buffer)

    before: os.stat_result | None = None
    begun = 0
    with suppress(OSError):  # it may be no file of the system
        before = os.fstat(source.fileno())
        begun = source.tell() if stat.S_ISREG(before.st_mode) else 0

    def write(writer: WritableFile) -> None:
        done = begun
        while block := source.read1(CHUNK):
            writer.append(block)
            done += len(block)
            watch.advance(len(block))
        if before is not None:
            require_all_read(source, before, done)

    write_whole(place.filesystem, place.uri, write, watch)
