/* Filesystems of this package inside a running TensorFlow, which loads this library as a plugin.
 *
 * TensorFlow calls the slots of one table for all schemes. Paths go to Python, by the upcalls at the end
 * of this header; the bytes of files that a plugin reads itself go from C to C. */
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

/* What the bridge into TensorFlow asks Python. build_core.py has cffi define these functions; each
 * takes the GIL and may be called from any thread while the bridge is open. */

/* An operation of a filesystem, by its name in TF_FilesystemOps. `other` is the second path. The
 * three that open a file give its number, and 1 where reads ahead pay, in `numbers`; a memory
 * region is `text`, its length `numbers[0]`. */
void mtf_upcall_path(const char* operation, const char* path, const char* other,
                     mtf_bridge_answer* answer);

/* Reads up to `size` bytes; `numbers[0]` is the count. */
void mtf_upcall_read(int64_t file, uint64_t offset, char* buffer, size_t size,
                     mtf_bridge_answer* answer);

/* An operation of an open file: "append" of `size` bytes of `data`, "tell" (`numbers[0]`), "flush",
 * "sync", "close", "release", which appends `data` before, and "give_up", which ends a file of which
 * bytes were lost: a store keeps nothing of it; after these three the file has no number any more.
 * "wait" gives the GIL away for a moment. */
void mtf_upcall_file(const char* operation, int64_t file, const char* data, size_t size,
                     mtf_bridge_answer* answer);

#ifdef __cplusplus
}
#endif
