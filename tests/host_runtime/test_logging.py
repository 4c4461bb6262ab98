"""What a plugin logs comes out, once, where and when it should."""

from __future__ import annotations

import re
import signal

import pytest

import modular_tf

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: (?P<level>[IWEFV]) plugin\] (?P<text>.*)"
)


def lines_of(stderr):
    """Return `LEVEL text` of each line, which all have the documented shape."""
    matches = [LINE.fullmatch(line) for line in stderr.splitlines()]
    assert None not in matches, stderr
    return [f"{match['level']} {match['text']}" for match in matches if match]


ALL = ["I info 1", "W warning two", "E error 3.0", "V vlog 0"]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ALL),
        ({"TF_CPP_MIN_LOG_LEVEL": "", "TF_CPP_MAX_VLOG_LEVEL": "x"}, ALL),
        ({"TF_CPP_MIN_LOG_LEVEL": "3"}, ALL[3:]),
        ({"TF_CPP_MAX_VLOG_LEVEL": "-1"}, ALL[:3]),
        (
            {"TF_CPP_MAX_VLOG_LEVEL": "5", "TF_CPP_MIN_LOG_LEVEL": "2"},
            [*ALL[2:], "V vlog 1", "V vlog 2", "V dvlog 1", "V dvlog 2"],
        ),
    ],
)
def test_the_environment_chooses_the_lines(run_case, env, expected):
    child = run_case("logging", "one_line_of_each_kind", env=env)

    assert expected == lines_of(child.stderr)
    assert child.stdout == "passed\n"


def test_a_sink_takes_the_place_of_stderr(run_case):
    child = run_case("logging", "lines_to_a_sink", env={"TF_CPP_MAX_VLOG_LEVEL": "1"})

    assert child.stdout.splitlines() == [
        "0 info 1",
        "1 warning two",
        "2 error 3.0",
        "-1 vlog 0",
        "-2 vlog 1",
        "-2 dvlog 1",
        "passed",
    ]
    assert lines_of(child.stderr) == ["W after the sink"]


def test_single_lines(run_case):
    refused = run_case("logging", "lines_that_the_sink_refuses")
    assert lines_of(refused.stderr) == ["E refused"]
    named = run_case("logging", "a_line_with_its_source")
    assert lines_of(named.stderr) == ["I source.c:7] text"]
    run_case("logging", "whose_lines_they_are")
    ending = run_case("logging", "newlines_at_the_end")
    assert ending.stdout == "0 two\nlines\n0 \npassed\n"
    long = run_case("logging", "a_long_line")
    assert lines_of(long.stderr) == ["I " + "x" * 100000 + "|"]
    unknown = run_case("logging", "severities_outside_the_list")
    assert unknown.stdout == "2 four\n2 minus one\npassed\n"
    version = run_case("logging", "print_the_version")
    assert version.stdout.splitlines()[0] == modular_tf.__version__


def test_lines_of_threads_do_not_mix(run_case):
    lines = lines_of(run_case("logging", "lines_of_many_threads").stderr)

    assert sorted(lines) == [f"I {letter * 126} end" for letter in "abcd" for _ in range(200)]


@pytest.mark.parametrize("env", [{}, {"TF_CPP_MIN_LOG_LEVEL": "4"}])
def test_a_fatal_line_is_written_before_the_end(run_case, env):
    child = run_case("logging", "fatal_to_stderr", env=env, status=-signal.SIGABRT)

    assert lines_of(child.stderr) == ["F the end of things"]
    assert child.stdout == ""


def test_a_fatal_line_reaches_the_sink_before_the_end(run_case):
    child = run_case("logging", "fatal_to_a_sink", status=-signal.SIGABRT)

    assert (child.stdout, child.stderr) == ("3 the end\n", "")


def test_log_messages_of_cpp_plugins(run_case):
    everything = run_case("tsl", "log_messages_of_each_severity")
    errors = run_case("tsl", "log_messages_of_each_severity", env={"TF_CPP_MIN_LOG_LEVEL": "2"})
    in_parts = run_case("tsl", "log_messages_in_their_parts")

    prefix = "dir/source.cc:42] severity"
    assert lines_of(everything.stderr) == [f"I {prefix} 0", f"W {prefix} 1", f"E {prefix} 2"]
    assert lines_of(errors.stderr) == [f"E {prefix} 2"]
    expected = [f"{level} dir/source.cc 42 severity {level} ours" for level in range(3)]
    assert in_parts.stdout.splitlines() == [*expected, "passed"]


@pytest.mark.parametrize(("article", "by"), [("a", ""), ("an_older", "_of_older_plugins")])
def test_a_failed_check_of_a_cpp_plugin_is_written_or_reaches_the_sink(run_case, article, by):
    written = run_case("tsl", f"a_fatal_message{by}", status=-signal.SIGABRT)
    in_parts = run_case("tsl", f"{article}_fatal_message_in_its_parts", status=-signal.SIGABRT)

    assert lines_of(written.stderr) == ["F dir/source.cc:42] checked 1"]
    assert in_parts.stdout.splitlines() == ["3 dir/source.cc 42 checked 1 ours"]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ["1000", "1000", "1000"]),
        ({"TF_CPP_MAX_VLOG_LEVEL": "1"}, ["1100", "1100", "1100"]),
        ({"TF_CPP_VMODULE": "oss_filesystem=2,plain=1"}, ["1110", "1000", "1100"]),
        ({"TF_CPP_VMODULE": "oss=3,,=,other,plain=x,other=3"}, ["1000", "1111", "1000"]),
    ],
)
def test_vmodule_chooses_source_files(run_case, env, expected):
    assert run_case("tsl", "print_vmodule", env=env).stdout.splitlines() == [*expected, "passed"]


def test_what_cannot_go_on_says_why(run_case):
    no_thread = run_case("threads", "a_thread_that_cannot_start", status=-signal.SIGABRT)
    no_file = run_case("temporary_files", "no_place_for_a_temporary_file", status=-signal.SIGABRT)

    (line,) = lines_of(no_thread.stderr)
    assert line.startswith("F cannot start thread 'giant': ")
    (line,) = lines_of(no_file.stderr)
    assert "TMPDIR" in line
