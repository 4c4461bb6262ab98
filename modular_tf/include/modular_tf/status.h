/* How an operation says whether it worked: a code, a message and optional payloads.
 *
 * The functions are offered by the host (libmodular_tf_framework.so.2 here, TensorFlow's own
 * library there). A status is not locked: one thread at a time may use it. */
#ifndef MODULAR_TF_STATUS_H_
#define MODULAR_TF_STATUS_H_

#include "modular_tf/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opaque; made by TF_NewStatus or lent by the host for the length of a call. */
typedef struct TF_Status TF_Status;

/* The numbers are part of the ABI and equal those of gRPC and absl. */
typedef enum TF_Code {
  TF_OK = 0,
  TF_CANCELLED = 1,
  TF_UNKNOWN = 2,
  TF_INVALID_ARGUMENT = 3,
  TF_DEADLINE_EXCEEDED = 4,
  TF_NOT_FOUND = 5,
  TF_ALREADY_EXISTS = 6,
  TF_PERMISSION_DENIED = 7,
  TF_RESOURCE_EXHAUSTED = 8,
  TF_FAILED_PRECONDITION = 9,
  TF_ABORTED = 10,
  TF_OUT_OF_RANGE = 11,
  TF_UNIMPLEMENTED = 12,
  TF_INTERNAL = 13,
  TF_UNAVAILABLE = 14,
  TF_DATA_LOSS = 15,
  TF_UNAUTHENTICATED = 16
} TF_Code;

/* A new OK status, owned by the caller. NULL only when memory is out; all functions here take that for
 * a status with TF_RESOURCE_EXHAUSTED. [any thread] */
TF_CAPI_EXPORT extern TF_Status* TF_NewStatus(void);

/* Frees a status made by TF_NewStatus; never one lent by the host. NULL is allowed. */
TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status* status);

/* Sets code and message and drops the payloads. `message` is copied, may be NULL (""), and may be
 * the status's own old message. TF_OK keeps no message. */
TF_CAPI_EXPORT extern void TF_SetStatus(TF_Status* status, TF_Code code, const char* message);

/* Attaches `value` under `key`, both copied; an equal key is replaced. An OK status takes none. */
TF_CAPI_EXPORT extern void TF_SetPayload(TF_Status* status, const char* key, const char* value);

/* `key` and `value` live until the visitor returns; `capture` is the caller's. */
typedef void (*TF_PayloadVisitor)(const char* key, const char* value, void* capture);

/* Calls `visitor` once per payload, in no promised order. The visitor must not change the status. */
TF_CAPI_EXPORT extern void TF_ForEachPayload(const TF_Status* status, TF_PayloadVisitor visitor,
                                             void* capture);

/* Sets the code that belongs to an errno value and the message "context; text of the errno".
 * 0 sets OK. `context` may be NULL. */
TF_CAPI_EXPORT extern void TF_SetStatusFromIOError(TF_Status* status, int error_code,
                                                   const char* context);

TF_CAPI_EXPORT extern TF_Code TF_GetCode(const TF_Status* status);

/* Never NULL. Owned by the status; valid until the status is changed or deleted. */
TF_CAPI_EXPORT extern const char* TF_Message(const TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
