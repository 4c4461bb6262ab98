"""Events reach the application's handlers; without `logging` there is nobody to reach."""

from __future__ import annotations

MAKE = """
import sys
from modular_tf.events import EventLog
log = EventLog("some.part").bind(plugin="p")
log.warning("before", key=1)
assert "logging" not in sys.modules
"""
COLLECT = """
import logging
class Collect(logging.Handler):
    def emit(self, record):
        print(record.name, record.levelname, record.getMessage())
"""


def test_events_reach_handlers_that_are_added_later_and_nobody_before(run_python):
    result = run_python(f"""{MAKE}{COLLECT}
log.warning("without a handler")
logging.getLogger("modular_tf").addHandler(Collect())
log.warning("after", key=2)
log.info("not wanted")
logging.getLogger("modular_tf.some").setLevel("INFO")
log.info("wanted")

import itertools
names = ["", "modular_tf", "modular_tf.some", "modular_tf.some.part"]
levels = [logging.DEBUG, logging.INFO, logging.WARNING, logging.CRITICAL]
for name, level, disabled, up_to in itertools.product(
    names, [0, *levels], [False, True], [logging.NOTSET, logging.INFO]
):
    logging.getLogger(name).setLevel(level)
    logging.getLogger("modular_tf.some.part").disabled = disabled
    logging.disable(up_to)
    for asked in levels:
        expected = logging.getLogger("modular_tf.some.part").isEnabledFor(asked)
        assert log.is_enabled_for(asked) is expected, (name, level, disabled, up_to, asked)
""")

    assert result.stdout.splitlines() == [
        "modular_tf.some.part WARNING after plugin=p key=2",
        "modular_tf.some.part INFO wanted plugin=p",
    ]
    assert result.stderr == ""


def test_a_command_without_a_log_hides_events_from_handlers_of_hooks(run_python):
    result = run_python(f"""{MAKE}
from modular_tf.cli.frame import set_up_log
set_up_log(None, 0)
assert "logging" not in sys.modules
{COLLECT}
logging.getLogger().addHandler(Collect())
log.warning("hidden")
logging.getLogger("modular_tf").setLevel("INFO")
log.warning("shown")
""")

    assert result.stdout == "modular_tf.some.part WARNING shown plugin=p\n"
