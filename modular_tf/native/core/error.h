/* How a call's failure reaches Python: a heap value, NULL when the call succeeded. */
#ifndef MODULAR_TF_CORE_ERROR_H_
#define MODULAR_TF_CORE_ERROR_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_error {
  int32_t code;      /* TF_Code; never 0 */
  int32_t thrown;    /* 1: a C++ exception left the plugin, `message` says which */
  int32_t closed;    /* 1: the plugin was not called: the file or filesystem is closed */
  char* message;     /* bytes as the plugin wrote them, never NULL */
  int32_t rule;      /* nnn of the rule SE-nnn that the plugin broke; 0: none */
} mtf_error;

/* Free an error. [any thread] NULL is allowed. */
void mtf_error_free(mtf_error* error);

#ifdef __cplusplus
}
#endif
#endif
