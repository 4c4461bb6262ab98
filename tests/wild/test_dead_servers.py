"""A server that cannot be reached is told at once, as what it is.

Without workarounds these calls take from half a minute to several, and most end in
"not found"; that is not shown here. A test fails when its child is not done in 20 seconds.
"""

from __future__ import annotations

import dataclasses
import socket

import pytest

from tests.fixtures.emulators import NO_PROXY, Store

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_EVERY_CALL_IS_REFUSED = """
    def read(uri):
        with fs.new_random_access_file(uri) as file:
            return file.read(0, 10)

    for ask in (fs.path_exists, fs.stat, read):
        error = expect_error(ConnectionError, ask, uri("file"))
        expect(error.code, errors.UnavailableError.default_code)
    print(error)
    """


@pytest.fixture
def dead_address():
    """An address on which nobody listens, and that nobody else gets meanwhile."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


def _expect_refusal(run_subject, store, address):
    child = run_subject(store, _EVERY_CALL_IS_REFUSED, timeout=20)
    assert "accepts no connection" in child.stdout
    assert "refused" in child.stdout


def _elsewhere(store, address, variable, path=""):
    environment = {**store.environment, variable: f"http://{address}{path}"}
    return dataclasses.replace(store, environment=environment)


def test_s3_dead_endpoint(s3_store, dead_address, run_subject):
    dead = _elsewhere(s3_store, dead_address, "S3_ENDPOINT")
    _expect_refusal(run_subject, dead, dead_address)


def test_az_dead_endpoint(azure_store, dead_address, run_subject):
    variable = "TF_AZURE_STORAGE_BLOB_ENDPOINT"
    dead = _elsewhere(azure_store, dead_address, variable, "/devstoreaccount1")
    _expect_refusal(run_subject, dead, dead_address)


def test_gs_dead_endpoint(gcs_store, dead_address, run_subject):
    dead = _elsewhere(gcs_store, dead_address, "CLOUD_STORAGE_EMULATOR_ENDPOINT")
    _expect_refusal(run_subject, dead, dead_address)


def test_oss_dead_endpoint(dead_address, run_subject):
    host = dead_address.replace("127.0.0.1", "localhost")
    uri = f"oss://fixture\x01id=nobody\x02key=secret\x02host={host}"
    _expect_refusal(run_subject, Store("", uri, NO_PROXY), dead_address)


def test_http_dead_server(dead_address, run_subject):
    store = Store("", f"http://{dead_address}", NO_PROXY)
    _expect_refusal(run_subject, store, dead_address)


def test_a_server_that_dies_later_is_told_too(run_subject, tmp_path):
    run_subject(
        Store("", "http://127.0.0.1:1", NO_PROXY),
        """
        import http.server, threading, time
        handler = http.server.SimpleHTTPRequestHandler
        handler.log_message = lambda *_: None
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        expect(fs.path_exists(uri("")), True)
        server.shutdown()
        server.server_close()
        expect_error(ConnectionError, fs.path_exists, uri("another"))
        """,
        timeout=20,
    )


def test_behind_a_proxy_the_server_itself_is_not_tried(dead_address, run_subject):
    """The plugin then reaches nobody either, but it was for the proxy to say so."""
    store = Store("", "http://example.invalid", {"http_proxy": f"http://{dead_address}"})
    child = run_subject(store, "print(expect_error(errors.InternalError, get, 'x'))", timeout=20)
    assert "accepts no connection" not in child.stdout
