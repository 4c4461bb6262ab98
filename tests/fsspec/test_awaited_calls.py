"""Coroutines that use a filesystem: the same operations, in a bounded number of threads."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from modular_tf.errors import InternalError, PermissionDeniedError
from modular_tf.fsspec import ModularFileSystem, awaited
from tests.fixtures.forked_children import in_a_fork
from tests.fsspec.far_store import AT_ONCE, SCHEME, TOP, FarStore, serve

NAMES = [f"{TOP}/f{number:02}" for number in range(3 * AT_ONCE)]


@pytest.fixture
def store(store):
    store.files = {f"/{name.partition('/')[2]}": name.encode() for name in NAMES}
    return store


@pytest.fixture
def fs(far):
    return ModularFileSystem(SCHEME, service=far.service, asynchronous=True)


async def all_of(*calls):
    return await asyncio.gather(*calls)


def test_calls_are_made_at_once_and_no_more_than_allowed(fs, store):
    store.meet("read")
    seen = store.most_at_once("read")
    found = asyncio.run(all_of(*(fs._cat_file(name, 0, 100) for name in NAMES)))

    assert found == [name.encode() for name in NAMES]
    assert store.has_met("read")
    assert max(seen) == AT_ONCE


def test_every_operation_is_awaited(fs, tmp_path):
    async def use():
        await fs._pipe_file(f"{TOP}/new", b"0123456789")
        await fs._cp_file(f"{TOP}/new", f"{TOP}/copy")
        await fs._get_file(f"{TOP}/copy", str(tmp_path / "down"))
        await fs._put_file(str(tmp_path / "down"), f"{TOP}/up")
        await fs._mkdir(f"{TOP}/made")
        await fs._rmdir(f"{TOP}/made")
        await fs._rm_file(f"{TOP}/new")
        await fs._rm([f"{TOP}/copy"])
        return (
            await fs._info(f"{TOP}/up"),
            await fs._size(f"{TOP}/up"),
            await fs._exists(f"{TOP}/new"),
            await fs._isdir(TOP),
            await fs._cat_ranges([f"{TOP}/up"] * 2, [0, -2], [2, None]),
            await fs._ls(TOP, detail=False),
            await fs._find(TOP),
            await fs._glob(f"{TOP}/f*"),
            [step async for step in fs._walk(TOP)],
        )

    info, size, exists, isdir, ranges, *listed = asyncio.run(use())
    up = [*NAMES, f"{TOP}/up"]
    assert (info["name"], info["size"], size, exists, isdir) == (f"{TOP}/up", 10, 10, False, True)
    assert ranges == [b"01", b"89"]
    assert listed == [up, up, NAMES, [(TOP, [], [name.rpartition("/")[2] for name in up])]]
    assert (fs.async_impl, fs.cat_file(f"{TOP}/up")) == (True, b"0123456789")


def test_errors_are_raised_where_they_are_awaited_and_an_exit_does_not_end_the_loop(fs, store):
    def leave(_path):
        raise SystemExit

    async def use():
        with pytest.raises(PermissionError, match="no"):
            await all_of(*(fs._cat_file(name) for name in NAMES))
        store.hooks["stat"] = leave
        with pytest.raises(InternalError, match="SystemExit"):
            await fs._info(NAMES[0])
        return await fs._cat_file(NAMES[0], 0, 5)

    store.faults["new_random_access_file", "/f01"] = PermissionDeniedError("no")
    assert asyncio.run(use()) == b"store"


def test_a_call_whose_await_was_cancelled_is_not_begun(fs, store):
    begun, may_end = threading.Event(), threading.Event()
    store.hooks["stat"] = lambda _: (begun.set(), may_end.wait(60))

    async def use():
        loop = asyncio.get_running_loop()
        calls = [asyncio.ensure_future(fs._info(name)) for name in NAMES]
        await loop.run_in_executor(None, begun.wait, 60)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        may_end.set()
        del store.hooks["stat"]
        return await fs._info(NAMES[-1])

    assert asyncio.run(use())["size"] == len(NAMES[-1])
    assert store.count("stat") <= AT_ONCE + 1


def test_calls_need_no_thread(fs, thread_starts):
    thread_starts.fail("no thread left", "modular_tf-call", times=1)

    assert asyncio.run(fs._cat_file(NAMES[0])) == NAMES[0].encode()
    assert thread_starts.has_failed


def test_an_interrupt_while_a_thread_is_started_takes_no_place(monkeypatch):
    started = awaited.start_thread
    interrupts = iter([KeyboardInterrupt])

    def start(thread):
        for interrupt in interrupts:
            raise interrupt
        started(thread)

    async def use(calls):
        with pytest.raises(KeyboardInterrupt):
            await calls.make(lambda: "lost", 1)
        return await asyncio.wait_for(calls.make(lambda: "made", 1), 30)

    monkeypatch.setattr(awaited, "start_thread", start)
    assert asyncio.run(use(awaited.AwaitedCalls())) == "made"


@pytest.mark.parametrize("uses_loop", [False, True])
def test_a_forked_child_makes_calls_of_its_own(fs, store, uses_loop):
    asyncio.run(all_of(*(fs._info(name) for name in NAMES)))
    blocked, may_end = threading.Event(), threading.Event()
    store.hooks["stat"] = lambda _: (blocked.set(), may_end.wait(60))
    thread = threading.Thread(target=lambda: asyncio.run(all_of(*map(fs._info, NAMES))))
    thread.start()
    assert blocked.wait(60)
    store.hooks.clear()
    if not (child := os.fork()):
        found = None
        try:
            found = asyncio.run(fs._find(TOP)) if uses_loop else fs.find(TOP)
        finally:  # else it would go on as a second run of the tests
            os._exit(0 if found == NAMES else 1)
    may_end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@in_a_fork
def test_an_interrupt_ends_a_program_whose_call_hangs():
    store, hung = FarStore(), threading.Event()
    service, _ = serve(store)
    fs = ModularFileSystem(SCHEME, service=service, asynchronous=True)

    async def use():
        call = asyncio.ensure_future(fs._info(f"{TOP}/f"))
        await asyncio.get_running_loop().run_in_executor(None, hung.wait)
        signal.raise_signal(signal.SIGINT)
        await call

    store.hooks["stat"] = lambda _: (hung.set(), threading.Event().wait())
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(use())
