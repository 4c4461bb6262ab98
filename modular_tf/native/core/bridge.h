/* Filesystems of this package inside a running TensorFlow, which loads this library as a plugin.
 *
 * TensorFlow calls the slots of one table for all schemes. Paths go to Python, by the functions of
 * bridge_upcalls.h; the bytes of files that a plugin reads itself go from C to C. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "filesystem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call of Python gives back. At first `code` is INTERNAL, in case Python's own lines are
 * interrupted, and all else zero. */
typedef struct mtf_bridge_answer {
  int32_t code;       /* TF_Code; 0: done */
  char* text;         /* of mtf_bridge_copy: what went wrong; of an opened file, its name for errors */
  int64_t numbers[3]; /* stat: length, time, directory; delete_recursively: files, directories;
                         files: see the operation */
  mtf_strings names;  /* get_children, get_matching_paths: bytes of mtf_bridge_copy */
  mtf_reader* reader; /* of an opened file: read it by this; NULL: by mtf_upcall_read */
} mtf_bridge_answer;

/* Returns a copy that `answer` may hold; NULL where there is no memory. Aligned to 64 bytes, as
 * tensors that map a memory region need it. */
char* mtf_bridge_copy(const char* bytes, size_t size);

/* Finds the status functions of TensorFlow's library, which is in the process already. */
mtf_error* mtf_bridge_connect(const char* library);

/* The next TF_InitPlugin registers this scheme, and no other. */
mtf_error* mtf_bridge_offer(const char* scheme);

/* Lets no further call through, waits for those that are under way, and closes the files that are open
 * for writing. Returns how many calls are left. The process ends, or `open` follows. */
int64_t mtf_bridge_close(double wait_s);
void mtf_bridge_open(void);

#ifdef __cplusplus
}
#endif
