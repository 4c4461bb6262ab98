"""Running the samples of a document, with the plugins and the store that they need."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.architecture.document import Block, Reader, blocks
from tests.contrib.built_plugin import built_plugin
from tests.contrib.opencl_plugin import ON_POCL
from tests.fixtures.clients import client_libraries
from tests.fixtures.emulators import s3_client
from tests.fixtures.machine import KEEPS_BYTECODE, cached_folder
from tests.fixtures.wild import KERNELS, install_kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fixtures.emulators import Store
    from tests.fixtures.forked_children import ForkServer
    from tests.fixtures.wild import WildPlugins

AUTHORS_PAGE = Path(__file__).parents[2] / "docs" / "start" / "plugin-authors.md"
SALES = b"city,items\nOslo,3\nLima,5\n"
_INSTALLATION = "modular-tf fetch tensorflow-io"
_INSTALLATION_OF_CLIENTS = "pip install polars duckdb"
_INSTALLATION_OF_KERNELS = "pip install --no-deps intel_extension_for_tensorflow_lib"
_PLUGIN = "libhello.so"
_KERNEL_LIBRARY = "libhost_kernels.so"
_OPENCL = "opencl_device/libopencl_device.so"
NOT_OF_A_USER = ("MODULAR_TF_FIRST_CONTACT", "MODULAR_TF_LOAD")
"""The variables that tests set."""


def run_samples(
    markdown: str,
    folder: Path,
    wild_plugins: WildPlugins,
    s3_store: Store,
    server: ForkServer | None = None,
) -> None:
    """Run the blocks of a document in a folder, in a user's environment, top to bottom.

    Forks of `server` run those of Python, where one is given.
    """
    _create_bucket(s3_store.endpoint)
    environment = {
        **_of_a_user(folder / "home"),
        **s3_store.environment,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    reader = Reader(folder, environment, server)
    if _needs_plugins_from_the_start(markdown):
        _install(wild_plugins.site_dir, environment)
    found = blocks(markdown)
    _build_libraries(markdown, folder, reader, environment)
    for block, following in zip(found, [*found[1:], Block("", "", 0)], strict=True):
        if _INSTALLATION in block.text:  # the fixture has installed what is told here
            _install(wild_plugins.site_dir, environment)
        elif _INSTALLATION_OF_KERNELS in block.text:
            site = folder / "site-packages"  # by its name a place of `tensorflow-plugins`
            site.symlink_to(cached_folder(f"wild/{KERNELS}", install_kernels))
            _install(site, environment)
            environment["ITEX_CPP_MIN_LOG_LEVEL"] = "2"  # as the document says
        elif _INSTALLATION_OF_CLIENTS in block.text:
            _install(client_libraries(), environment)
        elif block.language == "console":
            reader.console(block)
        elif block.language == "c":
            reader.c(block)
        elif block.language == "python":
            reader.python(block, following.text if following.language == "text" else None)


def _build_libraries(
    markdown: str, folder: Path, reader: Reader, environment: dict[str, str]
) -> None:
    """Put those into the folder that a document uses without building them."""
    if _PLUGIN in markdown and not any(block.language == "c" for block in blocks(markdown)):
        _build_plugin(reader)
    if _KERNEL_LIBRARY in markdown:
        shutil.copy(built_plugin("host_kernels"), folder)
    if _OPENCL in markdown:
        environment.update(_with_opencl(folder))


def _needs_plugins_from_the_start(markdown: str) -> bool:
    return _INSTALLATION not in markdown and (
        "s3://my-bucket" in markdown or "tensorflow-io disabled" in markdown
    )


def _install(site: Path, environment: dict[str, str]) -> None:
    before = environment.get("PYTHONPATH")
    places = [before, str(site)] if before else [str(site)]
    environment["PYTHONPATH"] = os.pathsep.join(places)
    environment.update(KEEPS_BYTECODE)


def _build_plugin(reader: Reader) -> None:
    """Build the plugin of the page for plugin authors, which other pages use."""
    found = blocks(AUTHORS_PAGE.read_text(encoding="utf-8"))
    reader.c(next(block for block in found if block.language == "c"))
    reader.console(next(block for block in found if _PLUGIN in block.text))


def _with_opencl(folder: Path) -> Mapping[str, str]:
    """Put the OpenCL plugin where its script does; return the environment that finds a driver."""
    target = folder / _OPENCL
    target.parent.mkdir()
    shutil.copy(built_plugin(), target)
    return ON_POCL


def _of_a_user(home: Path) -> dict[str, str]:
    """Return the environment without what the tests have instead of first contact."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_OF_A_USER}
    return {**kept, "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}


def _create_bucket(endpoint: str) -> None:
    with s3_client(endpoint) as client:
        client.create_bucket(Bucket="my-bucket")
        for left in client.list_objects_v2(Bucket="my-bucket").get(
            "Contents", ()
        ):  # by another page
            client.delete_object(Bucket="my-bucket", Key=left["Key"])
        client.put_object(Bucket="my-bucket", Key="sales/may.csv", Body=SALES)
