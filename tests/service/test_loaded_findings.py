"""What loading a library finds: its own offer and its own faults, and nothing of others."""

from __future__ import annotations

from modular_tf.service.configuration import Config

UNTRIED = Config(first_contact="never", load="eager")


def findings(service):
    service.load()
    return {record.name: service.entry(record.name).plugin.outcome for record in service.plugins()}


def test_a_scheme_whose_init_fails_is_no_offer(make_service, fixture_plugin):
    (outcome,) = findings(make_service(fixture_plugin("init-fails"), config=UNTRIED)).values()

    assert [reason.rule_id for reason in outcome.reasons] == ["FS-019"]
    assert outcome.finding.offer.schemes == ()
    assert [note.rule_id for note in outcome.finding.notes] == ["FS-019"]


def test_that_another_has_the_scheme_is_no_fault_of_the_library(make_service, plugin_file):
    paths = plugin_file("a/libfirst.so"), plugin_file("b/libsecond.so")
    found = findings(make_service(*paths, config=UNTRIED))

    assert [reason.rule_id for reason in found["second"].reasons] == ["FS-018"]
    for outcome in found.values():
        assert outcome.finding.offer.schemes == ("fixture",)
        assert outcome.finding.notes == ()
