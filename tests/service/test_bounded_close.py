"""A close that plugins take long for: bounded by the configuration, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf import Config, PluginService
from modular_tf.errors import ClosedError, DeadlineExceededError
from tests.filesystem.ending import ending_plugin
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from pathlib import Path

    from modular_tf.filesystem.files import WritableFile
    from tests.fixtures.children import PythonRunner


@pytest.fixture(scope="module")
def library() -> Path:
    """The plugin; it takes as many seconds to close a file as the path says."""
    return ending_plugin()


def written(
    library: Path, path: str, **settings: float | None
) -> tuple[PluginService, WritableFile]:
    """Return a service, and a file of it that is open for writing."""
    service = PluginService(config=Config(**settings), plugin_paths=[library], bundled=False)
    service.load()
    return service, service.filesystem("ending").new_writable_file(path)


def test_what_is_left_is_named_and_goes_on(library):
    service, file = written(library, "ending://h/1", close_timeout_s=0.1)
    with pytest.raises(DeadlineExceededError, match=r"plugin ending was not closed within 0\.1 s"):
        service.close()
    assert service.closed
    while True:
        try:
            service.close()
        except DeadlineExceededError:
            continue
        break
    with pytest.raises(ClosedError):
        file.append(b"more")


def test_the_end_of_the_process_waits_for_what_is_left(run_forked, library):
    said = run_forked(
        """
        import sys
        from modular_tf import Config, PluginService
        from modular_tf.errors import DeadlineExceededError
        from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
        close = PluginFilesystem.close
        def told(self, **options):
            close(self, **options)
            print("closed", flush=True)
        PluginFilesystem.close = told
        config = Config(close_timeout_s=0.1)
        service = PluginService(config=config, plugin_paths=[sys.argv[1]], bundled=False)
        service.load()
        file = service.filesystem("ending").new_writable_file("ending://h/2")
        try:
            service.close()
        except DeadlineExceededError:
            print("left")
        """,
        library,
    ).stdout.split()
    assert said[:2] == ["left", "closed"]


_EXIT_HANDLER = """
    #define _GNU_SOURCE
    #include <stdlib.h>
    #include <time.h>
    #include <unistd.h>

    static void end(void) {
      struct timespec left = {1, 0};
      while (nanosleep(&left, &left) != 0) continue;
      if (write(1, "done\\n", 5) < 0) abort();
    }

    __attribute__((constructor)) static void begin(void) { atexit(end); }
"""


@pytest.mark.parametrize(
    ("bounds", "said"),
    [((0.05, None), "done\n"), ((0.05,), ""), ((30, 0.05), "done\n")],
)
def test_the_longest_bound_of_several_services_counts_at_exit(
    run_forked: PythonRunner, tmp_path: Path, bounds: tuple[float | None, ...], said: str
) -> None:
    source = tmp_path / "exit_handler.c"
    source.write_text(_EXIT_HANDLER)
    library = link_library("libmtf_exit_handler.so", [compile_object(source)])

    child = run_forked(
        f"""
        import ctypes, sys
        from modular_tf.service.configuration import Config
        from modular_tf.service.service import PluginService

        for bound in {bounds}:
            service = PluginService(config=Config(close_timeout_s=bound))
            service.load()
            service.filesystem("ram").path_exists("ram://x")
            del service
        ctypes.CDLL(sys.argv[1])
        """,
        library,
    )

    assert child.stdout == said
