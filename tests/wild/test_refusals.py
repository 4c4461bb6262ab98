"""What a store refuses is told as a refusal, with what was asked, by which variables, and why."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import socket
from textwrap import dedent
from urllib.parse import urlsplit

import pytest

from tests.emulators.conversation import ask

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_QUESTIONS = 5
_USED = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


@pytest.fixture
def refusing(distant_s3):
    """Return the store with settings for one test, as which it answers."""

    def settings(**wanted):
        distant_s3.set(**wanted)
        return distant_s3

    yield settings
    distant_s3.set(refuse="", deny="", region="")


_EVERY_QUESTION = """
    def read(name):
        with fs.new_random_access_file(name) as file:
            return file.read(0, 10)

    for ask in (fs.stat, fs.path_exists, fs.read_file, fs.delete_file, read):
        error = expect_error(errors.PermissionDeniedError, ask, uri("file"))
        print(error)
        expect("secret" in str(error) or "nobody" in str(error), False)
    """


def test_s3_refusals_are_not_found(refusing, run_subject):
    """The plugin says NOT_FOUND for what it may not see, as if nothing were there."""
    store = refusing(refuse="InvalidAccessKeyId")
    told = run_subject(store, _EVERY_QUESTION).stdout
    where = store.endpoint.removeprefix("http://")
    assert all(
        where in line and "in 'fixture'" in line and _USED in line for line in told.splitlines()
    )
    assert "refused stat in" in told
    code = "expect(fs.path_exists(uri('file')), False)"
    run_subject(store, code, without="_find")


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"refuse": "InvalidAccessKeyId"}, "correct AWS_ACCESS_KEY_ID"),
        ({"refuse": "SignatureDoesNotMatch"}, "correct AWS_SECRET_ACCESS_KEY"),
        ({"deny": "read"}, "have them allowed"),
        ({"region": "eu-west-1"}, "set AWS_REGION"),
    ],
)
def test_s3_refusals_are_brief(refusing, run_subject, settings, remedy):
    store = refusing(**settings)
    code = "print(expect_error(errors.ModularTFError, fs.stat, uri('file')))"
    assert remedy in run_subject(store, code).stdout
    assert remedy not in run_subject(store, code, without="remedies").stdout


_REFUSING_SERVER = """
    import http.server, sys, threading

    class Refusal(http.server.BaseHTTPRequestHandler):
        def answer(self):
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Refusal)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for ask in (fs.stat, fs.path_exists, fs.read_file, fs.get_children, put_at):
        print(repr(str(expect_error(errors.PermissionDeniedError, ask, uri("file")))))
    """
_PUT = "put_at = lambda name: put(name.removeprefix(f'{base}/'))"


@pytest.fixture
def refused(run_subject, free_port):
    """Return what a plugin's user is told where the server refuses everything."""

    def told(store, without=""):
        own = str(urlsplit(store.endpoint).port)
        environment = {k: v.replace(own, free_port) for k, v in store.environment.items()}
        base_uri = store.base_uri.replace(own, free_port)
        moved = dataclasses.replace(store, base_uri=base_uri, environment=environment)
        code = f"{_PUT}\n{dedent(_REFUSING_SERVER)}"
        status = 1 if without else 0
        child = run_subject(moved, code, free_port, without=without, status=status)
        assert "secret" not in child.stdout + child.stderr
        return child.stdout

    return told


@pytest.fixture
def free_port():
    """A port on which nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return str(reserved.getsockname()[1])


def test_oss_refusals_are_not_found(refused, oss_store):
    told = refused(oss_store).splitlines()
    assert all("correct the id and the key" in line for line in told)
    assert len(told) == _QUESTIONS
    refused(oss_store, without="denied_message")


def test_gs_refusals_are_brief(refused, gcs_store):
    told = refused(gcs_store).splitlines()
    assert all("GOOGLE_APPLICATION_CREDENTIALS not set" in line for line in told)
    assert len(told) == _QUESTIONS


def test_az_refusals_are_internal(azure_store, run_subject):
    key = base64.b64encode(b"of another account").decode()
    environment = {**azure_store.environment, "TF_AZURE_STORAGE_KEY": key}
    store = dataclasses.replace(azure_store, environment=environment)
    code = """
        for ask in (fs.stat, fs.path_exists, fs.read_file, fs.get_children, fs.delete_file):
            print(repr(str(expect_error(errors.PermissionDeniedError, ask, uri("file")))))
        """
    told = run_subject(store, code).stdout
    assert told.count("correct TF_AZURE_STORAGE_KEY") == len(told.splitlines())
    assert key not in told
    code = "expect_error(errors.InternalError, fs.stat, uri('file'))"
    run_subject(store, code, without="denied_message")


def test_what_cannot_be_written_is_told_with_the_variables(refusing, run_subject):
    store = refusing(deny="write")
    told = run_subject(store, "print(expect_error(errors.PermissionDeniedError, put, 'file'))")
    assert "refused close in 'fixture'" in told.stdout
    assert _USED in told.stdout


def test_without_keys_the_message_names_the_variables(refusing, run_subject):
    store = refusing(refuse="AccessDenied")
    keys = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": "/nonexistent"}
    code = "print(expect_error(errors.PermissionDeniedError, fs.stat, uri('file')))"
    told = run_subject(store, code, env=keys).stdout
    assert "AWS_SESSION_TOKEN not set" in told
    assert "AWS_PROFILE" in told


def test_a_missing_bucket_is_told(refusing, run_subject):
    store = dataclasses.replace(refusing(), base_uri="s3://elsewhere")
    code = """
        for ask in (fs.stat, fs.read_file, fs.get_children):
            print(expect_error(FileNotFoundError, ask, uri("file")))
        expect(fs.path_exists(uri("file")), False)
        """
    for line in run_subject(store, code).stdout.splitlines():
        assert "'elsewhere'" in line
        assert "does not exist there" in line


def test_what_is_missing_beside_readable_files_takes_no_further_request(refusing, run_subject):
    store = refusing()
    run_subject(
        store,
        """
        import urllib.request

        def control(method):
            url = os.environ["S3_ENDPOINT"] + "/-/requests"
            return urllib.request.urlopen(urllib.request.Request(url, method=method)).read()

        expect(fs.path_exists(uri("missing")), False)
        control("DELETE")
        expect(fs.path_exists(uri("missing-too")), False)
        print(control("GET").decode())
        """,
    )
    found = json.loads(ask("GET", f"{store.endpoint}/-/requests").body)
    assert found["requests"] == {"HEAD": 1, "list": 1}


def test_s3_ignores_the_usual_endpoint(distant_s3, run_subject):
    environment = dict(distant_s3.environment)
    environment["AWS_ENDPOINT_URL"] = environment.pop("S3_ENDPOINT")
    store = dataclasses.replace(distant_s3, environment=environment)
    run_subject(store, "put('file', b'content'); expect(get('file'), b'content')")
    own = dataclasses.replace(
        distant_s3,
        environment={**distant_s3.environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
    )
    run_subject(own, "expect(get('file'), b'content')")  # the plugin's own variable wins


def test_the_profile_and_its_region_are_used(distant_s3, run_subject, tmp_path):
    """The SDK in the plugin reads the files of the profile; only an endpoint in them is ignored."""
    folder = tmp_path / ".aws"
    folder.mkdir()
    keys = "aws_access_key_id=of-profile\naws_secret_access_key=secret\n"
    (folder / "credentials").write_text(f"[other]\n{keys}")
    (folder / "config").write_text("[profile other]\nregion=ap-south-1\n")
    environment = {
        name: value
        for name, value in distant_s3.environment.items()
        if name not in {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}
    }
    environment |= {"AWS_PROFILE": "other", "HOME": str(tmp_path)}
    store = dataclasses.replace(distant_s3, environment=environment)
    distant_s3.set(region="ap-south-1")
    try:
        run_subject(store, "put('file', b'content'); expect(get('file'), b'content')")
    finally:
        distant_s3.set(region="")


def test_an_endpoint_without_a_scheme_is_told(distant_s3, run_subject):
    address = distant_s3.endpoint.removeprefix("http://")
    environment = {**distant_s3.environment, "S3_ENDPOINT": address}
    store = dataclasses.replace(distant_s3, environment=environment)
    code = "print(expect_error(ConnectionError, fs.stat, uri('file')))"
    told = run_subject(store, code, timeout=20).stdout
    assert "S3_ENDPOINT names no scheme" in told
    assert f"which {address} does not" in told
    assert "http://" in told


def test_without_a_network_the_default_server_is_told(distant_s3, run_subject):
    environment = {k: v for k, v in distant_s3.environment.items() if k != "S3_ENDPOINT"}
    store = dataclasses.replace(distant_s3, environment=environment)
    code = """
        import socket

        def nowhere(*arguments, **options):
            raise socket.gaierror(socket.EAI_NONAME, "no name server here")

        socket.getaddrinfo = nowhere
        error = expect_error(ConnectionError, fs.stat, uri("file"))
        print(error)
        """
    told = run_subject(store, code, timeout=20).stdout
    assert "has no address" in told
    assert "set S3_ENDPOINT" in told


def test_a_name_that_is_not_answered_is_given_up(distant_s3, run_subject):
    environment = {**distant_s3.environment, "S3_ENDPOINT": "http://somewhere.invalid:9"}
    store = dataclasses.replace(distant_s3, environment=environment)
    code = """
        import socket, time
        socket.getaddrinfo = lambda *_, **__: time.sleep(60)
        print(expect_error(ConnectionError, fs.stat, uri("file")))
        """
    assert "no answer to the name" in run_subject(store, code, timeout=20).stdout


def test_no_key_in_a_uri_reaches_a_message_a_log_or_a_repr(oss_store, run_subject):
    child = run_subject(
        oss_store,
        """
        import logging
        logging.basicConfig(level=logging.DEBUG)
        put("file")
        for ask in (fs.stat, fs.read_file, fs.get_children, fs.delete_file):
            error = expect_error(FileNotFoundError, ask, uri("missing"))
            print(error, repr(error))
        with fs.open(uri("file"), "rb") as stream, fs.open(uri("new"), "wb") as writer:
            writer.write(b"content")
            print(repr(stream), repr(writer))
        """,
    )
    assert "host=localhost" in child.stdout
    assert "secret" not in child.stdout + child.stderr


def test_a_port_that_is_closed_is_told_with_the_variable(distant_s3, run_subject):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        environment = {**distant_s3.environment, "S3_ENDPOINT": f"http://{address}"}
        store = dataclasses.replace(distant_s3, environment=environment)
        code = "print(expect_error(ConnectionError, fs.stat, uri('file')))"
        told = run_subject(store, code, timeout=20).stdout
    assert f"{address} accepts no connection" in told
    assert "S3_ENDPOINT names it" in told


def test_s3_ignores_the_endpoint_of_the_profile(distant_s3, run_subject, tmp_path):
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "config").write_text("[profile other]\nendpoint_url = http://127.0.0.1:1\n")
    code = """
        try:
            fs.path_exists(base)
        except ConnectionError:
            pass
        [plugin] = service.load().plugins
        print(*(w.message for w in plugin.warnings if w.rule == "LD-057"), sep="\\n")
        """

    def told(**more):
        environment = {**distant_s3.environment, "HOME": str(tmp_path), **more}
        store = dataclasses.replace(distant_s3, environment=environment)
        return run_subject(store, code, timeout=40).stdout.strip()

    assert told(AWS_PROFILE="other") == ""  # the variable names the store
    assert told(AWS_PROFILE="other", S3_ENDPOINT="") == (
        f"'s3': endpoint_url of the profile 'other' in {folder}/config is not read by the plugin;"
        " set S3_ENDPOINT to its value"
    )


_ASKED = """
    import modular_tf.fsspec
    from modular_tf import gfile

    path, kind = sys.argv[1], getattr(errors, sys.argv[2])
    files = mtf.fsspec.filesystem_class("s3")(service=service)
    functions = gfile.using(service)
    for name in ("info", "ls", "find", "du"):
        expect_error(kind, getattr(files, name), path)
    expect_error(kind, files.glob, f"{path}/*")
    expect_error(kind, files.glob, f"{path}/**")
    for name in ("stat", "listdir"):
        expect_error(kind, getattr(functions, name), f"s3://{path}")
    expect_error(kind, functions.glob, f"s3://{path}/*")
    if kind is errors.PermissionDeniedError:
        expect_error(kind, files.exists, path)
        expect_error(kind, functions.exists, f"s3://{path}")
    else:
        expect([files.exists(path), functions.exists(f"s3://{path}")], [False, False])
"""


@pytest.mark.parametrize(
    ("settings", "path", "error"),
    [
        ({}, "nobucket", "NotFoundError"),
        ({}, "nobucket/x", "NotFoundError"),
        ({"deny": "list"}, "fixture", "PermissionDeniedError"),
        ({"deny": "list"}, "fixture/d", "PermissionDeniedError"),
    ],
)
def test_every_face_tells_a_missing_bucket_and_a_refused_listing(
    refusing, run_subject, settings, path, error
):
    run_subject(refusing(**settings), "import sys\n" + dedent(_ASKED), path, error)


@pytest.fixture
def fs_command(run_python, wild_plugins):
    """Run `modular-tf fs ...` against a store, and return what it says on standard error."""

    def run(store, *arguments, status=1):
        places = [*filter(None, [os.environ.get("PYTHONPATH")]), str(wild_plugins.site_dir)]
        environment = {**store.environment, "PYTHONPATH": os.pathsep.join(places)}
        code = "import sys; from modular_tf.cli.main import run; sys.exit(run())"
        return run_python(code, "fs", *arguments, env=environment, status=status).stderr

    return run


@pytest.mark.parametrize(
    "words", ["ls s3://B", "du s3://B/x", "glob s3://B/*", "sync -n F s3://B/t", "cp -r F s3://B/t"]
)
def test_a_command_tells_a_missing_bucket_once(distant_s3, fs_command, tmp_path, words):
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    names = {"s3://B": "s3://nobucket", "F": str(tmp_path)}
    said = fs_command(
        distant_s3,
        *(
            word.replace("s3://B", "s3://nobucket") if word not in names else names[word]
            for word in words.split()
        ),
    )

    assert said.count("the bucket does not exist") == 1
    assert len([line for line in said.splitlines() if line.startswith("modular-tf: ")]) == 1


def test_a_file_of_a_bucket_that_may_not_be_listed_is_read_as_a_file(
    refusing, run_subject, fs_command, tmp_path
):
    run_subject(refusing(), "put('readable', b'content')", folder="unlisted")
    store = refusing(deny="list")
    file = f"{store.base_uri}/unlisted/readable"
    fs_command(store, "ls", file, status=0)
    fs_command(store, "cp", "-r", file, str(tmp_path / "copy"), status=0)

    assert (tmp_path / "copy").read_bytes() == b"content"
