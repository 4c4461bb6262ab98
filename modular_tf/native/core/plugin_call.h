/* Plugins by the names that users know them by, for who has to name one while a call of its runs. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is told of a plugin. It is never freed: handlers of signals read it at any time. */
typedef struct mtf_plugin mtf_plugin;

/* `name` is the plugin's for users, `path` its file. `record` is what begins the note that the process
 * leaves of a call in which it ended (process_end.h); empty: it leaves none. All are copied. NULL and
 * a kept error where there is no memory. [any thread] */
const mtf_plugin* mtf_plugin_new(const char* name, const char* path, const char* record);

/* From now on the code of the object that is mapped at `base`, for good, is the plugin's: where a
 * process ends in it outside of calls, the plugin is named (process_end.h). 0 on success, -1 where
 * there is no more room. [any thread] */
int mtf_plugin_has_code(const mtf_plugin* plugin, uintptr_t base);

#ifdef __cplusplus
}
#endif
