"""Secrets in URIs are left out of messages and of the log; everything else stays."""

from __future__ import annotations

import logging

import pytest

from modular_tf.errors import NotFoundError
from modular_tf.events import EventLog
from modular_tf.redaction import hide, redacted, show_again

_OSS = "oss://bucket\x01id=me\x02key=a+b=c\x02host=example.com:80/folder/file"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (_OSS, "oss://bucket\x01id=***\x02key=***\x02host=example.com:80/folder/file"),
        (repr(_OSS), repr("oss://bucket\x01id=***\x02key=***\x02host=example.com:80/folder/file")),
        ("stat 'http://me:pass@host/x': no", "stat 'http://me:***@host/x': no"),
        ("'http://me:p@ss@host/x@y'", "'http://me:***@host/x@y'"),
        ("'https://ghp_16C7e42F292c6912E7@host/x'", "'https://***@host/x'"),
        ("abfs://container-of-2024@account/x", "abfs://container-of-2024@account/x"),
        ("hdfs://someone@host/x", "hdfs://someone@host/x"),
        ("s3://bucket-with-a-long-name-1/a@b", "s3://bucket-with-a-long-name-1/a@b"),
        ("http://host/x?a=1&X-Amz-Signature=ab&b=2", "http://host/x?a=1&X-Amz-Signature=***&b=2"),
        ("https://host/x?sv=1&sig=a%2Fb", "https://host/x?sv=1&sig=***"),
        ("s3://bucket/key=value/a:b@c?x=1", "s3://bucket/key=value/a:b@c?x=1"),
        ("http://127.0.0.1:80/a and http://host:81", "http://127.0.0.1:80/a and http://host:81"),
        ("bucket\x01id=me\x02key=b/folder: no", "bucket\x01id=***\x02key=***/folder: no"),
        ("a path as repr shows it: 'b\\x02key=b'", "a path as repr shows it: 'b\\x02key=***'"),
        ("no URI, and no parameter of a host: key=b", "no URI, and no parameter of a host: key=b"),
    ],
)
def test_only_secrets_are_hidden(text, shown):
    assert redacted(text) == shown


def test_errors_and_events_show_none(caplog):
    error = NotFoundError(f"stat {_OSS!r}: nothing is there", path=_OSS)
    assert "a+b=c" not in f"{error} {error!r} {error.args} {error.strerror}"
    assert error.path == _OSS  # whoever catches it may go on with it

    with caplog.at_level(logging.DEBUG):
        EventLog("test").bind(uri=_OSS).warning("something.happened", path=_OSS)
    assert "something.happened" in caplog.text
    assert "a+b=c" not in caplog.text


def test_a_secret_of_several_lines_is_hidden_as_repr_shows_it():
    key = "-----BEGIN KEY-----\nabcdef\n-----END KEY-----\n"
    hide("test", [key])
    try:
        assert redacted(f"{key} and {[key]}") == "*** and ['***']"
    finally:
        show_again("test")
