"""A plugin in a worker does its worst in a call: the application loses only that call."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fixtures.matrices import sampled
from tests.fixtures.process_group import end_group
from tests.isolation.hostile_deeds import DEEDS, FORGED
from tests.isolation.hostile_plugin import hostile_plugin

_APPLICATION = Path(__file__).with_name("application.py")
_LIMIT_S = 240.0
_ALL_SURVIVE = 4  # readers of three other plugins, and a writer
_OPERATIONS = {
    "exists": {"path_exists"},
    "read": {"read"},
    "append": {"append", "close"},
    "list": {"get_children"},
    "translate": {"translate_name"},
}
# One of each kind; bombs and deeds against all processes slow down what runs beside them.
_SAMPLED = """
    segv-in-exists segv-in-read segv-in-append segv-in-translate abort-in-exists overflow-in-exists
    segv-in-thread-in-exists segv-on-small-stack-in-exists exit-3-in-exists leave-in-exists
    throw-in-exists hang-in-read kill-self-in-exists close-all-in-exists leak-in-exists
    clear-environment-in-exists change-directory-in-exists output-in-exists endless-in-list
    lying-count-in-list forge-longer-in-exists forge-outside-in-exists
    forge-unsealed-in-exists forge-many-empty-in-exists
"""


def _id(deed):
    return f"{deed.name}-in-{deed.call}"


_BY_ID = {_id(deed): deed for deed in DEEDS}


class _Application:
    """The application of the moment: one for all deeds, unless one of them ends it."""

    def __init__(self, factory, good):
        self._factory = factory
        self._libraries = [str(hostile_plugin()), str(good)]
        self._process = None

    def _start(self):
        folder = self._factory.mktemp("application")
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(_APPLICATION), *self._libraries, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=os.environ,
                text=True,
                bufsize=1,
                start_new_session=True,
            )

    def attempt(self, deed):
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._process.stdin.write(json.dumps(deed._asdict()) + "\n")
        ready, _, _ = select.select([self._process.stdout], [], [], _LIMIT_S)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.close()
            pytest.fail(f"the application ended or hangs: {self._errors.read_text()[-2000:]}")
        return json.loads(line)

    def close(self):
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):  # it has ended, and what was not sent is lost
                    pipe.close()
            end_group(self._process)


@pytest.fixture(scope="module")
def application(tmp_path_factory, fixture_plugin):
    application = _Application(tmp_path_factory, fixture_plugin(scheme="other"))
    yield application
    application.close()


def _check_error(found, expected):
    if not found["error"]:
        assert expected == "" or expected.startswith("|"), f"{expected!r}, but the call returned"
        return
    assert found["error"] != "UNTYPED", found
    assert expected != "", f"expected no error, found {found}"
    assert re.search(expected.removeprefix("|"), found["message"], re.DOTALL), found
    plugin, operation, path = found["where"]
    assert plugin in found["message"], found
    assert operation in found["message"], found
    assert path is None or repr(path) in found["message"], found


@pytest.mark.parametrize(
    "deed",
    sampled(DEEDS, [_BY_ID[name] for name in _SAMPLED.split()]),
    ids=_id,
)
@pytest.mark.xdist_group("hostile at work")
def test_the_application_survives(deed, application):
    report = application.attempt(deed)
    _check_error(report["deed"], deed.error)
    if report["deed"]["error"]:
        assert report["deed"]["where"][1] in _OPERATIONS[deed.call], report
    *failed, last = report["probes"]
    assert failed or deed.probe_error != FORGED, "no forged reply was noticed"
    for probe in failed:
        _check_error(probe, deed.probe_error)
    assert last["error"] == "", f"the plugin is of no use any more: {report['probes']}"
    assert report["survived"] == _ALL_SURVIVE, report
    assert report["left"] == []
    assert report["more_descriptors"] == 0, report
