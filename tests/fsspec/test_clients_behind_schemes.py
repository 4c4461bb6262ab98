"""Clients that others wrote, behind a scheme of ours, at an emulated store."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.fixtures.clients import client_libraries, with_places

MAKE = {
    "s3fs": """
        import s3fs
        fs = s3fs.S3FileSystem(key="nobody", secret="secret", endpoint_url=endpoint)
    """,
    "obstore": """
        from obstore.fsspec import FsspecStore
        fs = FsspecStore(
            "s3", endpoint=endpoint, access_key_id="nobody", secret_access_key="secret",
            region="us-east-1", client_options={"allow_http": True},
        )
    """,
    "pyarrow": """
        import pyarrow.fs
        from fsspec.implementations.arrow import ArrowFSWrapper
        fs = ArrowFSWrapper(pyarrow.fs.S3FileSystem(
            access_key="nobody", secret_key="secret", scheme="http", region="us-east-1",
            endpoint_override=endpoint.removeprefix("http://"),
        ))
    """,
}


@pytest.mark.emulator
@pytest.mark.parametrize("client", MAKE)
def test_files_are_read_and_directories_renamed(client, s3_store, run_python):
    subject = """
        import modular_tf as mtf
        from modular_tf import gfile

        FILES = {"a": b"1" * 1000, "sub/b": b"2", "sub/deep/c": b"3"}
        mtf.default_service().register_filesystem("mine", fs)
        base = f"mine://fixture/{client}"
        for old in ("d", "m[1]"):
            gfile.makedirs(f"{base}/{old}/sub/deep")
            for name, data in FILES.items():
                with gfile.GFile(f"{base}/{old}/{name}", "wb") as file:
                    file.write(data)
            gfile.rename(f"{base}/{old}", f"{base}/new-{old[0]}")
            assert not gfile.exists(f"{base}/{old}/a"), old
            assert not gfile.exists(f"{base}/{old}/sub/deep/c"), old
            for name, data in FILES.items():
                with gfile.GFile(f"{base}/new-{old[0]}/{name}", "rb") as file:
                    assert file.read() == data, (old, name)
                with gfile.GFile(f"{base}/new-{old[0]}/{name}", "rb") as file:
                    assert file.read(1) == data[:1], (old, name)
    """
    places = [] if client == "pyarrow" else [client_libraries("store-clients")]
    names = f"endpoint, client = {s3_store.endpoint!r}, {client!r}"
    code = "\n".join(map(dedent, (names, MAKE[client], subject)))
    run_python(code, env={**s3_store.environment, **with_places(*places)}, timeout=120)
