"""What may lie in a folder of a store after operations of which some have failed."""

from itertools import count

_LENGTHS = (0, 1, 100, 5_000, 70_000, 300_000)
ABSENT = frozenset({None})


class WrongResultError(Exception):
    """An operation returned, as a success, what cannot be."""


class Shelf:
    """The possible contents of each file of one folder, which one thread uses.

    A file whose writing failed holds the old content or the new one; None stands for no file.
    """

    def __init__(self, folder):
        self.folder = folder
        self._files = {}
        self._versions = count(1)

    def path(self, name):
        return f"{self.folder}/{name}"

    def names(self):
        return list(self._files)

    def possible(self, name):
        """Return what a file may hold."""
        return self._files.get(name, ABSENT)

    def certain(self):
        """Yield the files that exist for certain, with a content that is known."""
        for name, possible in self._files.items():
            if len(possible) == 1 and None not in possible:
                (content,) = possible
                assert content is not None
                yield name, content

    def new_content(self, name, dice):
        """Return bytes that no other file and no other version has anywhere."""
        line = f"{self.folder}/{name} version {next(self._versions)}\n".encode()
        length = dice.choice(_LENGTHS)
        return (line * (length // len(line) + 1))[:length]

    def may_be(self, name, *contents):
        """Note that a file may hold one of these now, beside what it held."""
        self._files[name] = self.possible(name) | frozenset(contents)

    def is_now(self, name, content):
        """Note what a file holds for certain."""
        self._files[name] = frozenset({content})

    def check_content(self, name, found):
        """Compare what was read, None for "not found", with what may be there."""
        possible = self.possible(name)
        if found not in possible:
            expected = [None if one is None else (len(one), one[:60]) for one in possible]
            got = None if found is None else (len(found), found[:60])
            raise WrongResultError(f"{self.path(name)} gave {got}, but holds one of {expected}")
        self.is_now(name, found)

    def check_names(self, found):
        """Compare a listing with what may be there."""
        for name in found:
            if self.possible(name) == ABSENT:
                raise WrongResultError(f"{self.folder} lists {name}, which is not there")
        for name, possible in self._files.items():
            if name not in found and None not in possible:
                raise WrongResultError(f"{self.folder} does not list {name}, but {sorted(found)}")
