"""Every check of the conformance kit in this one process: a program.

Arguments: a library, `filesystem` or `device`, and a scheme. Prints a line of JSON for each outcome
that is not a success. `tests/check` runs the kit as users do, in a process for each group.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

from modular_tf.check.catalogue import all_checks
from modular_tf.check.child import tried
from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.sequences import GROUP, session_of_group
from modular_tf.check.session import session_of
from modular_tf.check.target import Target

OPTIONS = Options(large_bytes=1 << 16, many=40, pressure_mib=32, programs=3, repeat=30)


def main(library, kind, scheme=None):
    where = {"scheme": scheme} if kind == "filesystem" else {"ordinal": 0}
    scratch = Path("scratch").absolute()
    scratch.mkdir()
    # Sequences have processes of their own, which must not begin with a driver that works already.
    for is_sequence, reached in product((True, False), (Pass.RAW, Pass.HOST)):
        target = Target(library, kind, reached, scratch=str(scratch), options=OPTIONS, **where)
        session = session_of_group(target, GROUP) if is_sequence else session_of(target)
        for check in all_checks().values():
            is_meant = check.kind == kind and (check.group == GROUP) == is_sequence
            if is_meant and reached in check.ways:
                outcome = tried(check, session, subject="", reached=reached)
                if outcome.verdict is not Verdict.PASSED:
                    line = check.id, reached.value, outcome.verdict.value, outcome.message
                    print(json.dumps(line), flush=True)
        session.close()
    print(json.dumps("done"))


main(*sys.argv[1:])
