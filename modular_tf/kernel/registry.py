"""The registry of kernels and of definitions of operations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ClosedError, InvalidArgumentError, NotFoundError
from modular_tf.events import EventLog
from modular_tf.kernel.op_grammar import read_op_definition
from modular_tf.kernel.registration import KernelRegistration, dt_name
from modular_tf.kernel.standard_ops import standard_ops
from modular_tf.rules import Violation
from modular_tf.rules.kernel import (
    CONSTRAINED_ATTRIBUTE_EXISTS,
    CONSTRAINT_TYPE_ALLOWED,
    CONSTRAINTS_AGREE,
    DEFINITION_UNIQUE,
    DEFINITION_WELL_FORMED,
    HOST_ARGUMENT_EXISTS,
    KERNEL_UNIQUE,
    OPERATION_DEFINED,
    OPERATION_KNOWN,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition
    from modular_tf.kernel.standard_ops import StandardOps
    from modular_tf.loading.kernel_loader import KernelOffer

    Definitions = Mapping[str, OpDefinition] | StandardOps
    Lookup = Callable[[str], OpDefinition | None]

__all__ = [
    "KernelRegistry",
    "PluginKernels",
    "compare",
    "definition_conflicts",
    "impossible_kernels",
    "plugin_kernels",
]

_log = EventLog("kernel.registry")


@dataclass(eq=False)
class PluginKernels:
    """What one plugin brings: all of it serves, or nothing."""

    plugin: str
    kernels: tuple[KernelRegistration, ...] = ()  # in the plugin's order
    definitions: tuple[OpDefinition, ...] = ()  # of its own operations
    violations: tuple[Violation, ...] = ()  # definitions that are left out (rule KN-022)
    is_over: bool = False  # it was taken out, and cannot be entered again; set by its registry


def plugin_kernels(offer: KernelOffer, plugin: str) -> PluginKernels | None:
    """Return the kernels and definitions that a plugin's library registered; None for nothing."""
    if not offer.kernels and not offer.op_definitions:
        return None
    kernels = tuple(KernelRegistration(plugin=plugin, **one._asdict()) for one in offer.kernels)
    definitions, violations = [], []
    for record in offer.op_definitions:
        try:
            definitions.append(read_op_definition(record, plugin))
        except InvalidArgumentError as error:
            violations.append(Violation(DEFINITION_WELL_FORMED, error.message))
    return PluginKernels(plugin, kernels, tuple(definitions), tuple(violations))


@dataclass(frozen=True, eq=False)
class _Tables:
    """What is registered at one moment; never changed."""

    plugins: tuple[PluginKernels, ...] = ()
    kernels: Mapping[str, tuple[KernelRegistration, ...]] = field(default_factory=dict)
    definitions: Mapping[str, OpDefinition] = field(default_factory=dict)

    @classmethod
    def of(cls, plugins: tuple[PluginKernels, ...]) -> _Tables:
        """Return the tables of plugins in their order; the first definition of a name counts."""
        kernels: dict[str, list[KernelRegistration]] = {}
        definitions: dict[str, OpDefinition] = {}
        for each in plugins:
            for registration in each.kernels:
                kernels.setdefault(registration.op, []).append(registration)
            for definition in each.definitions:
                definitions.setdefault(definition.name, definition)
        return cls(plugins, {op: tuple(of_op) for op, of_op in kernels.items()}, definitions)


class KernelRegistry:
    """Kernels by operation, and definitions by name. [any thread]

    A signal handler may use it in the middle of its methods. What they change is therefore computed
    first and put in place by stores without a call between them. Readers take no lock: what they
    get is of one moment.

    TensorFlow's definition of an operation comes before a plugin's of the same name, and that of
    the plugin which was registered first before all others.
    """

    def __init__(self, standard: Callable[[], Definitions] = standard_ops) -> None:
        """Create an empty registry.

        `standard` returns TensorFlow's definitions by name, quickly from the second time on. It is
        called when the first definition is looked up.
        """
        self._standard = standard
        self._tables = _Tables()
        self._lock = ForkLock()
        self._closed = False

    @property
    def moment(self) -> object:
        """A token that is another object after each change: older look-ups are out of date."""
        return self._tables

    def enter(
        self, entering: PluginKernels, *, instead_of: PluginKernels | None = None
    ) -> tuple[Violation, ...]:
        """Let a plugin's kernels serve from now on, all in one step; a second call changes nothing.

        They take the position of `instead_of` in the same step, where that is in force. Returns
        what is wrong with single kernels and definitions. These are listed all the same; those that
        nothing can select harm nobody. Raises ClosedError if they were taken out before, or the
        registry is closed.
        """
        with self._lock:
            while True:
                before = self._tables
                self._check_open(entering)
                others = tuple(
                    each for each in before.plugins if each not in (entering, instead_of)
                )
                after = _Tables.of(_with(before.plugins, entering, instead_of))
                if self._tables is before:
                    self._tables = after
                    break
        _log.info("kernels.registered", plugin=entering.plugin, kernels=len(entering.kernels))
        return self._violations(entering, _Tables.of(others))

    def judge(
        self, entering: PluginKernels, *, instead_of: PluginKernels | None = None
    ) -> tuple[Violation, ...]:
        """Return what `enter` would now; nothing serves from it."""
        plugins = self._tables.plugins
        others = tuple(each for each in plugins if each not in (entering, instead_of))
        return self._violations(entering, _Tables.of(others))

    def leave(self, leaving: PluginKernels) -> None:
        """Take out what a plugin brought, all in one step; safe to call twice."""
        with self._lock:
            leaving.is_over = True
            while True:
                before = self._tables
                after = _Tables.of(tuple(each for each in before.plugins if each is not leaving))
                if self._tables is before:
                    self._tables = after
                    break

    def close(self) -> None:
        """Take out everything, and refuse what comes later."""
        with self._lock:
            self._closed = True
            self._tables = _Tables()

    def _check_open(self, entering: PluginKernels) -> None:
        if self._closed or entering.is_over:
            who = "the plugin service" if self._closed else f"plugin {entering.plugin}"
            raise ClosedError(f"{who} is closed", plugin=entering.plugin)

    def _violations(self, entering: PluginKernels, others: _Tables) -> tuple[Violation, ...]:
        """Return what is wrong with what a plugin brings, beside what others have brought."""
        own = {each.name: each for each in reversed(entering.definitions)}  # the first one counts

        def definition_of(op: str) -> OpDefinition | None:
            return self._standard().get(op) or others.definitions.get(op) or own.get(op)

        ops = dict.fromkeys(each.op for each in entering.kernels)
        known = chain.from_iterable(others.kernels.get(op, ()) for op in ops)
        return (
            *entering.violations,
            *definition_conflicts(entering.definitions, definition_of),
            *impossible_kernels(entering.kernels, definition_of, tuple(known)),
        )

    # -- looking up -------------------------------------------------------------------------------

    def kernels_of(self, op: str) -> tuple[KernelRegistration, ...]:
        """Return the kernels of an operation, in order of registration.

        Raises ClosedError if the registry is closed.
        """
        found = self._tables.kernels.get(op, ())
        if not found and self._closed:
            raise ClosedError("the plugin service is closed", operation=op)
        return found

    def kernels(
        self, op: str | None = None, device_type: str | None = None, plugin: str | None = None
    ) -> tuple[KernelRegistration, ...]:
        """Return the kernels that fit what is given, in order of registration."""
        return tuple(
            kernel
            for each in self._tables.plugins
            if plugin in (None, each.plugin)
            for kernel in each.kernels
            if op in (None, kernel.op) and device_type in (None, kernel.device_type)
        )

    def find_definition(self, name: str) -> OpDefinition | None:
        """Return the definition of an operation, None where nobody defines it."""
        return self._standard().get(name) or self._tables.definitions.get(name)

    def definition(self, name: str) -> OpDefinition:
        """Return the definition of an operation.

        Raises NotFoundError if nobody defines it (rule KN-040), which names similar ones.
        """
        found = self.find_definition(name)
        if found is None:
            raise self._unknown(name)
        return found

    def op_names(self) -> tuple[str, ...]:
        """Return the names of all defined operations, in alphabetical order."""
        return tuple(sorted({*self._standard(), *self._tables.definitions}))

    def plugin_definitions(self, plugin: str | None = None) -> tuple[OpDefinition, ...]:
        """Return the definitions that plugins, or one of them, bring, used or not."""
        own = (each for each in self._tables.plugins if plugin in (None, each.plugin))
        return tuple(definition for each in own for definition in each.definitions)

    def _unknown(self, name: str) -> NotFoundError:
        similar = get_close_matches(name, self.op_names(), 3)
        meant = f"; similar ones: {', '.join(similar)}" if similar else ""
        kernels = self.kernels_of(name)
        by = f"; there are kernels of it, such as {kernels[0].who}" if kernels else ""
        return Violation(OPERATION_KNOWN, f"no operation {name!r} is defined{by}{meant}").error(
            NotFoundError, operation=name, hint=f". {OPERATION_KNOWN.remedy}"
        )


def _with(
    before: tuple[PluginKernels, ...], entering: PluginKernels, instead_of: PluginKernels | None
) -> tuple[PluginKernels, ...]:
    if entering in before:
        return before
    if instead_of in before:
        return tuple(entering if each is instead_of else each for each in before)
    return (*before, entering)


# -- faults of a plugin's kernels and definitions: duplicates, conflicts, kernels nothing selects --


_MOST_NAMED = 8  # operations in one message
_FLAGS = {
    "is_stateful": "stateful",
    "is_commutative": "commutative",
    "is_aggregate": "an aggregate",
    "allows_uninitialized_input": "allowed uninitialized inputs",
}


def definition_conflicts(
    definitions: Iterable[OpDefinition], definition_of: Lookup
) -> list[Violation]:
    """Return which definitions differ from those that count for their names (rule KN-023)."""
    found = []
    for each in definitions:
        known = definition_of(each.name)
        if known is not None and (differences := compare(each, known)):
            source = known.source or "another plugin"
            text = f"definition of {each.name}: expected that of {source}, found that "
            found.append(Violation(DEFINITION_UNIQUE, text + "; ".join(differences)))
    return found


def impossible_kernels(
    kernels: Iterable[KernelRegistration],
    definition_of: Lookup,
    others: Iterable[KernelRegistration] = (),
) -> list[Violation]:
    """Return what is wrong with a plugin's kernels: of each rule that they break, one finding.

    `others` are kernels of other plugins for the same operations.
    """
    kernels = tuple(kernels)
    by_rule: dict[str, dict[str, list[Violation]]] = {}
    own = ((each, fault) for each in kernels for fault in _faults(each, definition_of(each.op)))
    for kernel, fault in chain(own, _duplicates(kernels, others)):
        by_rule.setdefault(fault.rule_id, {}).setdefault(kernel.op, []).append(fault)
    return [_summary(of_ops) for of_ops in by_rule.values()]


def _summary(of_ops: Mapping[str, list[Violation]]) -> Violation:
    """Return the first fault of a rule, with the other operations whose kernels have it too."""
    (op, (first, *_)), *_ = of_ops.items()
    others = [name for name in of_ops if name != op]
    if not others:
        return first
    named = ", ".join(others[:_MOST_NAMED]) + (", ..." if len(others) > _MOST_NAMED else "")
    more = f"{len(others)} more operation{'s' * (len(others) > 1)} ({named})"
    return replace(first, message=f"{first.message}; likewise kernels of {more}")


def _faults(kernel: KernelRegistration, definition: OpDefinition | None) -> Iterator[Violation]:
    yield from _contradictions(kernel)
    if definition is None:
        text = f"kernel for unknown op {kernel.op}: expected a definition, found none"
        yield Violation(OPERATION_DEFINED, text)
        return
    for name, kind in kernel.constraint_pairs:
        attr = definition.attrs_by_name.get(name)
        if attr is None or attr.kind != "type":
            kinds = "no such attribute" if attr is None else f"one of kind {attr.type_text}"
            text = f"{_title(kernel)}: expected a type attribute {name!r} to constrain, found"
            yield Violation(CONSTRAINED_ATTRIBUTE_EXISTS, f"{text} {kinds}")
        elif attr.allowed is not None and kind not in attr.allowed:
            text = f"expected {name} to be constrained to {attr.type_text}, found {dt_name(kind)}"
            yield Violation(CONSTRAINT_TYPE_ALLOWED, f"{_title(kernel)}: {text}")
    args = [each.name for each in (*definition.inputs, *definition.outputs)]
    for name in kernel.host_args:
        if name not in args:
            text = f"expected host argument {name!r} to be one of {', '.join(args)}"
            yield Violation(HOST_ARGUMENT_EXISTS, f"{_title(kernel)}: {text}")


def _contradictions(kernel: KernelRegistration) -> Iterator[Violation]:
    kinds = dict(kernel.constraint_pairs)
    for name, kind in kernel.constraint_pairs:
        if kinds[name] is not kind:
            both = f"both {dt_name(kind)} and {dt_name(kinds[name])}"
            text = f"{_title(kernel)}: expected one type for {name!r}, found {both}"
            yield Violation(CONSTRAINTS_AGREE, text)


def _duplicates(
    kernels: Iterable[KernelRegistration], others: Iterable[KernelRegistration]
) -> Iterator[tuple[KernelRegistration, Violation]]:
    known = {_identity(each): each for each in others}
    for kernel in kernels:
        same = known.setdefault(_identity(kernel), kernel)
        if same is not kernel:
            text = f"{_title(kernel)}: expected one kernel of priority {kernel.priority} for these"
            yield kernel, Violation(KERNEL_UNIQUE, f"{text}, found {kernel.who} and {same.who}")


def _identity(kernel: KernelRegistration) -> Hashable:
    return kernel.key, frozenset(kernel.constraint_pairs), kernel.priority


def _title(kernel: KernelRegistration) -> str:
    return f"kernel of {kernel.op} ({kernel.where})"


# -- definitions of one operation ------------------------------------------------------------------


def compare(definition: OpDefinition, other: OpDefinition) -> list[str]:
    """Return the differences of two definitions in words, none if they are identical.

    The order of attributes and of allowed values means nothing, nor does deprecation, which
    releases add. The words are about `definition`; of `other` the source is named.
    """
    if definition == other:
        return []
    return [
        *_arg_differences("input", definition.inputs, other.inputs, other.source),
        *_arg_differences("output", definition.outputs, other.outputs, other.source),
        *_attr_differences(definition, other),
        *_flag_differences(definition, other),
    ]


def _arg_differences(
    kind: str, args: tuple[ArgDefinition, ...], others: tuple[ArgDefinition, ...], source: str
) -> Iterator[str]:
    for index, (arg, other) in enumerate(zip_longest(args, others)):
        if arg != other:
            yield _difference(f"{kind} {index}", _text(arg), _text(other), source)


def _attr_differences(definition: OpDefinition, other: OpDefinition) -> Iterator[str]:
    mine, theirs = definition.attrs_by_name, other.attrs_by_name
    for name in dict.fromkeys((*mine, *theirs)):
        attr, reference = mine.get(name), theirs.get(name)
        if _unordered(attr) != _unordered(reference):
            yield _difference(
                f"attribute {name}", _attr_text(attr), _attr_text(reference), other.source
            )


def _flag_differences(definition: OpDefinition, other: OpDefinition) -> Iterator[str]:
    for name, text in _FLAGS.items():
        if getattr(definition, name) != getattr(other, name):
            first, second = text, f"not {text}"
            if not getattr(definition, name):
                first, second = second, first
            yield _difference("the operation", first, second, other.source)


def _difference(subject: str, mine: str, theirs: str, source: str) -> str:
    return f"{subject} is {mine}; for {source or 'the other definition'} it is {theirs}"


def _text(arg: ArgDefinition | None) -> str:
    return "absent" if arg is None else repr(arg)


def _attr_text(attr: AttrDefinition | None) -> str:
    return "absent" if attr is None else repr(attr).partition(": ")[2]


def _unordered(attr: AttrDefinition | None) -> AttrDefinition | None:
    """Return the attribute with its allowed values in a fixed order."""
    if attr is None or attr.allowed is None:
        return attr
    return replace(attr, allowed=tuple(sorted(attr.allowed, key=str)))
