"""A search path is led away from the current directory in place."""

import random

from modular_tf.discovery.linking.system_libraries import is_relative
from modular_tf.loading.private_copy import without_relative


def test_no_directory_is_relative_afterwards():
    dice = random.Random(1)
    pieces = [":", ":", "/", "a", ".", "..", "$ORIGIN", "${ORIGIN}", "$LIB", "$", "é", "\udcff"]
    for _ in range(2000):
        text = "".join(dice.choices(pieces, k=dice.randint(1, 8)))
        given = text.encode("utf-8", "surrogateescape")

        found = without_relative(given)

        assert len(found) == len(given)
        directories = found.decode("latin-1").split(":")
        assert not any(map(is_relative, directories)), (given, found)
        left = [part for part in text.split(":") if not is_relative(part)]
        assert all(part.encode("utf-8", "surrogateescape") in found for part in left)
