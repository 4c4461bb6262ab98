"""Conformance in a plugin author's own tests: one class or one fixture.

```python
from modular_tf.check.pytest_plugin import FilesystemConformance

class TestMyStore(FilesystemConformance):
    plugin = "build/libmystore.so"
    level = 3
```

Each check is a test of its own, `test_conformance[FS-156]`, that is skipped where the plugin does
not offer what it needs, and an expected failure where the settings name it as a known deviation.
The nearest `modular-tf-check.toml` above the test counts as it does for `modular-tf check`.

```python
pytest_plugins = ["modular_tf.check.pytest_plugin"]  # in the top conftest.py

def test_my_store(conformance):
    report = conformance("build/libmystore.so", level=3)
    assert report.conforms, str(report)
```

It is no plugin that pytest loads by itself: for that pytest would rewrite the whole package.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from modular_tf.check.outcome import BAD, Outcome, Verdict
from modular_tf.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from modular_tf.check.report.report import Report
    from modular_tf.check.settings import CheckSettings

__all__ = [
    "ConformanceWarning",
    "DeviceConformance",
    "FilesystemConformance",
    "KernelConformance",
    "conformance",
    "judge",
    "settings_for",
]

_SEED = 0
"""Tests are the same in every run; `modular-tf check` draws one."""


class ConformanceWarning(UserWarning):
    """A plugin does not do what is recommended."""


class _Conformance:
    """The checks of one kind of plugin.

    Attributes:
        plugin: The library's path; relative to the directory of the test module, or absolute.
        level: Up to which level; None for the settings', or 4.
        profile: The kind of store; None for the settings'.
        root: A URI below which everything may be made and removed.
        through_host: Whether checks of the plugin's functions run once more through this package;
            None for the settings'.
        only: Ids and groups of checks, or globs over them; all where empty.
        skip: Likewise, which are left out.
        options: For the checks, such as `repeat`.
        seed: Of all that is random.
    """

    plugin: ClassVar[str]
    level: ClassVar[int | None] = None
    profile: ClassVar[str | None] = None
    root: ClassVar[str | None] = None
    through_host: ClassVar[bool | None] = None
    only: ClassVar[Sequence[str]] = ()
    skip: ClassVar[Sequence[str]] = ()
    options: ClassVar[dict[str, Any]] = {}
    seed: ClassVar[int] = _SEED
    _kind: ClassVar[str]

    @classmethod
    def _settings(cls, directory: str) -> CheckSettings:
        names = ("level", "profile", "root", "through_host", "only", "skip", "options")
        return settings_for(directory, **{name: getattr(cls, name) for name in names})

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each check (a hook of pytest)."""
        from modular_tf.check.plan import selected  # noqa: PLC0415

        if "check_id" in metafunc.fixturenames:
            settings = self._settings(os.path.dirname(metafunc.definition.path))
            checks = selected(settings, (self._kind,))
            metafunc.parametrize("check_id", [check.id for check in checks])

    @pytest.fixture(scope="class")
    @classmethod
    def outcomes(
        cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> dict[str, list[Outcome]]:
        """The outcomes of the checks of this class that were collected, by id.

        Where pytest-xdist gives the tests of a class to several workers, one of them runs the
        checks, and the others take its outcomes.
        """
        directory = os.path.dirname(request.path)
        wanted = tuple(
            str(item.callspec.params["check_id"])
            for item in request.session.items
            if isinstance(item, pytest.Function) and item.cls is request.cls
            if "check_id" in getattr(getattr(item, "callspec", None), "params", {})
        )
        settings = replace(cls._settings(directory), only=wanted, skip=())
        path = os.path.join(directory, cls.plugin)
        name = hashlib.sha256(f"{request.node.nodeid} {wanted}".encode()).hexdigest()
        with _alone(request, tmp_path_factory) as prefix:
            shared = Path(f"{prefix}-{name}.json") if prefix else None
            if shared and shared.exists():
                all_outcomes = decode(list[Outcome], json.loads(shared.read_text()))
            else:
                plugins = _run(path, settings, cls.seed).plugins
                all_outcomes = [outcome for plugin in plugins for outcome in plugin.outcomes]
                if shared:
                    part = shared.with_suffix(".part")  # a worker may end at any time
                    part.write_text(json.dumps(encode(all_outcomes)))
                    part.replace(shared)
        found: dict[str, list[Outcome]] = {}
        for outcome in all_outcomes:
            found.setdefault(outcome.check_id, []).append(outcome)
        return found

    def test_conformance(self, check_id: str, outcomes: dict[str, list[Outcome]]) -> None:
        """Fail where the plugin breaks the rule of a check."""
        judge(check_id, outcomes.get(check_id, []))


class FilesystemConformance(_Conformance):
    """The checks of a filesystem plugin: subclass it in a test module and name the library."""

    _kind = "filesystem"


class DeviceConformance(_Conformance):
    """The checks of a device plugin: subclass it in a test module and name the library."""

    _kind = "device"


class KernelConformance(_Conformance):
    """The checks of a plugin's kernels: subclass it in a test module and name the library."""

    _kind = "kernel"


@pytest.fixture
def conformance(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Report]:
    """Return a function that checks one library; see `settings_for` for its arguments."""
    directory = os.path.dirname(request.path)

    def check(plugin: str, *, seed: int = _SEED, **given: Any) -> Report:
        with _alone(request, tmp_path_factory):
            return _run(os.path.join(directory, plugin), settings_for(directory, **given), seed)

    return check


@contextmanager
def _alone(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Let one worker of pytest-xdist run checks at a time: a run uses all processors and devices.

    Gives the prefix of paths that the workers of this run share; "" without pytest-xdist.
    """
    worker: dict[str, Any] | None = getattr(request.config, "workerinput", None)
    if worker is None:
        yield ""
        return
    folder = tmp_path_factory.getbasetemp().parent
    prefix = str(folder / f"modular-tf-check-{worker['testrunuid']}")
    with open(f"{prefix}.turn", "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        try:
            yield prefix
        finally:  # closing it is not enough: processes that a plugin left running have it too
            fcntl.flock(turn, fcntl.LOCK_UN)


def settings_for(
    directory: str,
    *,
    level: int | None = None,
    profile: str | None = None,
    root: str | None = None,
    through_host: bool | None = None,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    options: dict[str, Any] | None = None,
) -> CheckSettings:
    """Return the settings of the nearest file, with those that are given instead.

    Args:
        directory: Where to begin to look for a settings file.
        level: Up to which level.
        profile: The kind of store.
        root: A URI below which everything may be made and removed.
        through_host: Whether checks of the plugin's functions run once more through this package.
        only: Ids and groups of checks, or globs over them.
        skip: Likewise, which are left out as well.
        options: For the checks.

    Raises:
        ConfigError: The file, or one of the values, is invalid.
    """
    from modular_tf.check.settings import decided  # noqa: PLC0415

    found = decided(
        directory,
        profile=profile,
        level=level,
        root=root,
        through_host=through_host,
        options=options,
    )
    return replace(found, only=tuple(only) or found.only, skip=(*found.skip, *skip))


def _run(path: str, settings: CheckSettings, seed: int) -> Report:
    from modular_tf.check.job import Limits  # noqa: PLC0415
    from modular_tf.check.plan import candidates_of  # noqa: PLC0415
    from modular_tf.check.run import check_plugins  # noqa: PLC0415

    candidates, problems = candidates_of([os.path.abspath(path)])
    if not candidates:
        raise pytest.UsageError("; ".join(problem.message for problem in problems))
    report = check_plugins(candidates, settings, seed=seed, limits=Limits())
    if report.interrupted:
        raise KeyboardInterrupt
    if report.faults:  # checks without an outcome must not look like skipped ones
        raise RuntimeError("a check failed by itself: " + "; ".join(report.faults))
    return report


def judge(check_id: str, outcomes: Sequence[Outcome]) -> None:
    """Pass, fail or skip the running test by the outcomes of one check.

    Args:
        check_id: Id of the check.
        outcomes: Its results, on all subjects and in all ways.
    """
    from modular_tf.check.report.wording import details, headline  # noqa: PLC0415

    def described(outcome: Outcome) -> str:
        where = f"{outcome.subject or 'the library'} ({outcome.reached.value})"
        return "\n".join((f"{check_id} {where}: {headline(outcome)}", *details(outcome)))

    if bad := [described(o) for o in outcomes if o.verdict in BAD or o.verdict is Verdict.BLOCKED]:
        pytest.fail("\n\n".join(bad), pytrace=False)
    for outcome in outcomes:
        if outcome.verdict is Verdict.WARNED:
            warnings.warn(described(outcome), ConformanceWarning, stacklevel=2)
    if known := [headline(o) for o in outcomes if o.verdict is Verdict.KNOWN]:
        pytest.xfail(known[0])
    if not outcomes:
        message = f"{check_id} was not tried: the plugin registers nothing that it is about"
        pytest.fail(message, pytrace=False)
    if all(outcome.verdict is Verdict.SKIPPED for outcome in outcomes):
        pytest.skip(headline(outcomes[0]))
