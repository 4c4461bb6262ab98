"""Finding plugins and judging them by their bytes; nothing of theirs is run here."""

from __future__ import annotations

from modular_tf.discovery.candidate import Candidate, Source, Twin
from modular_tf.discovery.elf_facts import ElfFacts
from modular_tf.discovery.host_offer import STAND_IN_SONAMES, HostOffer, host_offer
from modular_tf.discovery.kinds import SERVED_KINDS, Kind
from modular_tf.discovery.link_check import MissingSymbol, ResolvedLibrary
from modular_tf.discovery.probe import Probe, Prober, probe
from modular_tf.discovery.problem import Problem
from modular_tf.discovery.search import Discovery, discover
from modular_tf.discovery.search_log import SearchedPlace
from modular_tf.discovery.search_paths import SearchPaths
from modular_tf.discovery.symbol_families import SymbolFamily

__all__ = [
    "SERVED_KINDS",
    "STAND_IN_SONAMES",
    "Candidate",
    "Discovery",
    "ElfFacts",
    "HostOffer",
    "Kind",
    "MissingSymbol",
    "Probe",
    "Prober",
    "Problem",
    "ResolvedLibrary",
    "SearchPaths",
    "SearchedPlace",
    "Source",
    "SymbolFamily",
    "Twin",
    "discover",
    "host_offer",
    "probe",
]
