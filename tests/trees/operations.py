"""Operations on trees chosen at random, each held to a model: paths, and what lies there.

Every file has other content. Whatever a face does, and whatever it reports:
- content is lost only where the operation removes it, or replaces it by a whole file of its source;
- nothing appears or changes outside of its target;
- if it reports no failure, all of the source has arrived, and what is moved or removed is gone.
"""

from __future__ import annotations

import itertools
import posixpath
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.trees.stores import LINK
from tests.trees.verbs import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.trees.faces import Ended
    from tests.trees.stores import Contents, Stores, TreeStore

EPISODE = 12  # operations on one tree
NAMES = ("a", "b", "two", "d", "e", "new\nline", "ü %20#", " b ", "-x", "t'\"&")
KEYS = ("s//b", "a//x", "d//z", "two/../y")  # names of objects to which no path leads

# What a way does, and with how much: a file, or a tree.
KINDS = {
    "cli cp": ("copy", "file"), "gfile copy": ("copy", "file"),
    "fsspec cp_file": ("copy", "file"), "fsspec copy": ("copy", "file"),
    "Filesystem.copy_file": ("copy", "file"), "fsspec get": ("copy", "file"),
    "fsspec put": ("copy", "file"), "fsspec get_file": ("copy", "file"),
    "fsspec put_file": ("copy", "file"), "cli cp -r -n": ("copy", "tree"),
    "cli sync --delete -n": ("mirror", "tree"),
    "cli cp -r": ("copy", "tree"), "fsspec copy recursive": ("copy", "tree"),
    "fsspec get recursive": ("copy", "tree"), "fsspec put recursive": ("copy", "tree"),
    "cli sync": ("sync", "tree"), "cli sync --delete": ("mirror", "tree"),
    "cli mv": ("move", "tree"), "cli mv filtered": ("move", "tree"),
    "fsspec mv": ("move", "tree"), "gfile rename": ("move", "tree"),
    "Filesystem.rename_file": ("move", "tree"), "fsspec mv list": ("move", "file"),
    "cli rm": ("remove", "file"), "fsspec rm": ("remove", "file"),
    "gfile remove": ("remove", "file"), "Filesystem.delete_file": ("remove", "file"),
    "cli rm -r": ("remove", "tree"), "cli rm filtered": ("remove", "tree"),
    "fsspec rm recursive": ("remove", "tree"), "gfile rmtree": ("remove", "tree"),
    "Filesystem.delete_recursively": ("remove", "tree"),
    "fsspec mv tree list": ("move", "tree"), "fsspec rm maxdepth": ("remove", "tree"),
}  # fmt: skip
BETWEEN = ("cli cp", "cli cp -r", "cli sync", "cli sync --delete", "cli mv", "cli mv filtered",
    "gfile copy", "gfile rename")  # fmt: skip
_NOT_AT_RANDOM = (" get", " put", " tree list", " maxdepth", " -n")
WITHIN = tuple(way for way in KINDS if not any(word in way for word in _NOT_AT_RANDOM))

World = tuple[dict[str, str], dict[str, str]]  # contents of the store, and of the disk


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes:
        way: A name of `verbs.WAYS`.
        source: Place (0 is the store, 1 the disk) and path of what it is about.
        target: Of where that goes; None where it goes nowhere.
    """

    way: str
    source: tuple[int, str]
    target: tuple[int, str] | None = None


@dataclass(frozen=True)
class Fault:
    """A step that did not do what it should.

    Attributes:
        reason: What is wrong.
        before: What there was.
        step: What was done.
        ended: How that ended.
        after: What there was then.
    """

    reason: str
    before: World
    step: Step
    ended: Ended
    after: World

    def __str__(self) -> str:
        places = ["store", "disk"]
        lines = [self.reason, f"  {self.step}", f"  ended: ok={self.ended.ok} {self.ended.said}"]
        for when, world in (("before", self.before), ("after", self.after)):
            lines += [
                f"  {when}, {name}: {there!r}" for name, there in zip(places, world, strict=True)
            ]
        return "\n".join(lines)


class Trees:
    """Two places with trees: a store, and a directory of the disk in the same process."""

    def __init__(self, stores: Stores, name: str) -> None:
        store = stores.make(name)
        self.places: tuple[TreeStore, TreeStore] = (store, stores.beside(store))

    def world(self) -> World:
        """Return what there is."""
        return self.places[0].contents(), self.places[1].contents()

    def fill(self, world: World) -> None:
        """Put files and links, and nothing else."""
        for place, contents in zip(self.places, world, strict=True):
            place.fill({path: data for path, data in contents.items() if path[-1:] != "/"})

    def do(self, step: Step) -> Ended:
        """Do a step."""
        uris = [
            self.places[place].uri(path) for place, path in filter(None, (step.source, step.target))
        ]
        owner = step.source[0]
        if step.target is not None and "fsspec" in step.way:
            owner = min(owner, step.target[0])  # get and put are of the store
        return run(step.way, self.places[owner], *uris)

    def check(self, before: World, step: Step) -> tuple[World, Fault | None, Ended]:
        """Do a step; return what there is then, what is wrong with that, and how it ended."""
        ended = self.do(step)
        after = self.world()
        reason = next(_wrong(before, step, ended.ok, after), "")
        return after, Fault(reason, before, step, ended, after) if reason else None, ended


# ---- the model ----


def _inside(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")


def _resolved(contents: Contents, path: str, *, last: bool = True) -> str:
    """Return where a path leads to by links; the path, if that is nowhere."""
    found, parts, budget = "", path.split("/"), 40
    while parts and budget:
        part = parts.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            found = posixpath.dirname(found)
            continue
        one = f"{found}/{part}" if found else part
        link = contents.get(one, "")
        if link.startswith(LINK) and (last or parts):
            parts, budget = [*link.removeprefix(LINK).split("/"), *parts], budget - 1
        else:
            found = one
    return found if budget else path


def _scope(contents: Contents, path: str, *, last: bool) -> str:
    return (
        _resolved(contents, path, last=last)
        if any(data.startswith(LINK) for data in contents.values())
        else posixpath.normpath(path).replace("//", "/")
        if path
        else ""
    )


def _files(contents: Contents, top: str) -> dict[str, str]:
    """Return files and links at and below a path, by what follows that path."""
    return {
        path[len(top) :]: data
        for path, data in contents.items()
        if _inside(path, top) and not path.endswith("/")
    }


def _behind(
    contents: Contents, top: str, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, str | None]]:
    """Yield the files below a path as a copy that follows links finds them; None for no file."""
    top = _resolved(contents, top)
    if top in above or (not _files(contents, top) and f"{top}/" not in contents and top):
        yield "", None
        return
    for rest, data in _files(contents, top).items():
        if data.startswith(LINK):
            for more, behind in _behind(contents, top + rest if top else rest, (*above, top)):
                yield rest + more, behind
        else:
            yield rest, data


def _wrong(before: World, step: Step, ok: bool, after: World) -> Iterator[str]:
    """Yield what is wrong with what came of a step."""
    does, amount = KINDS[step.way]
    at, path = step.source
    follows = does in ("copy", "sync", "mirror")
    source = _scope(before[at], path.rstrip("/"), last=follows)
    moved = _files(before[at], source)
    if amount == "file":
        moved = {rest: data for rest, data in moved.items() if not rest}
    behind = dict(_behind(before[at], source)) if does != "remove" else {}
    if amount == "file":
        behind = {rest: data for rest, data in behind.items() if not rest}
    contents = {data for data in (*moved.values(), *behind.values()) if data}
    leads_to = _resolved(before[at], source)

    to, targets, reach = at, [], []
    if step.target is not None:
        to = step.target[0]
        first = _scope(before[to], step.target[1].rstrip("/"), last=False)
        followed = _scope(before[to], step.target[1], last=True)
        name = posixpath.basename(path.rstrip("/"))
        targets = [*dict.fromkeys((first, followed))]
        if does in ("copy", "move"):
            targets += [f"{one}/{name}" if one else name for one in targets]
        reach = [*targets]
        for link, data in before[to].items():
            if data.startswith(LINK) and any(_inside(link, one) for one in targets):
                reach.append(_resolved(before[to], link))

    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        for where, data in old.items():
            if where.endswith("/") or new.get(where) == data:
                continue
            of_source = place == at and _inside(where, source) and where[len(source) :] in moved
            if does == "remove" and of_source:
                continue
            arrived = (
                any(
                    after[to].get(one + where[len(source) :])
                    in (data, _followed(before[at], where))
                    for one in targets
                )
                if of_source
                else False
            )
            if does == "move" and of_source and arrived:
                continue
            replaced = new.get(where)
            in_target = place == to and any(_inside(where, one) for one in reach)
            if in_target and not (of_source and follows):
                is_own = place == at and where == leads_to  # no link takes the place of its file
                if replaced is not None and replaced in contents and not is_own:
                    continue
                if does == "mirror" and replaced is None and _inside(where, followed):
                    continue
            yield f"lost: {data!r}, which was at {where!r} of place {place}"
        for where, data in new.items():
            if where.endswith("/") or where in old:
                continue
            if place != to or not any(_inside(where, one) for one in reach):
                yield f"appeared: {where!r} in place {place}, outside of the target"
            elif data not in contents and not data.startswith(LINK):
                yield f"torn or invented: {data!r} at {where!r} of place {place}"

    if ok:
        if does in ("remove", "move"):
            left = {rest for rest in moved if after[at].get(source + rest) == moved[rest]}
            onto_itself = at == to and (
                any(_inside(one, source) for one in targets) or leads_to in targets
            )
            if left and not onto_itself:
                yield f"left out in silence: {sorted(left)} of {source!r}"
        nothing = not moved and not behind and does != "sync" and f"{source}/" not in before[at]
        if nothing and source and not (amount == "file" and step.way.startswith("fsspec")):
            yield f"succeeded with nothing: {source!r} is not there"
        if targets:
            wanted: Mapping[str, str | None] = behind
            if not follows:  # a link is moved as a link, or as the file that it leads to
                wanted = {rest: _followed(before[at], source + rest) for rest in moved}
            if not any(_has_arrived(after[to], one, wanted, moved) for one in targets):
                yield f"did not arrive in silence: not all of {wanted} is at one of {targets}"


def _followed(contents: Contents, path: str) -> str | None:
    found = contents.get(_resolved(contents, path))
    return None if found is None or found.startswith(LINK) else found


def _has_arrived(
    there: Contents, top: str, wanted: Mapping[str, str | None], links: Mapping[str, str]
) -> bool:
    for rest, data in wanted.items():
        path = top + rest if top else rest.removeprefix("/")
        real = _resolved(there, path)
        if data is not None and there.get(real) == data:
            continue
        above = rest  # or a link above it was copied as a link
        while above and links.get(above) is None:
            above = posixpath.dirname(above) if above != "/" else ""
        link = links.get(above)
        if link is None or not link.startswith(LINK) or there.get(top + above) != link:
            return False
    return True


# ---- chance ----


class Chance:
    """Chooses trees and steps."""

    def __init__(self, seed: object, places: tuple[TreeStore, TreeStore]) -> None:
        self._random = random.Random(f"{seed}")
        self._keyed = places[0].has_keys
        self._dotted = places[0].name != "az"  # whose client cannot write such a name
        self._linked = [place.has_links for place in places]
        self._serial = itertools.count()

    def tree(self, place: int) -> Contents:
        """Return files and links for a place."""
        made: Contents = {}
        for _ in range(self._random.randint(3, 10)):
            path = "/".join(self._random.choice(NAMES) for _ in range(self._random.randint(1, 3)))
            keyed = self._keyed and place == 0
            if keyed and self._random.random() < 0.08:
                path = self._random.choice(KEYS if self._dotted else KEYS[:-1])
            elif not keyed and any(_inside(path, one) or _inside(one, path) for one in made):
                continue
            if self._linked[place] and self._random.random() < 0.25:
                lead = self._random.choice(
                    [*made, *(posixpath.dirname(one) for one in made), "none"]
                )
                made[path] = LINK + posixpath.relpath(lead or ".", posixpath.dirname(path) or ".")
            else:
                made[path] = self._content()
        if self._keyed and place == 0 and self._random.random() < 0.4:
            top = self._random.choice(NAMES)
            made |= {f"{top}/two": self._content(), f"{top}/two/child": self._content()}
        return made

    def _content(self) -> str:
        """Return other text each time, and of another length: `sync` looks at that."""
        number = next(self._serial)
        return f"content {number} ".ljust(20 + number, ".")

    def step(self, world: World) -> Step:
        """Return something to do with what there is."""
        at, to = (0 if self._random.random() < 0.7 else 1 for _ in range(2))
        if (at, to) == (0, 0) or at == to:
            ways: list[str] = list(WITHIN)
        else:
            ways = (
                [*BETWEEN, "fsspec get", "fsspec get recursive"]
                if at == 0
                else [*BETWEEN, "fsspec put", "fsspec put recursive"]
            )
        way = self._random.choice(ways)
        source = (at, self._path(world[at], there=0.93))
        if KINDS[way][0] == "remove":
            return Step(way, source)
        return Step(way, source, (to, self._path(world[to], there=0.45)))

    def _path(self, contents: Contents, there: float) -> str:
        known = {""} | {path.rstrip("/") for path in contents}
        for path in list(known):
            above = posixpath.dirname(path)
            while above.strip("/"):
                known.add(above)
                above = posixpath.dirname(above)
        clean = sorted(path for path in known if "//" not in path and ".." not in path.split("/"))
        pick = self._random.random()
        if pick < there and len(clean) > 1:
            path = self._random.choice(clean[1:])
        else:
            path = posixpath.join(self._random.choice(clean), self._random.choice(NAMES))
        if self._random.random() < 0.05:
            path += "/"
        return path


def find_fault(stores: Stores, name: str, seed: object, operations: int) -> Fault | None:
    """Do so many operations on trees of a store; return the first that went wrong, made small."""
    for number in itertools.count():
        if operations <= 0:
            return None
        trees = Trees(stores, name)
        chance = Chance(f"{seed} {name} {number}", trees.places)
        trees.fill((chance.tree(0), chance.tree(1)))
        world = trees.world()
        for _ in range(min(EPISODE, operations)):
            operations -= 1
            world, fault, _ = trees.check(world, chance.step(world))
            if fault is not None:
                return shrunk(stores, name, fault)
    return None


def shrunk(stores: Stores, name: str, fault: Fault) -> Fault:
    """Return the fault on as few files as show it."""
    world = fault.before
    paths = [(place, path) for place, contents in enumerate(world) for path in contents]
    for place, path in paths:
        fewer = world[0].copy(), world[1].copy()
        del fewer[place][path]
        trees = Trees(stores, name)
        trees.fill(fewer)
        _, smaller, _ = trees.check(trees.world(), fault.step)
        if smaller is not None:
            fault, world = smaller, fewer
    return fault
