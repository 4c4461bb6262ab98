"""One service, all that is done with it, and how to tell that it is all right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf import gfile
from modular_tf.errors import UnimplementedError
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from modular_tf.service.storage.quarantine import QuarantineStore
from modular_tf.service.storage.scan_cache import ScanCache
from tests.stress.library_folder import SLOTS
from tests.watching.numbered import number_in, scheme_of

if TYPE_CHECKING:
    from tests.stress.library_folder import LibraryFolder

ACTIONS = (
    "discover", "load", "read", "write", "refresh", "watch", "devices", "gfile", "fsspec", "close",
)  # fmt: skip


class ServiceRound:
    """A service for a folder of numbered libraries, made when it is first used."""

    def __init__(self, folder: LibraryFolder, service: PluginService | None = None) -> None:
        self._folder = folder
        self._file = folder.path.parent / "file"
        self._made = service

    @property
    def service(self) -> PluginService:
        """The service."""
        if self._made is None:
            self._made = PluginService(plugin_dirs=[self._folder.path])
        return self._made

    # -- actions ----------------------------------------------------------------------------------

    def discover(self) -> None:
        self.service.discover()

    def load(self) -> None:
        self.service.load()

    def read(self) -> None:
        found = self.numbers()
        assert found == self._folder.numbers, f"read {found}, not {self._folder.numbers}"

    def numbers(self) -> dict[int, int]:
        """Return the number that each slot serves, without those that serve none."""
        found = {slot: self._number(slot) for slot in range(SLOTS)}
        return {slot: number for slot, number in found.items() if number is not None}

    def _number(self, slot: int) -> int | None:
        uri = f"{scheme_of(slot)}://host/file"
        try:
            filesystem = self.service.filesystem_for(uri)
        except UnimplementedError:
            return None
        with filesystem.new_random_access_file(uri) as reader:
            return number_in(reader.read(0, 1 << 20))

    def write(self) -> None:
        for uri in ("ram://host/file", str(self._file)):
            filesystem = self.service.filesystem_for(uri)
            if uri.startswith("ram"):
                filesystem.recursively_create_dir("ram://host")
            with filesystem.open(uri, "wb") as stream:
                stream.write(bytes(100_000))
            with filesystem.open(uri, "rb") as stream:
                assert stream.read() == bytes(100_000), f"{uri} holds something else"

    def refresh(self) -> None:
        self.service.refresh()

    def watch(self) -> None:
        self.service.watch().close()

    def devices(self) -> None:
        names = [device.name for device in self.service.devices("CPU")]
        assert names == ["CPU:0"], f"devices are {names}"

    def gfile(self) -> None:
        using = gfile.using(self.service)
        using.makedirs("ram://host/folder")
        with using.GFile("ram://host/folder/file", "w") as file:
            file.write("content")
        assert using.listdir("ram://host/folder") == ["file"]
        assert gfile.exists(str(self._folder.path)), "the default service finds nothing"

    def fsspec(self) -> None:
        files = ModularFileSystem("ram", service=self.service, skip_instance_cache=True)
        files.makedirs("host", exist_ok=True)
        files.pipe_file("host/other", b"content")
        assert files.cat_file("host/other") == b"content"

    def close(self) -> None:
        self.service.close()

    def use_in_handler(self) -> None:
        """Do what a signal handler does that saves something."""
        saved = str(self._folder.path.parent / "saved")
        with gfile.GFile(saved, "w") as file:
            file.write("saved")
        assert gfile.exists(saved)
        assert not gfile.exists("ram://host/nothing")
        if not self.service.closed:
            self.service.load()
            self.service.filesystem("ram").path_exists("ram://host")
            self.service.devices("CPU")

    # -- afterwards -------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Do all that is left, and all of it once more; return what is wrong."""
        if self.service.closed:
            self.service.close()
            self._made = None
        wrong = [
            f"{record.name} is {record.state}: {record.reasons}"
            for record in self.service.load().plugins
            if record.state is not State.LOADED
        ]
        self.refresh()
        for action in ("read", "write", "devices", "gfile", "fsspec", "watch"):
            try:
                getattr(self, action)()
            except Exception as error:  # noqa: BLE001  (whatever comes is the result)
                wrong.append(f"{action}: {error!r}")
        self.service.close()
        self.service.close()
        return [*wrong, *self._wrongly_remembered()]

    def _wrongly_remembered(self) -> list[str]:
        cache = ScanCache.of_process()
        wrong = [f"in quarantine: {entry}" for entry in QuarantineStore.of_process().entries()]
        for slot in self._folder.numbers:
            known = cache.recall(str(self._folder.file_of(slot)))
            offer = None if known is None or known.finding is None else known.finding.offer
            if offer is not None and offer.schemes != (scheme_of(slot),):
                wrong.append(f"it is remembered that slot {slot} offers {offer}")
        return wrong
