"""A server that cannot be reached is reported at once, as what it is.

Without workarounds these calls take from half a minute to several, and most end in
"not found"; that is not shown here. A test fails when its child is not done in 20 seconds.
"""

from __future__ import annotations

import socket

import pytest

from tests.fixtures.emulators import AZURE_ACCOUNT, AZURE_KEY, NO_PROXY, Store, s3_environment

pytestmark = pytest.mark.wild


@pytest.fixture
def dead_address():
    """An address on which nobody listens, and that nobody else gets meanwhile."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@pytest.fixture
def expect_refusal(run_subject):
    """Return what expects that every call on a store is refused."""

    def expect(base_uri, **environment):
        child = run_subject(
            Store("", base_uri, {**NO_PROXY, **environment}),
            """
            def read(uri):
                with fs.new_random_access_file(uri) as file:
                    return file.read(0, 10)

            for ask in (fs.path_exists, fs.stat, read):
                error = expect_error(ConnectionError, ask, uri("file"))
                expect(error.code, errors.UnavailableError.default_code)
            print(error)
            """,
            timeout=20,
        )
        assert "accepts no connection" in child.stdout
        assert "refused" in child.stdout

    return expect


def test_s3_dead_endpoint(dead_address, expect_refusal):
    expect_refusal("s3://fixture", **s3_environment(f"http://{dead_address}"))


def test_az_dead_endpoint(dead_address, expect_refusal):
    expect_refusal(
        f"az://{AZURE_ACCOUNT}/fixture",
        TF_AZURE_STORAGE_BLOB_ENDPOINT=f"http://{dead_address}/{AZURE_ACCOUNT}",
        TF_AZURE_STORAGE_KEY=AZURE_KEY,
        TF_AZURE_STORAGE_USE_HTTP="1",
    )


def test_gs_dead_endpoint(dead_address, expect_refusal):
    endpoint = f"http://{dead_address}"
    expect_refusal("gs://fixture", CLOUD_STORAGE_EMULATOR_ENDPOINT=endpoint)


def test_oss_dead_endpoint(dead_address, expect_refusal):
    host = dead_address.replace("127.0.0.1", "localhost")
    expect_refusal(f"oss://fixture\x01id=nobody\x02key=secret\x02host={host}")


def test_http_dead_server(dead_address, expect_refusal):
    expect_refusal(f"http://{dead_address}")


def test_behind_a_proxy_the_server_itself_is_not_tried(dead_address, run_subject):
    """The plugin then reaches nobody either, but it was for the proxy to say so."""
    store = Store("", "http://example.invalid", {"http_proxy": f"http://{dead_address}"})
    child = run_subject(store, "print(expect_error(errors.InternalError, get, 'x'))", timeout=20)
    assert "accepts no connection" not in child.stdout
