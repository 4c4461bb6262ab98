"""Plugins that give no answer: TensorFlow gets an error in time, and goes on."""

from __future__ import annotations

import json

import pytest

from tests.filesystem.ending import ending_plugin

pytestmark = [pytest.mark.xdist_group("tensorflow")]

_START = """
def write_and_close():
    file = g.GFile("ending://h/1", "w")
    file.write("text")
    return error_of(file.close)
"""


@pytest.fixture
def run(run_bridge):
    """Return what a subject prints last, as JSON."""

    def run(code, **env):
        return json.loads(run_bridge(_START + code, env=env).stdout.splitlines()[-1])

    return run


def test_a_plugin_that_gives_no_answer_is_ended_and_the_session_goes_on(run):
    said, workers, exists = run(f"""
service = started(["ending"], plugin_paths=[{str(ending_plugin())!r}], call_timeout_s=0.2)
said = write_and_close()
exists = g.exists("ending://h/1")
print(json.dumps([said, [worker.plugin for worker in service.workers()], exists]))
""")
    assert said.startswith("DeadlineExceededError: close 'ending://h/1': "), said
    assert "gave no answer within 0.2 s and was ended" in said
    assert workers
    assert exists in {True, False}


def test_the_configuration_names_the_limit_too(run, tmp_path):
    (tmp_path / "c.toml").write_text("call_timeout_s = 0.2\n")
    said = run(
        """
mtft.register(["ending"])
print(json.dumps(write_and_close()))
""",
        MODULAR_TF_CONFIG=str(tmp_path / "c.toml"),
        MODULAR_TF_PLUGIN_PATH=str(ending_plugin()),
    )
    assert "gave no answer within 0.2 s and was ended" in said
