"""8 threads on 4 OpenCL queues: the order that dependencies demand is the order that is seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.contrib.opencl_plugin import ON_POCL

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_PROGRAMS = 12
_CHECKOUT = Path(__file__).parents[2]


def test_the_order_is_what_the_dependencies_demand(
    run_python: PythonRunner, opencl_library: Path
) -> None:
    """The same programs, judged by the same model, as the host device's."""
    run_python(
        """
        import sys
        sys.path.append(sys.argv[3])
        from modular_tf import PluginService
        from tests.device.order_model import random_program, violations
        from tests.device.order_run import Run

        with PluginService() as service:
            service.load(sys.argv[1])
            device = service.device("OPENCL:0")
            for seed in range(int(sys.argv[2])):
                program = random_program(seed, 150)
                found = violations(program, Run(device, program)())
                assert not found, (seed, found)
        """,
        opencl_library,
        str(_PROGRAMS),
        _CHECKOUT,
        env=ON_POCL,
    )
