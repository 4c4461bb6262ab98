"""An application that has a hostile library among its plugins, and tells how it fared.

`python application.py LIBRARY GOOD_BEFORE GOOD_AFTER FOLDER`. The good plugins serve `before` and
`after`. What is printed last is a JSON object: what became of the library, and what still serves.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from modular_tf import Config, PluginService

_PATIENT = Config(first_contact_timeout_s=5.0)


def what_serves(service: PluginService, folder: Path) -> list[str]:
    """Use all that other plugins offer; return what did its work."""
    served = []
    for scheme in ("before", "after"):
        service.filesystem(scheme).create_dir(f"{scheme}://host/directory")
        served.append(f"{scheme}://")
    for uri in ("ram://kept/file", str(folder / "file")):
        filesystem = service.filesystem_for(uri)
        if uri.startswith("ram://"):
            filesystem.create_dir("ram://kept")
        with filesystem.open(uri, "wb") as file:
            file.write(b"kept")
        with filesystem.open(uri, "rb") as file:
            assert file.read() == b"kept"
        served.append(uri.partition("kept")[0] if uri.startswith("ram://") else "files")
    (host,) = (device for device in service.devices() if device.platform == "HOST_CPU")
    memory = host.allocate(4)
    host.memcpy_htod(memory, b"kept")
    return [*served, "HOST_CPU"]


def main() -> None:
    """Load, use, and tell."""
    library, before, after, folder = sys.argv[1:]
    with PluginService(config=_PATIENT, plugin_paths=[before, library, after]) as service:
        report = service.load()
        served = what_serves(service, Path(folder))
        (record,) = (found for found in report.plugins if found.path == library)
        state = record.state.value
        said = [reason.as_dict() for reason in (*record.reasons, *record.warnings)]
    sys.stdout.write("\n" + json.dumps({"state": state, "said": said, "served": served}) + "\n")


main()
