/* The layout of TF_Status, which plugins see only as an opaque pointer.
 *
 * The host runtime owns the functions; the core shares this layout so that a call needs no
 * allocation for its status: it lies on the caller's stack, zeroed, which means OK. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "copied_text.h"
#include "modular_tf/status.h"

struct mtf_payload {
  struct mtf_payload* next;
  char* key;   /* malloc */
  char* value; /* malloc */
};

struct TF_Status {
  int32_t code;                  /* TF_Code */
  int32_t mark;                  /* of a call in a worker: what else its error says (core/worker_wire.h) */
  char* message;                 /* malloc; NULL means "" */
  struct mtf_payload* payloads;  /* newest first */
};

/* Releases what a status holds and makes it OK again. The status itself is the caller's. */
static inline void mtf_status_clear(struct TF_Status* status) {
  struct mtf_payload* payload = status->payloads;
  while (payload != NULL) {
    struct mtf_payload* next = payload->next;
    free(payload->key);
    free(payload->value);
    free(payload);
    payload = next;
  }
  free(status->message);
  status->code = TF_OK;
  status->mark = 0;
  status->message = NULL;
  status->payloads = NULL;
}

/* Replaces what a status holds. OK has no message; where memory is out there is none either. */
static inline void mtf_status_set(struct TF_Status* status, int32_t code, const char* message) {
  /* Copied first: the message may be the one that clearing frees. */
  const int has_text = code != 0 && message != NULL && *message != '\0';
  char* copy = has_text ? mtf_copied_text(message) : NULL;
  mtf_status_clear(status);
  status->code = code;
  status->message = copy;
}
