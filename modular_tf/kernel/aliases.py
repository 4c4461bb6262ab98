"""Operations of plugins that compute standard ones under names of their own.

The rows of `aliases.toml` say which; the code that reads them names no vendor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.node import convert_value, freeze
from modular_tf.rules import Violation
from modular_tf.rules.kernel import ATTRIBUTES_FIT
from modular_tf.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.errors import ModularTFError
    from modular_tf.kernel.op_definition import OpDefinition

__all__ = ["Alias", "alias_attrs", "aliases_of", "computed_by", "name_both", "package_for"]


@dataclass(frozen=True)
class Alias:
    """One operation of a plugin that computes a standard one."""

    op: str  # the standard operation
    own: str  # the plugin's, with the same inputs and outputs in the same order
    attrs: Mapping[str, Any]  # values of attributes that only the plugin's may have
    package: str = ""  # brings kernels of it, for devices of a type
    device_type: str = ""


def aliases_of(op: str) -> tuple[Alias, ...]:
    """Return the operations that compute a standard one, in the order of the table."""
    return _aliases().get(op, ())


def package_for(op: str, device_type: str) -> str:
    """Return a package that brings kernels of an operation for a type of devices; "" for none."""
    found = (each.package for each in aliases_of(op) if each.device_type == device_type)
    return next(found, "")


def computed_by(own: str) -> tuple[str, ...]:
    """Return the standard operations that an operation of a plugin computes."""
    return tuple(op for op, found in _aliases().items() if own in [each.own for each in found])


def name_both(error: ModularTFError, op: str) -> None:
    """Make an error of a plugin's operation name the standard one too, `op`, which was called."""
    if error.operation in [each.own for each in aliases_of(op)]:
        error.message = f"{op}, computed by {error.message}"
        error.operation = op
        if isinstance(error, OSError):
            error.strerror = error.message


@cache
def _aliases() -> dict[str, tuple[Alias, ...]]:
    table: dict[str, tuple[Alias, ...]] = {}
    for family in read_table("kernel/aliases.toml")["family"]:
        attrs = family.get("attrs", {})
        for op in family["ops"]:
            source = family.get("package", ""), family.get("device_type", "")
            alias = Alias(op, family["own"].format(op=op), attrs, *source)
            table[op] = (*table.get(op, ()), alias)
    return table


def alias_attrs(
    alias: Alias, standard: OpDefinition, own: OpDefinition, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the attributes of the plugin's operation for those of a call of the standard one.

    Raises InvalidArgumentError for an attribute that the plugin's operation does not have and that
    is given with another value than the standard default (rule KN-041).
    """
    known = own.attrs_by_name
    attrs = {name: value for name, value in alias.attrs.items() if name in known}
    attrs |= dict(_defaults(standard, own))
    for name, value in given.items():
        if name in known or name not in standard.attrs_by_name:
            attrs[name] = value
        elif not _is_default(standard, name, value):
            text = f"{alias.op}: attribute {name!r} is {value!r}, but {alias.own}, which serves it"
            raise Violation(ATTRIBUTES_FIT, f"{text} here, has no such attribute").error(
                InvalidArgumentError, operation=alias.op, hint=". Leave the attribute out."
            )
    return attrs


def _defaults(standard: OpDefinition, own: OpDefinition) -> Iterator[tuple[str, Any]]:
    """Yield the standard defaults of attributes that both have: the plugin's own may differ."""
    for attr in standard.attrs:
        counterpart = own.attrs_by_name.get(attr.name)
        if counterpart is not None and attr.has_default:
            yield attr.name, attr.default


def _is_default(standard: OpDefinition, name: str, value: Any) -> bool:
    attr = standard.attrs_by_name[name]
    converted = convert_value(standard.name, attr, value)
    return attr.has_default and freeze(converted) == freeze(attr.default)
