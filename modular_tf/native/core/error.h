/* How a call's failure reaches Python: a heap value, NULL when the call succeeded. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_error {
  int32_t code;      /* TF_Code; never 0 */
  int32_t thrown;    /* 1: a C++ exception left the plugin, `message` says which */
  int32_t closed;    /* 1: the plugin was not called: the file or filesystem is closed */
  char* message;     /* bytes as the plugin wrote them, never NULL */
  int32_t rule;      /* nnn of the rule SE-nnn that the plugin broke, 1000 + nnn of KN-nnn, 2000 + nnn
                      * of LD-nnn; 0: none */
} mtf_error;

/* Free an error. [any thread] NULL is allowed. */
void mtf_error_free(mtf_error* error);

/* What the last failed function of this thread that returns no error has to say; the caller frees
 * it. NULL where none failed since. */
mtf_error* mtf_take_error(void);

/* How many errors of this process were made and not freed. Where memory runs out, one error that is
 * never freed stands for all; it does not count. [any thread] */
int64_t mtf_errors_alive(void);

#ifdef __cplusplus
}
#endif
