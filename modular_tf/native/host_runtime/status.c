#include "status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A code that no list knows is an unknown error, never success. */
static int32_t known_code(TF_Code code) {
  return (int)code >= TF_OK && (int)code <= TF_UNAUTHENTICATED ? (int32_t)code : TF_UNKNOWN;
}

TF_Status* TF_NewStatus(void) { return calloc(1, sizeof(TF_Status)); }

void TF_DeleteStatus(TF_Status* status) {
  if (status == NULL) return;
  mtf_status_clear(status);
  free(status);
}

/* Plugins do not look whether TF_NewStatus gave them one: NULL says that memory has run out. */

void TF_SetStatus(TF_Status* status, TF_Code code, const char* message) {
  if (status == NULL) return;
  mtf_status_set(status, known_code(code), message);
}

TF_Code TF_GetCode(const TF_Status* status) {
  return status == NULL ? TF_RESOURCE_EXHAUSTED : (TF_Code)status->code;
}

const char* TF_Message(const TF_Status* status) {
  if (status == NULL) return "out of memory";
  return status->message == NULL ? "" : status->message;
}

static struct mtf_payload* find_payload(const TF_Status* status, const char* key) {
  struct mtf_payload* payload = status->payloads;
  while (payload != NULL && strcmp(payload->key, key) != 0) payload = payload->next;
  return payload;
}

/* Takes over `value`, which may be NULL when memory ran out. */
static void add_payload(TF_Status* status, const char* key, char* value) {
  struct mtf_payload* payload = calloc(1, sizeof(*payload));
  char* key_copy = mtf_copied_text(key);
  if (payload == NULL || key_copy == NULL || value == NULL) {
    free(payload);
    free(key_copy);
    free(value);
    return;
  }
  *payload = (struct mtf_payload){.next = status->payloads, .key = key_copy, .value = value};
  status->payloads = payload;
}

void TF_SetPayload(TF_Status* status, const char* key, const char* value) {
  if (status == NULL || status->code == TF_OK) return;
  char* copy = mtf_copied_text(value);
  struct mtf_payload* present = find_payload(status, key);
  if (present == NULL) {
    add_payload(status, key, copy);
  } else if (copy != NULL) {
    free(present->value);
    present->value = copy;
  }
}

void TF_ForEachPayload(const TF_Status* status, TF_PayloadVisitor visitor, void* capture) {
  const struct mtf_payload* payload = status == NULL ? NULL : status->payloads;
  for (; payload != NULL; payload = payload->next) visitor(payload->key, payload->value, capture);
}

/* -- which code an errno value becomes (filesystem-abi §10) -- */

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

/* TensorFlow 2.12 and later know the same functions by a second name. */
#define SECOND_NAME(name, first) \
  TF_CAPI_EXPORT extern __typeof__(first) name __attribute__((alias(#first)))

SECOND_NAME(TSL_NewStatus, TF_NewStatus);
SECOND_NAME(TSL_DeleteStatus, TF_DeleteStatus);
SECOND_NAME(TSL_SetStatus, TF_SetStatus);
SECOND_NAME(TSL_GetCode, TF_GetCode);
SECOND_NAME(TSL_Message, TF_Message);
SECOND_NAME(TSL_SetPayload, TF_SetPayload);
SECOND_NAME(TSL_ForEachPayload, TF_ForEachPayload);
SECOND_NAME(TSL_SetStatusFromIOError, TF_SetStatusFromIOError);
