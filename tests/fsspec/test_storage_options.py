"""Options of other filesystems: met by the environment, followed by an instance, or refused."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from modular_tf.fsspec import IgnoredOptionWarning
from modular_tf.fsspec import options as storage
from modular_tf.fsspec.options import Options, environment_of, public_part
from modular_tf.loading.published import storage_options, storage_options_of

IO = "/somewhere/libtensorflow_io_plugins.so"
GCS = "/somewhere/libtensorflow_io_gcs_filesystem.so"
LIBRARY = {"gs": GCS}
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-with-data-libraries.md"


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch):
    for row in storage_options():
        for variable in row.variables.values():
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(storage, "_reported", set())


def refusal(scheme, options, library=None):
    with pytest.raises(TypeError) as caught:
        environment_of(scheme, library or LIBRARY.get(scheme, IO), options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "option", "words"),
    [
        ("s3", {"anon": "VALUE-42"}, "expected True or False"),
        ("s3", {"requester_pays": True}, "the plugin cannot ask for it"),
        ("s3", {"s3_additional_kwargs": {"ServerSideEncryption": "VALUE-42"}}, "sends nothing"),
        ("s3", {"config_kwargs": {"signature_version": "VALUE-42"}}, "anon=True"),
        ("s3", {"config_kwargs": {"s3": {"use_accelerate_endpoint": True}}}, "no such setting"),
        ("s3", {"use_ssl": False}, "begin S3_ENDPOINT with http://"),
        ("s3", {"use_ssl": False, "endpoint_url": "https://VALUE-42"}, "begin S3_ENDPOINT"),
        ("s3", {"key": ["VALUE-42"]}, "expected a text, for AWS_ACCESS_KEY_ID"),
        ("gs", {"token": "VALUE-42"}, "expected the path of a file with credentials"),
        ("gs", {"token": {"VALUE-42": 1}}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az", {"account_name": "VALUE-42"}, "az://account/"),
        ("az", {"connection_string": "VALUE-42"}, "TF_AZURE_STORAGE_KEY"),
    ],
)
def test_a_refusal_names_option_and_remedy_and_no_value(scheme, option, words):
    message = refusal(scheme, option)

    assert words in message
    assert next(iter(option)) in message
    assert "VALUE-42" not in message


@pytest.mark.parametrize(
    ("scheme", "options", "environment"),
    [
        (
            "s3",
            {"key": "a", "secret": "b"},
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        ),
        ("s3", {"profile": "work"}, {"AWS_PROFILE": "work"}),
        ("s3", {"endpoint_url": "http://x/"}, {"S3_ENDPOINT": "http://x"}),
        ("s3", {"client_kwargs": {"endpoint_url": "http://x"}}, {"S3_ENDPOINT": "http://x"}),
        ("s3", {"client_kwargs": {"region_name": "r", "verify": True}}, {"AWS_REGION": "r"}),
        ("gs", {"project": "p"}, {"GOOGLE_CLOUD_PROJECT": "p"}),
        ("gs", {"token": Path(__file__)}, {"GOOGLE_APPLICATION_CREDENTIALS": __file__}),
        ("az", {"account_key": "k"}, {"TF_AZURE_STORAGE_KEY": "k"}),
        ("az", {"anon": True}, {"TF_AZURE_STORAGE_KEY": None, "TF_AZURE_STORAGE_SAS": None}),
    ],
)
def test_options_are_the_environment_of_an_instance(scheme, options, environment):
    assert environment_of(scheme, LIBRARY.get(scheme, IO), options) == environment


def test_a_secret_that_ends_in_a_slash_stays_whole(monkeypatch):
    """As 1 of 64 secret keys of AWS does."""
    variable = "AWS_SECRET_ACCESS_KEY"
    monkeypatch.setenv(variable, "secret")
    assert environment_of("s3", IO, {"secret": "secret/"})[variable] == "secret/"
    monkeypatch.setenv(variable, "secret/")
    assert environment_of("s3", IO, {"secret": "secret/"}) == {}


TUNING = {
    "max_concurrency": 20,
    "default_block_size": 1 << 20,
    "default_cache_type": "readahead",
    "default_fill_cache": False,
    "config_kwargs": {
        "max_pool_connections": 50,
        "retries": {"max_attempts": 5},
        "connect_timeout": 5,
        "read_timeout": 5,
        "s3": {"addressing_style": "path"},
        "signature_version": "s3v4",
    },
}


def test_options_that_tune_another_client_are_told_of_once(recwarn):
    account = {"key": "k", "endpoint_url": "http://127.0.0.1:1", "use_ssl": False}
    warnings.simplefilter("always")  # Python's own memory of what was told does not count
    for _ in range(2):
        found = environment_of("s3", IO, {**account, **TUNING})
        assert found == {"AWS_ACCESS_KEY_ID": "k", "S3_ENDPOINT": "http://127.0.0.1:1"}
    (warning,) = recwarn.list
    assert warning.category is IgnoredOptionWarning
    message = str(warning.message)
    assert "'max_concurrency'" in message
    assert "'config_kwargs.read_timeout' (set S3_REQUEST_TIMEOUT_MSEC" in message
    assert "50" not in message


def test_a_switch_for_tls_is_met_by_an_endpoint_that_says_the_same(monkeypatch):
    monkeypatch.setenv("S3_ENDPOINT", "http://127.0.0.1:1")
    assert environment_of("s3", IO, {"use_ssl": False}) == {}
    assert environment_of("s3", IO, {"client_kwargs": {"use_ssl": False}}) == {}


def test_without_an_account_none_is_left(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    found = environment_of("s3", IO, {"anon": True})
    assert found["AWS_ACCESS_KEY_ID"] is None
    assert found["AWS_SHARED_CREDENTIALS_FILE"] == "/dev/null"


def test_what_belongs_to_another_account_is_unset(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of mine")
    theirs = {"key": "k", "secret": "s"}
    assert environment_of("s3", IO, theirs)["AWS_SESSION_TOKEN"] is None
    assert environment_of("s3", IO, {**theirs, "token": "t"})["AWS_SESSION_TOKEN"] == "t"
    profile = environment_of("s3", IO, {"profile": "work"})
    assert profile == {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": None, "AWS_SESSION_TOKEN": None}


def test_options_that_say_what_the_environment_says_need_no_instance(monkeypatch):
    monkeypatch.setenv("S3_ENDPOINT", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("S3_VERIFY_SSL", "0")
    met = {
        "key": "me",
        "token": None,
        "anon": False,
        "endpoint_url": "http://127.0.0.1:9000/",
        "client_kwargs": {"endpoint_url": "http://127.0.0.1:9000", "verify": False},
        "config_kwargs": {},
        "asynchronous": True,
    }
    assert environment_of("s3", IO, met) == {}


def test_neither_value_is_told_nor_are_those_of_pickled_options(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "OURS")
    message = refusal("s3", {"secret": "THEIRS", "nonsense": "THEIRS"})

    assert "'nonsense': the plugin has no such setting" in message
    assert "OURS" not in message
    assert "THEIRS" not in message
    assert repr(Options(key="VALUE-42", secret="VALUE-43")) == "Options(key, secret)"


def test_a_plugin_that_nothing_is_known_of_refuses_all():
    assert "no such setting" in refusal("s3", {"key": "x"}, "/other/plugin.so")
    with pytest.raises(TypeError, match="'key'"):
        environment_of("mine", None, {"key": "x"})


def test_what_tells_accounts_apart_has_no_secret():
    one = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}
    assert public_part({}) == ""
    assert public_part(one) == public_part({**one, "AWS_SECRET_ACCESS_KEY": "t"})
    assert public_part(one) != public_part({**one, "AWS_ACCESS_KEY_ID": "b"})


@pytest.mark.wild
def test_the_plugins_have_every_variable_that_is_named(wild_plugins):
    for library in (wild_plugins.io_library, wild_plugins.gcs_library):
        code = library.read_bytes()
        rows = [r for r in storage_options() if storage_options_of(str(library), r.schemes[0]) is r]
        assert rows
        for row in rows:
            unset = {name for names in row.unset_with.values() for name in names}
            named = {*row.variables.values(), *row.unset_with, *unset, *row.files}
            missing = {name for name in named if name.encode() not in code}
            assert missing == set()


def test_the_page_tells_of_options_and_variables_that_there_are():
    section = PAGE.read_text(encoding="utf-8").partition("{#options}")[2]
    rows = re.findall(r"^\| (`.*) \| `(\w+)` \| (.*) \|$", section, re.MULTILINE)

    assert len(rows) > 5
    for options, scheme, remedy in rows:
        known = storage_options_of(LIBRARY.get(scheme, IO), scheme)
        named = set(re.findall(r"`(\w+)`", options)) - {"client_kwargs"}
        assert {name for name in named if not any(o.endswith(name) for o in known.names)} == set()
        variables = set(re.findall(r"`([A-Z_0-9]+)`", remedy))
        assert variables <= set(known.variables.values())
