"""The child's side of `plugin_process`: makes the subject, then answers calls until the end.

Usage: python -m tests.contrib.child DESCRIPTOR KIND ARGUMENT...
"""

from __future__ import annotations

import faulthandler
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.contrib.raw_device import RawDevice
from tests.contrib.raw_filesystem import RawFilesystem

KINDS = {"filesystem": RawFilesystem, "device": RawDevice}


def descriptors() -> int:
    """How many file descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def parallel(subject: Any, jobs: list[list[tuple[Any, ...]]]) -> list[list[Any]]:
    """Run each list of calls in a thread of its own, all at once, and return their results."""
    barrier = threading.Barrier(len(jobs))
    results: list[list[Any]] = [[] for _ in jobs]

    def work(index: int) -> None:
        barrier.wait()
        for method, *arguments in jobs[index]:
            results[index].append(getattr(subject, method)(*arguments))

    threads = [threading.Thread(target=work, args=[index]) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def answer(subject: Any, method: str, arguments: Any, options: Any) -> Any:
    """Do what the parent asks for."""
    if method == "parallel":
        return parallel(subject, *arguments)
    if method == "descriptors":
        return descriptors()
    return getattr(subject, method)(*arguments, **options)


def serve(connection: Connection, subject: Any) -> None:
    """Answer until the parent hangs up."""
    while True:
        try:
            method, arguments, options = connection.recv()
        except EOFError:
            return
        try:
            connection.send((True, answer(subject, method, arguments, options)))
        except Exception as error:  # noqa: BLE001  (the parent raises it)
            connection.send((False, f"{type(error).__name__}: {error}"))


def main(descriptor: str, kind: str, *arguments: str) -> None:
    """Run the child."""
    faulthandler.enable()
    serve(Connection(int(descriptor)), KINDS[kind](*arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
