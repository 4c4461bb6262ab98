"""`configure_logging` and `MODULAR_TF_LOG`: silent, pretty, JSON, or the application's own."""

import json
import re

import pytest

import modular_tf
from tests.log_output.conftest import events_in

LOAD = """
with mtf.PluginService(config=CONFIG) as made:
    made.load("ram_filesystem")
"""


def test_it_is_silent_or_writes_json_lines_as_the_last_call_says(run_listening):
    silent = run_listening(f"{LOAD}\nassert 'structlog' not in sys.modules")
    first = "listen('json', level='error')"
    last = "listen('json', level='debug', stream=sys.stdout)"
    child = run_listening(f"{first}\n{last}{LOAD}\nassert 'structlog' not in sys.modules")
    events = events_in(child.stdout)

    assert silent.stdout == silent.stderr == child.stderr == ""
    assert {event["level"] for event in events} == {"debug", "info"}
    (processed,) = (e for e in events if e["event"] == "plugin.processed")
    assert list(processed)[:4] == ["timestamp", "level", "event", "logger"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", processed["timestamp"])
    assert (processed["level"], processed["logger"]) == ("info", "modular_tf.plugin")
    assert (processed["plugin"], processed["outcome"]) == ("ram_filesystem", "loaded")
    assert (processed["reason"], processed["rule"]) == (None, None)


def test_pretty_lines_hold_no_escape_sequence_of_a_plugin(run_listening):
    code = """
listen("pretty")
with service() as made:
    tell(made, "log", 1)
"""
    child = run_listening(code)
    (line,) = (line for line in child.stderr.splitlines() if "said" in line)

    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \[warning *\] plugin\.message ", line)
    assert r"message='said\x1b \udcff 1'" in line
    assert "plugin='talking'" in line
    assert "vlog" not in line
    assert "\x1b" not in child.stderr


def test_the_applications_own_logging_has_lines_and_values(run_listening):
    code = f"""
import logging
class Collect(logging.Handler):
    def emit(self, record):
        found.append(record.event)
found = []
logging.basicConfig(format="%(name)s|%(message)s")
logging.getLogger("modular_tf").addHandler(Collect())
listen("records"){LOAD}
(event,) = (event for event in found if event["event"] == "scheme.registered")
assert list(event) == ["event", "plugin", "path", "scheme"], event
assert (event["plugin"], event["scheme"]) == ("ram_filesystem", "ram")
"""
    lines = run_listening(code).stderr.splitlines()

    (line,) = (line for line in lines if "scheme.registered" in line)
    assert line.startswith("modular_tf.plugin|scheme.registered plugin=ram_filesystem path=/")
    assert line.endswith("libram_filesystem.so scheme=ram")
    assert any("outcome=loaded reason=None rule=None" in line for line in lines)


USUAL = {
    "printing": """
structlog.configure(
    [*shared, processors.JSONRenderer()],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    logger_factory=structlog.PrintLoggerFactory(),
)
""",
    "standard": """
logging.getLogger().addHandler(own)
structlog.configure(
    [stdlib.filter_by_level, stdlib.add_logger_name, *shared, processors.JSONRenderer()],
    wrapper_class=stdlib.BoundLogger,
    logger_factory=stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
""",
}


@pytest.mark.parametrize("kind", USUAL)
def test_each_usual_configuration_of_structlog_gets_the_events(run_listening, kind):
    """With the application's factory, wrapper class and context; the plugin is bound context."""
    code = f"""
import logging, structlog
from structlog import contextvars, processors, stdlib
contextvars.bind_contextvars(request=7)
shared = [contextvars.merge_contextvars, processors.add_log_level]
own = logging.StreamHandler(sys.stdout)
{USUAL[kind]}
listen("records"){LOAD}
"""
    child = run_listening(code)
    events = [json.loads(line) for line in child.stdout.splitlines()]
    (processed,) = (e for e in events if e["event"] == "plugin.processed")

    assert child.stderr == ""
    assert (processed["request"], processed["level"]) == (7, "info")
    assert (processed["plugin"], processed["outcome"]) == ("ram_filesystem", "loaded")
    assert processed["path"].endswith("libram_filesystem.so")
    assert processed.get("logger") == (None if kind == "printing" else "modular_tf.plugin")


def test_a_broken_processor_of_the_application_does_no_harm(run_listening):
    code = f"""
import logging, structlog
def broken(*arguments):
    raise RuntimeError("mine")
structlog.configure(processors=[broken])
logging.getLogger("modular_tf").setLevel("INFO"){LOAD}
"""
    assert "scheme.registered" in run_listening(code).stderr


@pytest.mark.parametrize(
    ("value", "levels"), [("json", {"info"}), ("json:debug", {"debug", "info"}), ("off", set())]
)
def test_the_environment(run_listening, value, levels):
    child = run_listening(LOAD, env={"MODULAR_TF_LOG": value})

    assert {event["level"] for event in events_in(child.stderr)} == levels


@pytest.mark.parametrize("value", ["json:loud", ":"])
def test_a_variable_that_cannot_be_understood_does_no_harm(run_listening, value):
    first, *_ = run_listening(LOAD, env={"MODULAR_TF_LOG": value}).stderr.splitlines()

    assert "environment.misread" in first
    assert f"variable='MODULAR_TF_LOG' value={value!r}" in first


@pytest.mark.parametrize("options", [{"output": "xml"}, {"level": "loud"}])
def test_what_nobody_knows_is_refused(options):
    (name, value), *_ = options.items()
    with pytest.raises(ValueError, match=f"{name}: expected one of .*, found '{value}'"):
        modular_tf.configure_logging(**options)


def test_a_record_of_somebody_else_is_its_message(run_listening):
    code = """
import logging
listen("json")
logging.getLogger("modular_tf.theirs").warning("said %d", 3)
"""
    (line,) = run_listening(code).stderr.splitlines()

    assert json.loads(line)["event"] == "said 3"
