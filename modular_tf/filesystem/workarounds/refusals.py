"""What a store's refusal means, for people: who was refused what, by which variables, and why."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError, PermissionDeniedError, UnauthenticatedError
from modular_tf.filesystem.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.filesystem.workarounds.endpoint_check import EndpointCheck
    from modular_tf.loading.workarounds import Workarounds


class Refusals:
    """Explains errors of a plugin that a store's refusal caused [any thread]

    No value of a variable is told but the server's address.

    Args:
        workarounds: What the store's answers mean, and which variables the plugin reads.
        endpoint: Knows the server.
        environment: The variables that the plugin sees.
    """

    def __init__(
        self,
        workarounds: Workarounds,
        endpoint: EndpointCheck,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._environment = environment
        self._remedies = {re.compile(key): text for key, text in workarounds.remedies.items()}
        self._variables = workarounds.credential_variables
        self._other_credentials = workarounds.other_credentials
        self._endpoint = endpoint

    def explained(self, error: ModularTFError, operation: str, uri: str) -> ModularTFError:
        """Return the error with an explanation, or the error itself where there is none."""
        reasons = [text for key, text in self._remedies.items() if key.search(error.message)]
        is_refusal = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
        credentials = [self._credentials()] if is_refusal and self._variables else []
        if not (reasons or credentials):
            return error
        did = "refused" if is_refusal else "answered"
        told = f"{self._endpoint.server_of(uri)} {did} {operation} in {_bucket_of(uri)!r} so"
        explanation = [told, *reasons, *credentials]
        return type(error)(
            f"{error.message}: {'; '.join(explanation)}",
            code=error.code,
            plugin=error.plugin,
            path=uri,
            operation=operation,
        )

    def _credentials(self) -> str:
        if used := [name for name in self._variables if self._environment.get(name)]:
            return f"the request was signed by {' and '.join(used)}"
        return f"{' and '.join(self._variables)} not set: {self._other_credentials}"


def _bucket_of(uri: str) -> str:
    """Return the host of a URI, without parameters, which control characters set apart."""
    return re.split(r"[\x00-\x1f]", parse_uri(uri).host, maxsplit=1)[0]
