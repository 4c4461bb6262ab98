"""The host against a worker that answers at random; `scripts/fuzz_worker` sends more."""

from __future__ import annotations

import re

from tests.isolation.protocol_fuzzer import build, run

_MESSAGES = 1000
_REPLIES_FIT = 2142  # as mtf_error has LD-142


def test_the_host_believes_no_reply():
    done = run(build(), _MESSAGES, 1)
    assert done.returncode == 0, done.stderr[-5000:]
    assert int(done.stdout.split()[0]) >= _MESSAGES
    assert re.search(rf" {_REPLIES_FIT}: [1-9]\d\d", done.stdout), done.stdout
