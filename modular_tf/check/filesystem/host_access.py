"""From a library's file to a filesystem of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.host_subject import HostFilesystem
from modular_tf.check.own_state import nothing_remembered
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from modular_tf.check.call_journal import CallJournal
    from modular_tf.check.target import Target


class HostAccess:
    """Opens a service that serves one plugin.

    Args:
        target: The library and the scheme.
        journal: Is told of each call.

    Attributes:
        subject: The filesystem.

    Raises:
        Blocked: The service does not serve the scheme.
        ModularTFError: The plugin could not be loaded.
    """

    def __init__(self, target: Target, journal: CallJournal) -> None:
        journal.enter("PluginService.load")
        # Who has a plugin checked trusts it: it ran already when the checks were planned.
        trust = TrustPolicy(allow_writable=("*",))
        config = Config(first_contact="never", load="eager", trust=trust)
        with nothing_remembered(target.scratch):
            self._service = PluginService(config=config, plugin_paths=[target.path], bundled=False)
            report = self._service.load(target.path)
        entry = self._service.entry(target.path)
        tables = entry.tables.get(target.scheme or "")
        if tables is None:
            self._service.close()
            raise Blocked(f"scheme {target.scheme!r} is not served: {report}")
        filesystem = self._service.filesystem(target.scheme or "")
        self.subject = HostFilesystem(filesystem, tables, journal)

    def close(self) -> None:
        """Close the service."""
        self._service.close()
