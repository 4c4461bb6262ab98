"""A plugin in a worker does its worst in a call: the application loses only that call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.fixtures.matrices import sampled
from tests.isolation.hostile_application import HostileApplication
from tests.isolation.hostile_deeds import DEEDS, FORGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.isolation.hostile_deeds import Deed

_ALL_SURVIVE = 4  # readers of three other plugins, and a writer
_OPERATIONS = {
    "exists": {"path_exists"},
    "read": {"read"},
    "append": {"append", "close"},
    "list": {"get_children"},
    "translate": {"translate_name"},
}


class _Applications:
    """The application of the moment: one for all deeds, unless one of them ends it."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._current: HostileApplication | None = None

    def current(self) -> HostileApplication:
        if self._current is None or not self._current.runs:
            self._current = HostileApplication(self._factory.mktemp("application"))
        return self._current

    def close(self) -> None:
        if self._current is not None:
            self._current.close()


@pytest.fixture(scope="module")
def applications(tmp_path_factory) -> Iterator[_Applications]:
    """The application that has the hostile plugin."""
    applications = _Applications(tmp_path_factory)
    yield applications
    applications.close()


def _check_error(told: dict[str, Any], said: str) -> None:
    if not told["error"]:
        assert said == "" or said.startswith("|"), f"expected {said!r}, but the call returned"
        return
    assert told["error"] != "UNTYPED", told
    assert said != "", f"expected no error, found {told}"
    assert re.search(said.removeprefix("|"), told["message"], re.DOTALL), told
    plugin, operation, path = told["where"]
    assert plugin in told["message"], told
    assert operation in told["message"], told
    assert path is None or repr(path) in told["message"], told


# One of each kind; bombs and deeds against all processes slow down what runs beside them.
_SAMPLE = frozenset(
    (
        *(
            "segv",
            "abort",
            "overflow",
            "segv-in-thread",
            "exit-3",
            "leave",
            "throw",
            "hang",
            "spin",
        ),
        *("kill-self", "close-all", "leak", "clear-environment", "change-directory", "output"),
        *("endless", "lying-count", "forge-longer", "forge-outside", "forge-unsealed"),
    )
)


@pytest.mark.parametrize(
    "deed",
    sampled(DEEDS, [deed for deed in DEEDS if deed.name in _SAMPLE]),
    ids=lambda deed: f"{deed.name}-in-{deed.call}",
)
@pytest.mark.xdist_group("hostile at work")
def test_the_application_survives(deed: Deed, applications: _Applications) -> None:
    told = applications.current().try_deed(deed)
    _check_error(told["deed"], deed.said)
    if told["deed"]["error"]:
        assert told["deed"]["where"][1] in _OPERATIONS[deed.call], told
    *failed, last = told["probes"]
    assert failed or deed.probed != FORGED, "no forged reply was noticed"
    for probe in failed:
        _check_error(probe, deed.probed)
    assert last["error"] == "", f"the plugin is of no use any more: {told['probes']}"
    assert told["survived"] == _ALL_SURVIVE, told
    assert told["changed"] == []
    assert told["left"] == []
    assert told["more_descriptors"] == 0, told
