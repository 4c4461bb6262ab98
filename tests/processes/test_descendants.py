"""What a process has started is found while parts of it come and go."""

import os
import subprocess

from modular_tf.processes import descendants


def test_an_orphan_is_found_whose_parent_ends_during_the_look(monkeypatch):
    """The look is at the parent when it ends: its child has left it and was not seen at home."""
    families = {1: [2], 2: [], 3: []}
    running = {2, 3}

    def children(pid):
        if pid == 2 and 2 in running:
            running.remove(2)
            families[1].append(3)
        return list(families[pid])

    monkeypatch.setattr(descendants, "children", children)
    monkeypatch.setattr(descendants, "runs", running.__contains__)

    assert 3 in descendants.living_descendants(1, 10)


def test_no_more_are_named_than_were_asked_for():
    sleepers = [subprocess.Popen(["sleep", "300"]) for _ in range(3)]
    try:
        assert len(descendants.living_descendants(os.getpid(), 1)) == 2
        found = descendants.living_descendants(os.getpid(), 1000)
        assert {sleeper.pid for sleeper in sleepers} <= set(found)
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
