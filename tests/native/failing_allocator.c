/* malloc and its kin, which fail on demand where the core, the host runtime or the C++ library asks
 * for memory. To be preloaded. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

#define EXPORT __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))

static const char* const watched[] = {"_core.abi3", "libmodular_tf_framework", "libstdc++"};
static struct range {
  uintptr_t start, end;
} ranges[16];
static int n_ranges;

static __thread long left = -1; /* until one fails; negative: none will */
static __thread bool all_fail;
static __thread long failed;

static int note_range(struct dl_phdr_info* object, size_t size, void* unused) {
  (void)size, (void)unused;
  for (size_t i = 0; i < sizeof watched / sizeof *watched; ++i) {
    if (strstr(object->dlpi_name, watched[i]) == NULL) continue;
    for (int j = 0; j < object->dlpi_phnum && n_ranges < 16; ++j) {
      const ElfW(Phdr)* header = &object->dlpi_phdr[j];
      if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0) continue;
      const uintptr_t start = object->dlpi_addr + header->p_vaddr;
      ranges[n_ranges++] = (struct range){start, start + header->p_memsz};
    }
  }
  return 0;
}

static bool is_watched(uintptr_t caller) {
  for (int i = 0; i < n_ranges; ++i) {
    if (caller >= ranges[i].start && caller < ranges[i].end) return true;
  }
  return false;
}

static bool fails(uintptr_t caller) {
  if (left < 0 || !is_watched(caller) || left-- > 0) return false;
  if (all_fail) left = 0;
  ++failed;
  errno = ENOMEM;
  return true;
}

/* In the calling thread: the allocation after the next `n`, and all later ones if `all`. */
EXPORT void fail_allocations(long n, int all) {
  n_ranges = 0;
  dl_iterate_phdr(note_range, NULL);
  failed = 0;
  all_fail = all != 0;
  left = n;
}

/* How many have failed. None will from now on. */
EXPORT long end_failures(void) {
  left = -1;
  return failed;
}

EXPORT void* malloc(size_t size) { return fails(CALLER) ? NULL : __libc_malloc(size); }

EXPORT void* calloc(size_t count, size_t size) {
  return fails(CALLER) ? NULL : __libc_calloc(count, size);
}

EXPORT void* realloc(void* block, size_t size) {
  return fails(CALLER) ? NULL : __libc_realloc(block, size);
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return fails(CALLER) ? NULL : __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  if (fails(CALLER)) return ENOMEM;
  *block = __libc_memalign(alignment, size);
  return *block == NULL ? ENOMEM : 0;
}
