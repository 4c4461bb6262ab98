"""What is known of a library from an earlier run, and a file that changes after that."""

from __future__ import annotations

import errno

import pytest

from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.errors import ResourceExhaustedError
from modular_tf.rules.shortage import raise_shortage
from modular_tf.service import plugins
from modular_tf.service.plugins import PluginScan
from modular_tf.service.report import State


def test_a_file_that_changes_after_it_was_recalled_is_refused(
    plugin_file, make_service, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = plugin_file("liba.so")
    make_service(path).discover()
    judge, probed = TrustJudge.judge, []

    def judge_what_was_changed(self, candidate, seen=None):
        path.write_bytes(path.read_bytes() + b"changed")
        return judge(self, candidate, seen)

    monkeypatch.setattr(TrustJudge, "judge", judge_what_was_changed)
    monkeypatch.setattr(PluginScan, "_probed", lambda _, *given: probed.append(given))
    service = make_service(path)
    service.discover()
    (record,) = service.plugins()

    assert probed == []
    assert (record.state, record.reasons[0].rule_id) == (State.REJECTED, "LD-082")


def test_a_second_search_looks_again_at_what_a_shortage_hid(plugin_file, make_service, monkeypatch):
    def fail(_path):
        raise_shortage(OSError(errno.EMFILE, "too many"))

    service = make_service(plugin_file("liba.so"))
    with monkeypatch.context() as patch:
        patch.setattr(plugins, "see_library", fail)
        with pytest.raises(ResourceExhaustedError, match="LD-113"):
            service.discover()
    assert service.plugins() == []

    service.discover()
    assert [(plugin.state, plugin.reasons) for plugin in service.plugins()] == [(State.FOUND, ())]
