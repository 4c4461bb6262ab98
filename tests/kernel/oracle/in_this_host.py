"""Run scenarios of the probe in this package: `in_this_host.py PROBE LOG`."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import records
import scenarios

from modular_tf.errors import ModularTFError
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from modular_tf.device.device import Device


_DESCRIPTOR = 900  # that no other process has open


def main(probe: str, log: Path) -> None:
    _open_log(log)
    with PluginService() as service:
        service.discover()
        service.load("host_device")
        service.load(probe)
        device = service.device("CPU:0")
        for scenario in scenarios.SCENARIOS:
            records.append(log, records.SCENARIO + scenario.name)
            _run(device, scenario, log)
        records.append(log, records.SCENARIO + records.END)


def _open_log(log: Path) -> None:
    """Have the probe record what it is answered in this process, not where it is tried before."""
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    own = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _DESCRIPTOR)
    os.close(opened)
    os.environ["MTF_PROBE_LOG"] = f"/proc/self/fd/{own}"


def _run(device: Device, scenario: scenarios.Scenario, log: Path) -> None:
    arguments = (device, scenario, log)
    threads = [threading.Thread(target=_calls, args=arguments) for _ in range(scenario.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _calls(device: Device, scenario: scenarios.Scenario, log: Path) -> None:
    for call in scenario.calls:
        records.append(log, f"outcome\t{_outcome(device, call)}")


def _outcome(device: Device, call: scenarios.Call) -> str:
    try:
        return records.shown("OK", [np.asarray(output) for output in _made(device, call)])
    except ModularTFError as error:
        return f"{error.code.name} -- {error}"
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__} -- {error}"


def _made(device: Device, call: scenarios.Call) -> list[Any]:
    inputs = [_input(device, value) for value in call.inputs]
    donated = [
        made
        for made, value in zip(inputs, call.inputs, strict=True)
        if isinstance(value, scenarios.Source)
    ]
    op = device.op(f"MtfProbe{call.op}", label=call.label)
    attrs = {name: _attr(value) for name, value in call.attrs.items()}
    return _flat(op(*inputs, donate=donated, **attrs))


def _input(device: Device, value: Any) -> Any:
    if isinstance(value, scenarios.Source):
        return device.op("MtfProbeSource")(case=value.case)
    return list(value) if isinstance(value, tuple) else value


def _flat(result: Any) -> list[Any]:
    if not isinstance(result, (list, tuple)):
        return [result]
    return [each for group in result for each in _flat(group)]


def _attr(value: Any) -> Any:
    if isinstance(value, list):
        return [_attr(element) for element in value]
    if isinstance(value, scenarios.Tensor):
        return np.array(value.values, np.float32)
    if isinstance(value, scenarios.Shape):
        return value.dims
    if isinstance(value, (scenarios.DType, scenarios.Function)):
        return value.name
    return value


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
