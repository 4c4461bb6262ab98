"""Eight threads at once on one filesystem."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_MIXED_OPERATIONS = """
    import hashlib, random
    from concurrent.futures import ThreadPoolExecutor

    shared = bytes(range(256)) * 8192
    put("shared", shared)
    shared_file = fs.new_random_access_file(uri("shared"))

    def work(number):
        chance = random.Random(number)
        for step in range(6):
            path = f"own/{number}/{step}"
            content = chance.randbytes(chance.randrange(1, 300_000))
            put(path, content)
            offset, n = chance.randrange(len(shared)), chance.randrange(1, 400_000)
            expect(shared_file.read(offset, n) == shared[offset:offset + n], True)
            expect(get(path) == content, True)
            expect(fs.get_file_size(uri(path)), len(content))
            expect_error(FileNotFoundError, fs.stat, uri(f"{path}-missing"))
            fs.rename_file(uri(path), uri(f"{path}-moved"))
            expect(get(f"{path}-moved") == content, True)
            expect(fs.get_children(uri(f"own/{number}")), [f"{step}-moved"])
            fs.delete_file(uri(f"{path}-moved"))
        return number

    with ThreadPoolExecutor(8) as pool:
        expect(sorted(pool.map(work, range(8))), list(range(8)))
    """


def test_mixed_operations(object_store, run_subject):
    run_subject(object_store, _MIXED_OPERATIONS, folder="threads", timeout=120)


def test_reads_of_one_file_from_the_web(http_store, run_subject):
    pattern = bytes(range(256)) * 16384
    (http_store.folder / "threads").write_bytes(pattern)
    run_subject(
        http_store,
        """
        from concurrent.futures import ThreadPoolExecutor
        pattern = bytes(range(256)) * 16384
        with fs.new_random_access_file(uri("threads")) as file:
            def work(number):
                for step in range(50):
                    offset = (number * 7919 + step * 104729) % len(pattern)
                    expect(file.read(offset, 5000) == pattern[offset:offset + 5000], True)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(work, range(8)))
        """,
    )
