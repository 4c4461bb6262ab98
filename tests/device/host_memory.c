/* Regions of host memory for an arena; the context counts their bytes. [any thread] */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void* host_memory_allocate(void* context, uint64_t bytes) {
  void* address = NULL;
  if (posix_memalign(&address, 256, bytes) != 0) return NULL;
  atomic_fetch_add((atomic_uint_fast64_t*)context, bytes);
  return address;
}

void host_memory_free(void* context, void* address, uint64_t bytes) {
  free(address);
  atomic_fetch_sub((atomic_uint_fast64_t*)context, bytes);
}
