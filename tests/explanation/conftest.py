"""Explanations, as one text and as facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.service.conftest import device_file, make_service, plugin_file, site

if TYPE_CHECKING:
    from modular_tf.service.why import Fact

__all__ = ["device_file", "make_service", "plugin_file", "site"]


class Answer(NamedTuple):
    """What `why` said."""

    known: bool
    text: str
    facts: tuple[Fact, ...]

    def of(self, stage):
        """Return the facts of a stage."""
        return [fact.text for fact in self.facts if fact.stage == stage]


@pytest.fixture
def why():
    """Ask a service why; what it says survives JSON."""

    def ask(service, name):
        answer = service.why(str(name))
        told = json.loads(json.dumps(answer.as_dict()))
        assert told["lines"] == list(answer.lines)
        assert [fact["text"] for fact in told["facts"]] == [fact.text for fact in answer.facts]
        return Answer(answer.known, "\n".join(answer.lines), answer.facts)

    return ask


@pytest.fixture(autouse=True)
def own_place_for_what_is_kept(tmp_path, monkeypatch):
    """What one test puts into quarantine is not there for the next."""
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
