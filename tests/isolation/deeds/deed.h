/* What the hostile plugin can do in the middle of a call, by the name in the path `/deed/NAME`. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deed {
  const char* name;
  void (*act)(void);
} deed;

/* Each list ends with a NULL name. */
extern const deed ending_deeds[];
extern const deed signal_deeds[];
extern const deed resource_deeds[];
extern const deed descriptor_deeds[];
extern const deed process_deeds[];
extern const deed protocol_deeds[];

/* Runs a function on a thread of its own; waits for its end where `joins`. */
void on_thread(void* (*work)(void*), int joins);
void sleep_ms(int milliseconds);

#ifdef __cplusplus
}
#endif
