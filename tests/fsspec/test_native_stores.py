"""Stores of obstore and filesystems of pyarrow behind a scheme, without fsspec between."""

from __future__ import annotations

import gc
import os
from textwrap import dedent
from urllib.parse import urlsplit

import pyarrow.fs
import pytest

from modular_tf import errors
from modular_tf.filesystem import client_ops, held_writer
from modular_tf.service.service import PluginService
from tests.emulators.conversation import ask
from tests.fixtures.clients import S3_CLIENTS, client_libraries, with_places
from tests.fixtures.emulators import AZURE_ACCOUNT, AZURE_KEY, proxied
from tests.fixtures.matrices import sampled, sampled_product

NATIVE = ("obstore", "pyarrow")
ONCE = {
    "obstore": {"region=": 'retry_config={"max_retries": 0}, region='},
    "pyarrow": {
        "region=": "retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=1),"
        " connect_timeout=1, region="
    },
}
"""What makes each try a request once."""
SIGNED = {"Authorization": "AWS nobody:signature"}
pytestmark = [pytest.mark.emulator, pytest.mark.xdist_group("fsspec at moto")]


def made(client, endpoint, **names):
    """Return a client as users make it; names replace texts of how they do."""
    source = dedent(S3_CLIENTS[client])
    for old, new in names.items():
        source = source.replace(old, new)
    found = {"endpoint": endpoint}
    exec(source, found)
    return found["fs"]


@pytest.fixture
def service():
    with PluginService(bundled=False) as service:
        yield service


@pytest.fixture(params=NATIVE)
def client(request, obstore):
    return request.param


@pytest.fixture
def serve(service):
    """Return the filesystem of a client, under the scheme `mine`."""

    def register(client, scheme="mine"):
        service.register_filesystem(scheme, client, replace=True)
        return service.filesystem(scheme)

    return register


@pytest.fixture
def mine(client, s3_store, serve):
    """The scheme `mine`, served by a client of the emulated S3."""
    return serve(made(client, s3_store.endpoint))


def stored(store, key):
    """Return what the store has, None for nothing, without any client."""
    answer = ask("GET", f"{store.endpoint}/fixture/{key}", headers=SIGNED)
    return answer.body if answer.status == 200 else None


def write(fs, uri, data):
    with fs.new_writable_file(uri) as file:
        file.append(data)


# ---- Files ----


def test_each_way_of_storing_puts_once_and_whole(client, distant_s3, serve):
    key, fs = f"ways-{client}", serve(made(client, distant_s3.endpoint))
    distant_s3.forget_requests()
    with fs.new_writable_file(f"mine://fixture/{key}") as file:
        file.append(b"one")
        assert stored(distant_s3, key) is None
        file.flush()
        file.flush()
        assert stored(distant_s3, key) == b"one"
        file.append(b"two")
        file.sync()
        assert file.tell() == 6

    assert stored(distant_s3, key) == b"onetwo"
    requests = distant_s3.requests()
    assert requests.get("PUT", 0) + requests.get("PUT upload", 0) == 2
    with pytest.raises(errors.ClosedError):
        file.append(b"x")


def test_an_empty_file_and_an_appended_one_are_stored(mine, client, s3_store):
    uri = f"mine://fixture/appended-{client}"
    mine.new_appendable_file(uri).close()
    assert stored(s3_store, f"appended-{client}") == b""
    for part in (b"a" * 3_000_000, b"b", b""):
        with mine.new_appendable_file(uri) as file:
            file.append(part)

    assert mine.stat(uri).length == 3_000_001
    assert mine.read_file(uri) == b"a" * 3_000_000 + b"b"
    with mine.new_read_only_memory_region_from_file(uri) as region:
        assert len(region) == 3_000_001


def test_what_cannot_be_put_leaves_the_old_file_and_says_why(mine, client, s3_store, monkeypatch):
    key = f"kept-as-it-was-{client}"
    uri = f"mine://fixture/{key}"
    write(mine, uri, b"old")
    file = mine.new_writable_file(uri)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(held_writer.os, "pwrite", full)
    with pytest.raises(errors.ResourceExhaustedError):
        file.append(b"new")
    for end in (file.flush, file.close):
        with pytest.raises(errors.DataLossError, match="lacks bytes"):
            end()
    file.close()
    # Nor is a file stored that nobody wrote to or closed: its opening may have been interrupted.
    mine.new_writable_file(uri)
    gc.collect()
    assert stored(s3_store, key) == b"old"


def test_a_store_that_fails_has_all_of_a_file_or_what_was_there(client, s3_store, serve, tmp_path):
    key, old, new = f"fails-{client}", b"o" * 1000, os.urandom(21 << 20)
    outcomes = set()
    with proxied(s3_store, tmp_path) as proxy:
        fs = serve(made(client, proxy.endpoint, **ONCE[client]))
        for seed in range(3):
            write(fs, f"mine://fixture/{key}", old)
            proxy.set(seed=seed, chance=0.3, faults="error,reset,truncate", longest_run=1)
            try:
                write(fs, f"mine://fixture/{key}", new)
                outcomes.add("stored")
            except errors.ModularTFError as error:
                outcomes.add(type(error))
            proxy.set(chance=0.0)
            gc.collect()
            assert stored(s3_store, key) in (old, new)

    assert errors.UnavailableError in outcomes, outcomes


def test_a_file_whose_old_content_does_not_all_come_is_not_stored():
    puts = []

    def cut(write):
        write(b"part of the old content")
        return 100

    with pytest.raises(errors.DataLossError):
        client_ops.put_when_closed("mine://f", lambda *given: puts.append(given), cut)
    gc.collect()
    assert puts == []


def test_a_forked_child_stores_nothing_of_a_file_of_its_parent(mine, client, s3_store):
    file = mine.new_writable_file(f"mine://fixture/forked-{client}")
    file.append(b"of the parent")
    file._process = os.getpid() + 1  # as a child finds it
    for call in (lambda: file.append(b"of the child"), file.tell, file.flush):
        with pytest.raises(errors.ClosedError, match="belongs to the parent process"):
            call()
    file.close()
    gc.collect()
    assert stored(s3_store, f"forked-{client}") is None


@pytest.mark.parametrize(
    ("client", "first"),
    sampled_product(["obstore", "pyarrow"], ["adapter", "client"]),
    indirect=["client"],
)
def test_a_file_that_is_open_when_the_process_ends_is_stored(client, first, s3_store, run_python):
    """Whichever was imported first: pyarrow ends its client of S3 at exit too."""
    adapters = "import modular_tf.filesystem.python_filesystem" if first == "adapter" else ""
    subject = """
        import modular_tf as mtf

        mtf.default_service().register_filesystem("mine", fs)
        kept = mtf.default_service().filesystem("mine").new_writable_file(uri)
        kept.append(b"all of it")
    """
    key = f"at-the-end-{client}-{first}"
    names = f"endpoint, uri = {s3_store.endpoint!r}, 'mine://fixture/{key}'"
    code = "\n".join(map(dedent, (adapters, names, S3_CLIENTS[client], subject)))
    places = with_places(client_libraries("store-clients"))
    run_python(code, env={**s3_store.environment, **places}, timeout=60)

    assert stored(s3_store, key) == b"all of it"


def test_obstore_is_refused_in_a_forked_child_where_it_would_hang(s3_store, run_python):
    subject = """
        import os
        import modular_tf as mtf
        from modular_tf import errors

        mtf.default_service().register_filesystem("mine", fs)
        mine = mtf.default_service().filesystem("mine")
        with mine.new_writable_file("mine://fixture/before-fork") as file:
            file.append(b"abc")
        reader = mine.new_random_access_file("mine://fixture/before-fork")

        def refused(call):
            try:
                call()
            except errors.FailedPreconditionError as error:
                return "spawn" in str(error)
            return False

        child = os.fork()
        if child == 0:
            calls = (lambda: mine.stat("mine://fixture/a"), lambda: reader.read(0, 1))
            os._exit(0 if all(map(refused, calls)) else 3)
        assert os.waitpid(child, 0)[1] == 0
        assert reader.read(1, 5) == b"bc"
    """
    names = f"endpoint = {s3_store.endpoint!r}"
    code = "\n".join(map(dedent, (names, S3_CLIENTS["obstore"], subject)))
    places = with_places(client_libraries("store-clients"))
    run_python(code, env={**s3_store.environment, **places}, timeout=60)


def test_names_of_compressed_files_are_names(serve, mine, client, s3_store, tmp_path):
    disk = serve(pyarrow.fs.LocalFileSystem(), "disk")
    write(mine, f"mine://fixture/{client}.gz", b"plain")
    write(disk, f"disk://{tmp_path}/a.gz", b"plain")
    with disk.new_appendable_file(f"disk://{tmp_path}/a.gz") as file:
        file.append(b"er")

    assert stored(s3_store, f"{client}.gz") == b"plain"
    assert mine.read_file(f"mine://fixture/{client}.gz") == b"plain"
    assert disk.read_file(f"disk://{tmp_path}/a.gz") == b"plainer"


# ---- Names ----


@pytest.mark.usefixtures("obstore")
def test_uris_of_another_bucket_are_refused(serve, s3_store):
    mine = serve(made("obstore", s3_store.endpoint))
    below = made("obstore", s3_store.endpoint, region='prefix="pre/fix", region')
    fs = serve(below, "below")
    write(fs, "below://fixture/pre/fix/file", b"x")

    assert stored(s3_store, "pre/fix/file") == b"x"
    assert fs.get_children("below://fixture/pre/fix") == ["file"]
    for other in ("below://fixture/pre/fixed", "below://fixture/pre", "below://other/pre/fix/a"):
        with pytest.raises(errors.InvalidArgumentError, match=r"serves 'fixture/pre/fix' only"):
            fs.path_exists(other)
    with pytest.raises(errors.InvalidArgumentError, match=r"'fixture' only.*FsspecStore"):
        mine.stat("mine://other/file")


@pytest.mark.usefixtures("obstore")
def test_a_marked_directory_is_not_moved_where_the_marker_cannot_be(serve, s3_store):
    fs = serve(made("obstore", s3_store.endpoint))
    for key in ("marked-one/sub/", "marked-one/sub/a", "marked-one/b"):
        ask("PUT", f"{s3_store.endpoint}/fixture/{key}", b"" if key.endswith("/") else b"x")

    assert fs.get_children("mine://fixture/marked-one") == ["b", "sub"]
    assert fs.get_children("mine://fixture/marked-one/sub") == ["a"]
    with pytest.raises(errors.FailedPreconditionError, match=r"ends with '/'.*such as s3fs"):
        fs.rename_file("mine://fixture/marked-one", "mine://fixture/moved-marked-one")
    assert stored(s3_store, "marked-one/b") == b"x"
    assert not fs.path_exists("mine://fixture/moved-marked-one")


def test_a_file_is_removed_with_what_lies_below_its_name(mine, client, s3_store):
    top = f"below-a-file-{client}"
    for key in ("", "/x", "/x/y", "-beside"):
        ask("PUT", f"{s3_store.endpoint}/fixture/{top}{key}", b"x")
    mine.delete_recursively(f"mine://fixture/{top}")

    assert [stored(s3_store, f"{top}{key}") for key in ("", "/x", "/x/y")] == [None] * 3
    assert stored(s3_store, f"{top}-beside") == b"x"


def test_a_long_read_is_made_by_several_requests(client, distant_s3, serve):
    fs, uri = serve(made(client, distant_s3.endpoint)), f"mine://fixture/long-{client}"
    data = os.urandom(20 << 20)  # of which no piece is like another one
    write(fs, uri, data)
    distant_s3.forget_requests()
    with fs.new_random_access_file(uri) as file:
        assert file.read(0, len(data) + 5) == data

    assert distant_s3.requests()["GET range"] == 3


# ---- Other stores ----


def azure_client(client, obstore, endpoint, container="fixture"):
    if client == "obstore":
        return obstore.store.AzureStore(
            container,
            account_name=AZURE_ACCOUNT,
            account_key=AZURE_KEY,
            endpoint=endpoint,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
    place = {f"{kind}_storage_authority": urlsplit(endpoint).netloc for kind in ("blob", "dfs")}
    schemes = {"blob_storage_scheme": "http", "dfs_storage_scheme": "http"}
    return pyarrow.fs.AzureFileSystem(AZURE_ACCOUNT, account_key=AZURE_KEY, **place, **schemes)


@pytest.mark.parametrize("client", sampled(NATIVE, ["obstore"]), indirect=True)
def test_azure_is_served_too(client, azure_store, obstore, serve):
    fs = serve(azure_client(client, obstore, azure_store.endpoint))
    base = f"mine://fixture/{client}"
    fs.recursively_create_dir(f"{base}/d/sub")
    for name in ("a", "sub/b"):
        write(fs, f"{base}/d/{name}", name.encode())
    assert fs.get_children(f"{base}/d") == ["a", "sub"]
    with fs.new_appendable_file(f"{base}/d/a") as file:
        file.append(b"bc")
    fs.rename_file(f"{base}/d", f"{base}/e")
    fs.copy_file(f"{base}/e/a", f"{base}/e/c")

    assert fs.read_file(f"{base}/e/sub/b") == b"sub/b"
    assert {name: fs.read_file(f"{base}/e/{name}") for name in "ac"} == {"a": b"abc", "c": b"abc"}
    assert fs.get_children_statistics(f"{base}/e")["c"].length == 3
    fs.delete_recursively(f"{base}/e")
    assert not fs.path_exists(f"{base}/e")


def test_a_container_that_is_not_there_is_not_found(
    client, azure_store_without_containers, obstore, serve
):
    endpoint = azure_store_without_containers.endpoint
    fs = serve(azure_client(client, obstore, endpoint, container="none"))
    assert_fails(fs, "none", errors.NotFoundError)


def test_directories_that_only_paths_show_are_there(gcs_store, serve):
    """pyarrow's client of Google lists none that it has not marked."""
    host = urlsplit(gcs_store.endpoint).netloc
    client = pyarrow.fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=host)
    fs, base = serve(client), "mine://fixture/implied"
    for name in ("a", "sub/b", "sub/deep/c"):
        write(fs, f"{base}/{name}", name.encode())

    assert fs.get_children(base) == ["a", "sub"]
    assert fs.get_children(f"{base}/sub") == ["b", "deep"]
    assert fs.is_directory(f"{base}/sub/deep")
    assert fs.read_file(f"{base}/sub/deep/c") == b"sub/deep/c"
    with pytest.raises(errors.FailedPreconditionError, match="not empty"):
        fs.delete_dir(f"{base}/sub")
    for missing in ("none", "sub/none", "a/none"):
        with pytest.raises(errors.NotFoundError):
            fs.get_children(f"{base}/{missing}")
    with pytest.raises(errors.FailedPreconditionError, match="not a directory"):
        fs.get_children(f"{base}/a")


# ---- Errors ----


def test_a_wrong_key_is_a_denied_permission(client, distant_s3, serve):
    fs = serve(made(client, distant_s3.endpoint))
    distant_s3.set(refuse="InvalidAccessKeyId")
    try:
        assert_fails(fs, "fixture", errors.PermissionDeniedError)
    finally:
        distant_s3.set(refuse="")


def test_a_bucket_that_is_not_there_is_not_found_and_a_server_is_unavailable(
    client, s3_store, serve
):
    names = {'"fixture"': '"no-bucket"'} if client == "obstore" else {}
    assert_fails(serve(made(client, s3_store.endpoint, **names)), "no-bucket", errors.NotFoundError)
    gone = serve(made(client, "http://127.0.0.1:1", **ONCE[client]))
    assert_fails(gone, "fixture", errors.UnavailableError)


def assert_fails(fs, bucket, expected):
    """Check that each way to use a store raises an error of a class that names the path."""
    uri = f"mine://{bucket}/folder/file"
    for call in (
        lambda: fs.stat(uri),
        lambda: fs.get_children(f"mine://{bucket}/folder"),
        lambda: fs.new_random_access_file(uri),
        lambda: write(fs, uri, b"x"),
        lambda: fs.copy_file(uri, f"{uri}2"),
        lambda: fs.delete_recursively(uri),
    ):
        with pytest.raises(errors.ModularTFError) as caught:
            call()
        assert type(caught.value) is expected, caught.value
        assert "Debug source" not in str(caught.value)
        assert "<?xml" not in str(caught.value)
