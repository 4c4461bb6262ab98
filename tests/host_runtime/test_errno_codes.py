"""Every errno value becomes the code that TensorFlow gives it (filesystem-abi §10)."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code

if TYPE_CHECKING:
    from tests.host_runtime.conftest import CaseRunner

NAMES = {
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
EXPECTED = {0: Code.OK} | {
    getattr(errno, name): code for code, names in NAMES.items() for name in names.split()
}


def test_codes(run_case: CaseRunner) -> None:
    lines = run_case("status", "print_codes_of_errors").stdout.splitlines()
    found = {int(error): int(code) for error, code in (line.split() for line in lines[:-1])}

    assert set(errno.errorcode) < set(found)
    assert found == {error: EXPECTED.get(error, Code.UNKNOWN) for error in found}
