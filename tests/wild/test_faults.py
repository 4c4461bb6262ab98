"""Work on stores that fail at random: every result is complete, or one of our errors.

`scripts/faults` runs much more of it than the tests do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.emulators import proxied
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT
from tests.wild.conftest import STORES

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_CHECKOUT = Path(__file__).parents[2]
_OPERATIONS = int(DEVELOPER_ENVIRONMENT.get("MODULAR_TF_FAULT_OPERATIONS", "0"))
# The SDKs of az and gs wait before they try a request again, that of az for up to a minute: its
# sample has the faults that are no reason to try again.
_SAMPLE = {"s3": 120, "az": 8, "gs": 16, "http": 40}
_CHANCE = {"az": "0.03", "gs": "0.03"}
_SETTINGS_OF_SAMPLES = {"az": {"faults": "slow,cut"}, "gs": {"longest_run": 1}}
_SEED = int(DEVELOPER_ENVIRONMENT.get("MODULAR_TF_FAULT_SEED", "16"))
_UPSTREAM = {**STORES, "s3": "distant_s3"}
_CAMPAIGN = """
    import runpy, sys
    sys.path.append(sys.argv.pop(1))  # after the installed package
    runpy.run_module("tests.faults.campaign", run_name="__main__", alter_sys=True)
    """


@pytest.mark.timeout(300 + 2 * _OPERATIONS)
@pytest.mark.parametrize(
    "scheme",
    ["s3", "az", "gs", "http"],
)
def test_a_store_that_fails_gives_complete_results_or_typed_errors(
    scheme, request, tmp_path, run_python, wild_environment
):
    store = request.getfixturevalue(_UPSTREAM[scheme])
    with proxied(store, tmp_path) as proxy:
        if not _OPERATIONS:
            proxy.set(**_SETTINGS_OF_SAMPLES.get(scheme, {}))
        env = {**wild_environment(proxy, "faults"), "PROXY": proxy.endpoint}
        env["FAULT_THREADS"] = "2" if scheme == "az" and not _OPERATIONS else "8"
        env["FAULT_CHANCE"] = _CHANCE.get(scheme, "0.12")
        if proxy.folder is not None:
            env["WILD_FOLDER"] = str(proxy.folder / "faults")
        arguments = [_CHECKOUT, str(_OPERATIONS or _SAMPLE[scheme]), str(_SEED)]
        limit = 280 + 2 * _OPERATIONS
        child = run_python(_CAMPAIGN, *arguments, env=env, status=None, timeout=limit)

    print(child.stdout)
    assert child.returncode == 0, f"{child.stdout}\n{child.stderr}"
    assert " 0 problems" in child.stdout
