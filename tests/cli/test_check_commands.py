"""What plugins have written is no command of the CI service that reads the report."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from modular_tf.cli import check
from modular_tf.cli.output import Printer
from tests.check.report.outcomes import CRASH, CRASHED, report

SAID = replace(CRASHED, incident=replace(CRASH, said="about to fall\n::add-mask::mine\n"))


@pytest.fixture
def written(capfd):
    """Write a report, and return the lines."""

    def write(annotations):
        files = dict.fromkeys(("junit", "write_json", "html", "badge"))
        forms = {"verbose": False, "annotations": annotations}
        check.write(report(SAID), files, Printer(json=False), None, **forms)
        return [line.strip() for line in capfd.readouterr().out.splitlines()]

    return write


def test_a_line_that_a_plugin_wrote_is_no_command_of_the_ci_service(written):
    lines = written("github")
    stop = re.fullmatch("::stop-commands::([0-9a-f]{32})", lines[0])
    begun_again = lines.index(f"::{stop[1]}::")

    assert 0 < lines.index("::add-mask::mine") < begun_again
    assert lines[begun_again + 1].startswith("::error title=")


def test_nobody_could_have_known_what_lets_commands_go_on(written):
    assert written("github")[0] != written("github")[0]


def test_without_annotations_the_text_has_no_commands(written):
    lines = written(None)

    assert [line for line in lines if line.startswith("::")] == ["::add-mask::mine"]
