"""What a store refuses is reported as such, with what was asked, by which variables, and why."""

from __future__ import annotations

import base64
import dataclasses
from http import HTTPStatus

import pytest

from tests.fixtures.emulators import NO_PROXY, Store, answering

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_USED = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_STAT = "print(expect_error({}, fs.stat, uri('file')))"


@pytest.fixture
def refusing(distant_s3):
    """Return the store with settings for one test, as which it answers."""

    def settings(**wanted):
        distant_s3.set(**wanted)
        return distant_s3

    yield settings
    distant_s3.set(refuse="", deny="", region="")


def with_environment(store, *left_out, **more):
    kept = {name: value for name, value in store.environment.items() if name not in left_out}
    return dataclasses.replace(store, environment={**kept, **more})


def test_s3_refusals_are_not_found(refusing, run_subject):
    """The plugin says NOT_FOUND for what it may not see, as if nothing were there."""
    store = refusing(refuse="InvalidAccessKeyId")
    output = run_subject(
        store,
        """
        def read(name):
            with fs.new_random_access_file(name) as file:
                return file.read(0, 10)

        for ask in (fs.stat, fs.path_exists, fs.read_file, fs.delete_file, read):
            error = expect_error(errors.PermissionDeniedError, ask, uri("file"))
            print(error)
            expect("secret" in str(error) or "nobody" in str(error), False)
        """,
    ).stdout
    for words in (store.endpoint.removeprefix("http://"), "in 'fixture'", _USED):
        assert output.count(words) >= 5
    assert "refused stat in" in output
    run_subject(store, "expect(fs.path_exists(uri('file')), False)", without="_find")


def test_s3_refusals_are_brief(refusing, run_subject):
    store = refusing()
    code = """
        for settings, remedy in (
            (dict(refuse="InvalidAccessKeyId"), "correct AWS_ACCESS_KEY_ID"),
            (dict(refuse="SignatureDoesNotMatch"), "correct AWS_SECRET_ACCESS_KEY"),
            (dict(deny="read"), "have them allowed"),
            (dict(region="eu-west-1"), "set AWS_REGION"),
        ):
            set_up(**{"refuse": "", "deny": "", "region": "", **settings})
            error = expect_error(errors.ModularTFError, fs.stat, uri("file"))
            expect((remedy, remedy in str(error)), (remedy, sys.argv[1] == "with remedies"))
        """
    run_subject(store, code, "with remedies")
    run_subject(store, code, "without", without="remedies")


_REFUSED_CALLS = """
    def put_at(name):
        put(name.removeprefix(f"{base}/"))

    for ask in (fs.stat, fs.path_exists, fs.read_file, fs.get_children, put_at):
        print(repr(str(expect_error(errors.PermissionDeniedError, ask, uri("file")))))
    """


@pytest.fixture(scope="module")
def forbidding(tmp_path_factory):
    """The endpoint of a server that refuses all requests."""
    with answering(tmp_path_factory.mktemp("forbidding"), HTTPStatus.FORBIDDEN) as endpoint:
        yield endpoint


def test_oss_refusals_are_not_found(forbidding, run_subject):
    host = forbidding.replace("http://127.0.0.1", "localhost")
    store = Store("", f"oss://fixture\x01id=nobody\x02key=secret\x02host={host}", NO_PROXY)
    child = run_subject(store, _REFUSED_CALLS)
    assert child.stdout.count("correct the id and the key") == 5
    raw = run_subject(store, _REFUSED_CALLS, without="denied_message", status=1)
    assert "secret" not in child.stdout + child.stderr + raw.stdout + raw.stderr


def test_gs_refusals_are_brief(forbidding, run_subject):
    environment = {"CLOUD_STORAGE_EMULATOR_ENDPOINT": forbidding, **NO_PROXY}
    child = run_subject(Store("", "gs://fixture", environment), _REFUSED_CALLS)
    assert child.stdout.count("GOOGLE_APPLICATION_CREDENTIALS not set") == 5


def test_az_refusals_are_internal(azure_store, run_subject):
    key = base64.b64encode(b"of another account").decode()
    store = with_environment(azure_store, TF_AZURE_STORAGE_KEY=key)
    code = """
        for ask in (fs.stat, fs.path_exists, fs.read_file, fs.get_children, fs.delete_file):
            print(repr(str(expect_error(errors.PermissionDeniedError, ask, uri("file")))))
        """
    output = run_subject(store, code).stdout
    assert output.count("correct TF_AZURE_STORAGE_KEY") == 5
    assert key not in output
    run_subject(store, _STAT.format("errors.InternalError"), without="denied_message")


def test_a_missing_bucket_is_named_and_a_missing_file_takes_no_further_request(
    refusing, run_subject
):
    run_subject(
        refusing(),
        """
        for ask in (fs.stat, fs.read_file, fs.get_children):
            error = expect_error(FileNotFoundError, ask, "s3://elsewhere/file")
            for words in ("'elsewhere'", "does not exist there"):
                expect((words, words in str(error)), (words, True))
        expect(fs.path_exists("s3://elsewhere/file"), False)
        expect(fs.path_exists(uri("missing")), False)  # beside files that may be read
        look = lambda: expect(fs.path_exists(uri("missing-too")), False)
        expect(requests_of(look), {"HEAD": 1, "list": 1})
        import modular_tf.fsspec
        files = mtf.fsspec.filesystem_class("s3")(service=service)
        for ask in (files.info, files.find):
            expect_error(errors.NotFoundError, ask, "elsewhere")
        set_up(deny="list")
        for ask in (files.info, files.find):
            expect_error(errors.PermissionDeniedError, ask, "fixture")
        """,
    )


def test_s3_ignores_the_usual_endpoint(distant_s3, run_subject):
    usual = with_environment(distant_s3, "S3_ENDPOINT", AWS_ENDPOINT_URL=distant_s3.endpoint)
    run_subject(usual, "put('file', b'content'); expect(get('file'), b'content')")
    own = with_environment(distant_s3, AWS_ENDPOINT_URL="http://127.0.0.1:1")
    run_subject(own, "expect(get('file'), b'content')")  # the plugin's own variable wins


def test_s3_ignores_the_endpoint_of_the_profile(refusing, run_subject, tmp_path):
    """Its keys and its region the SDK in the plugin reads from the files of the profile."""
    store, folder = refusing(region="ap-south-1"), tmp_path / ".aws"
    folder.mkdir()
    keys = "aws_access_key_id=of-profile\naws_secret_access_key=secret\n"
    (folder / "credentials").write_text(f"[other]\n{keys}")
    (folder / "config").write_text(
        "[profile other]\nregion=ap-south-1\nendpoint_url = http://127.0.0.1:1\n"
    )
    of_profile = {"AWS_PROFILE": "other", "HOME": str(tmp_path)}
    variables = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
    code = """
        try:
            put("file", b"content")
            expect(get("file"), b"content")
            print("served")
        except ConnectionError:
            pass
        [plugin] = service.load().plugins
        print(*(w.message for w in plugin.warnings if w.rule == "LD-057"), sep="\\n")
        """
    named = with_environment(store, *variables, **of_profile)
    assert run_subject(named, code).stdout == "served\n\n"  # the variable names the store
    unnamed = with_environment(store, *variables, **of_profile, S3_ENDPOINT="")
    assert run_subject(unnamed, code, timeout=40).stdout.strip() == (
        f"'s3': endpoint_url of the profile 'other' in {folder}/config is not read by the plugin;"
        " set S3_ENDPOINT to its value"
    )


_NOWHERE = """
    import socket

    def nowhere(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "no name server here")

    socket.getaddrinfo = nowhere
"""
_NO_ANSWER = """
    import socket, time
    socket.getaddrinfo = lambda *_, **__: time.sleep(60)
"""


@pytest.mark.parametrize(
    ("endpoint", "before", "words"),
    [
        ("{live}", "", ("S3_ENDPOINT names no scheme", "which {live} does not", "http://")),
        (None, _NOWHERE, ("has no address", "set S3_ENDPOINT")),
        ("http://somewhere.invalid:9", _NO_ANSWER, ("no answer to the name",)),
        ("http://127.0.0.1:1", "", ("127.0.0.1:1 accepts no connection", "S3_ENDPOINT names it")),
    ],
    ids=["no scheme", "default without a network", "no answer to the name", "closed port"],
)
def test_a_server_that_is_not_there_is_reported_with_the_variable(
    distant_s3, run_subject, endpoint, before, words
):
    live = distant_s3.endpoint.removeprefix("http://")
    named = {} if endpoint is None else {"S3_ENDPOINT": endpoint.format(live=live)}
    store = with_environment(distant_s3, "S3_ENDPOINT", **named)
    code = {"": before, "file": _STAT.format("ConnectionError")}
    output = run_subject(store, code, timeout=20).stdout
    assert [word for word in words if word.format(live=live) not in output] == []


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


def test_a_command_reports_a_missing_bucket_once(distant_s3, run_fs, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    for words in ("ls {}", "du {}/x", "glob {}/*", "sync -n F {}/t", "cp -r F {}/t"):
        done = run_fs(distant_s3, words.format("s3://nobucket"), {"F": tmp_path}, status=1)
        lines = [line for line in done.stderr.splitlines() if line.startswith("modular-tf: ")]
        assert (done.stderr.count("the bucket does not exist"), len(lines)) == (1, 1), words


def test_a_file_of_a_bucket_that_may_not_be_listed_is_read_as_a_file(
    refusing, run_subject, run_fs, tmp_path
):
    run_subject(refusing(), "put('readable', b'content')", folder="unlisted")
    store = refusing(deny="list")
    places = {"U": store.uri("unlisted/readable"), "T": tmp_path / "copy"}
    run_fs(store, "ls U", places)
    run_fs(store, "cp -r U T", places)

    assert (tmp_path / "copy").read_bytes() == b"content"
