/* Which status code an errno value becomes (filesystem-abi §10). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modular_tf/status.h"

struct code_of_errors {
  TF_Code code;
  int errors[24]; /* ends with 0 */
};

static const struct code_of_errors kTable[] = {
    {TF_CANCELLED, {ECANCELED}},
    {TF_INVALID_ARGUMENT,
     {EINVAL, ENAMETOOLONG, E2BIG, EDESTADDRREQ, EDOM, EFAULT, EILSEQ, ENOPROTOOPT, ENOSTR,
      ENOTSOCK, ENOTTY, EPROTOTYPE, ESPIPE}},
    {TF_DEADLINE_EXCEEDED, {ETIMEDOUT, ETIME}},
    {TF_NOT_FOUND, {ENOENT, ENODEV, ENXIO, ESRCH}},
    {TF_ALREADY_EXISTS, {EEXIST, EADDRNOTAVAIL, EALREADY}},
    {TF_PERMISSION_DENIED, {EPERM, EACCES, EROFS}},
    {TF_RESOURCE_EXHAUSTED,
     {ENOSPC, EDQUOT, EMFILE, EMLINK, ENFILE, ENOBUFS, ENODATA, ENOMEM, ENOSR, EUSERS}},
    {TF_FAILED_PRECONDITION,
     {ENOTEMPTY, EISDIR, ENOTDIR, EADDRINUSE, EBADF, EBUSY, ECHILD, EISCONN, ENOTBLK, ENOTCONN,
      EPIPE, ESHUTDOWN, ETXTBSY}},
    {TF_ABORTED, {EDEADLK, ESTALE}},
    {TF_OUT_OF_RANGE, {EFBIG, EOVERFLOW, ERANGE}},
    {TF_UNIMPLEMENTED,
     {ENOSYS, ENOTSUP, EAFNOSUPPORT, EPFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, EXDEV}},
    {TF_UNAVAILABLE,
     {EAGAIN, EINTR, ECONNREFUSED, ECONNABORTED, ECONNRESET, EHOSTDOWN, EHOSTUNREACH, ENETDOWN,
      ENETRESET, ENETUNREACH, ENOLCK, ENOLINK, ENONET}},
};

static int contains(const int* errors, int error) {
  while (*errors != 0 && *errors != error) ++errors;
  return *errors != 0;
}

static TF_Code code_of(int error) {
  if (error == 0) return TF_OK;
  for (size_t i = 0; i < sizeof(kTable) / sizeof(kTable[0]); ++i) {
    if (contains(kTable[i].errors, error)) return kTable[i].code;
  }
  return TF_UNKNOWN;
}

void TF_SetStatusFromIOError(TF_Status* status, int error_code, const char* context) {
  char buffer[128];
  const char* reason = strerror_r(error_code, buffer, sizeof(buffer));
  char* message = NULL;
  if (asprintf(&message, "%s; %s", context == NULL ? "" : context, reason) < 0) message = NULL;
  TF_SetStatus(status, code_of(error_code), message == NULL ? reason : message);
  free(message);
}

/* TensorFlow 2.12 and later know it by a second name. */
TF_CAPI_EXPORT extern __typeof__(TF_SetStatusFromIOError) TSL_SetStatusFromIOError
    __attribute__((alias("TF_SetStatusFromIOError")));
