"""Every case of the C and C++ subjects passes in a process of its own."""

from __future__ import annotations

import errno
import re

import pytest

from modular_tf.abi.status_codes import Code
from tests.host_runtime.conftest import SUBJECTS

JUDGED_ELSEWHERE = {
    ("status", "print_codes_of_errors"),
    ("temporary_files", "no_place_for_a_temporary_file"),
    ("threads", "a_thread_that_cannot_start"),
    ("tsl", "log_messages_of_each_severity"),
    ("tsl", "log_messages_in_their_parts"),
    ("tsl", "a_fatal_message_in_its_parts"),
    ("tsl", "an_older_fatal_message_in_its_parts"),
    ("tsl", "print_vmodule"),
    ("tsl", "a_fatal_message"),
    ("tsl", "a_fatal_message_of_older_plugins"),
}


def all_cases():
    """Return (subject, case) of each case that judges itself; one process has all of a subject."""
    found = [
        (source.stem, case)
        for source in sorted(SUBJECTS.glob("*.c*"))
        if source.stem != "logging"
        for case in re.findall(r"^CASE\((\w+)\)", source.read_text(), re.MULTILINE)
    ]
    assert set(found) > JUDGED_ELSEWHERE
    return [
        pytest.param(*case, marks=pytest.mark.xdist_group(case[0]))
        for case in found
        if case not in JUDGED_ELSEWHERE
    ]


@pytest.mark.parametrize(("subject", "case"), all_cases())
def test_case(run_case, subject, case):
    child = run_case(subject, case)

    assert (child.stdout, child.stderr) == ("passed\n", "")


# By filesystem-abi §10: every errno value becomes the code that TensorFlow gives it.
ERRORS = {
    Code.INVALID_ARGUMENT: """EINVAL ENAMETOOLONG E2BIG EDESTADDRREQ EDOM EFAULT EILSEQ
        ENOPROTOOPT ENOSTR ENOTSOCK ENOTTY EPROTOTYPE ESPIPE""",
    Code.DEADLINE_EXCEEDED: "ETIMEDOUT ETIME",
    Code.NOT_FOUND: "ENOENT ENODEV ENXIO ESRCH",
    Code.ALREADY_EXISTS: "EEXIST EADDRNOTAVAIL EALREADY",
    Code.PERMISSION_DENIED: "EPERM EACCES EROFS",
    Code.FAILED_PRECONDITION: """ENOTEMPTY EISDIR ENOTDIR EADDRINUSE EBADF EBUSY ECHILD EISCONN
        ENOTBLK ENOTCONN EPIPE ESHUTDOWN ETXTBSY""",
    Code.RESOURCE_EXHAUSTED: """ENOSPC EDQUOT EMFILE EMLINK ENFILE ENOBUFS ENODATA ENOMEM ENOSR
        EUSERS""",
    Code.OUT_OF_RANGE: "EFBIG EOVERFLOW ERANGE",
    Code.UNIMPLEMENTED: """ENOSYS ENOTSUP EAFNOSUPPORT EPFNOSUPPORT EPROTONOSUPPORT
        ESOCKTNOSUPPORT EXDEV""",
    Code.UNAVAILABLE: """EAGAIN EINTR ECONNREFUSED ECONNABORTED ECONNRESET EHOSTDOWN EHOSTUNREACH
        ENETDOWN ENETRESET ENETUNREACH ENOLCK ENOLINK ENONET""",
    Code.ABORTED: "EDEADLK ESTALE",
    Code.CANCELLED: "ECANCELED",
}


def test_codes_of_errno(run_case):
    lines = run_case("status", "print_codes_of_errors").stdout.splitlines()
    found = {int(error): int(code) for error, code in (line.split() for line in lines[:-1])}
    expected = {getattr(errno, name): code for code in ERRORS for name in ERRORS[code].split()}
    expected[0] = Code.OK

    assert set(errno.errorcode) < set(found)
    assert found == {error: expected.get(error, Code.UNKNOWN) for error in found}
