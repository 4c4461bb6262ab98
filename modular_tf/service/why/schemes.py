"""Facts about a scheme: its plugin, competing plugins, and what decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.service.report import PYTHON_SOURCE, State
from modular_tf.service.why.answer import STATE, Fact
from modular_tf.service.why.conflicts import refused_scheme
from modular_tf.service.why.plugins import outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.service import PluginService


def about_scheme(service: PluginService, scheme: str) -> Iterator[Fact]:
    """Yield facts about a scheme ("" for local paths); none if no plugin knows it.

    It is known as soon as a plugin brought it, whether that serves it or not.
    """
    subject = f"scheme {scheme!r}"
    owner = service.owner(scheme)
    contest = list(refused_scheme(service, scheme, owner))
    pinned = service.config.scheme_pins.get(scheme)
    if owner is not None:
        is_fallback = service.is_fallback(scheme)
        served = f"{subject} is served by {owner}"
        yield Fact(subject, STATE, service.fallback_sentence(scheme) if is_fallback else served)
        yield from (outcome(subject, "serves", r) for r in service.plugins() if r.name == owner)
        problem, remedy = service.foreseen_problem(scheme)
        if problem:
            yield Fact(subject, "problem", problem, None, remedy)
    elif contest:
        yield Fact(subject, STATE, f"{subject} is not served, though a plugin offers it")
        if step := service.next_step(scheme):
            yield Fact(subject, "next", step)
    for record, reason in contest:
        yield Fact.of(subject, reason, "contest", prefix=record.name)
    if pinned is not None:
        yield _pin(service, subject, pinned, owner)
    elif owner is not None and contest:
        yield Fact(subject, "next", f"to choose another: scheme_pins = {{ {scheme!r} = NAME }}")


def _pin(service: PluginService, subject: str, pinned: str, owner: str | None) -> Fact:
    where = f"pinned to {pinned!r} in {service.config.origin}"
    if owner == pinned:
        return Fact(subject, "contest", where)
    states = {record.name: record for record in service.plugins()}
    if pinned not in states:
        return Fact(
            subject, "contest", f"{where}, and there is no plugin of that name", None,
            "Name a plugin as `modular-tf list` does, or take the pin away.",
        )  # fmt: skip
    record = states[pinned]
    if record.source == PYTHON_SOURCE or record.state is State.LOADED:
        return Fact(subject, "contest", f"{where}, which does not offer it")
    return Fact(subject, "contest", f"{where}, which is {record.state}")
