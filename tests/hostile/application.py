"""An application that has a hostile library among its plugins, and tells how it fared.

`python application.py LIBRARY GOOD_BEFORE GOOD_AFTER FOLDER`. The good plugins serve `before` and
`after`. What is printed last is a JSON object: what became of the library, what is known of it, and
what still serves. With MISDEED_MOMENT, the path of a file, the library is mapped, and when all was
used the file is made, at which the library ends the process, or has a good plugin end it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

from modular_tf import Config, PluginService

_PATIENT = Config(first_contact_timeout_s=5.0)
_EAGER = Config(first_contact_timeout_s=5.0, load="eager", close_timeout_s=1.0)
_MOMENT = os.environ.get("MISDEED_MOMENT")


def what_serves(service, folder):
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


def use_until_the_end(service):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        service.filesystem("before").path_exists("before://host/directory")


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, most), most))  # as most systems have it
    library, before, after, folder = sys.argv[1:]
    config = _EAGER if _MOMENT else _PATIENT
    with PluginService(config=config, plugin_paths=[before, library, after]) as service:
        report = service.load()
        served = what_serves(service, Path(folder))
        (record,) = (found for found in report.plugins if found.path == library)
        state = record.state.value
        reasons = [reason.as_dict() for reason in (*record.reasons, *record.warnings)]
        why = list(service.why(record.name).lines)
        if _MOMENT and "_tables_" in library:
            Path(_MOMENT).touch()
            use_until_the_end(service)
    answer = {"state": state, "reasons": reasons, "served": served, "why": why}
    if _MOMENT:
        Path(_MOMENT).touch()
        if "_later_" in library:
            time.sleep(60)
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


main()
