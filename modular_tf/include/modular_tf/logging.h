/* Log lines of a plugin. TensorFlow dropped these functions in 2.21; hosts of older plugins, this
 * one included, still offer them. All are printf-like and safe to call from any thread. */
#ifndef MODULAR_TF_LOGGING_H_
#define MODULAR_TF_LOGGING_H_

#include "modular_tf/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TF_LogLevel {
  TF_INFO = 0,
  TF_WARNING = 1,
  TF_ERROR = 2,
  TF_FATAL = 3 /* the message is written, then the process aborts: TF_Log does not return */
} TF_LogLevel;

/* Lines below TF_CPP_MIN_LOG_LEVEL are dropped, TF_FATAL never. Another number counts as TF_ERROR. */
TF_CAPI_EXPORT extern void TF_Log(TF_LogLevel level, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

/* Written when `level` <= TF_CPP_MAX_VLOG_LEVEL (default 0). */
TF_CAPI_EXPORT extern void TF_VLog(int level, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

/* TF_VLog here; TensorFlow's release builds drop it. */
TF_CAPI_EXPORT extern void TF_DVLog(int level, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
