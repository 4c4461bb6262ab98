/* The RFC's two allocators, over the host's memory. Each call must bring the plugin's struct. */
#include "variant.h"

#if LAYOUT == 2020
#include <stdlib.h>
#include <string.h>

void TF_SetStatus(Status* status, int code, const char* message); /* the host's */

typedef struct Allocator {
  size_t struct_size;
  void* ext;
  unsigned char supports_unified_memory;
} Allocator;

typedef struct AllocatorFns {
  size_t struct_size;
  void* ext;
  void (*allocate)(const Device*, const Allocator*, uint64_t, int64_t, Memory*);
  void (*deallocate)(const Device*, const Allocator*, Memory*);
  void* (*host_memory_allocate)(const Device*, const Allocator*, uint64_t);
  void (*host_memory_deallocate)(const Device*, const Allocator*, void*);
  void* (*unified_memory_allocate)(const Device*, const Allocator*, uint64_t);
  void (*unified_memory_deallocate)(const Device*, const Allocator*, void*);
  unsigned char (*get_allocator_stats)(const Device*, const Allocator*, Stats*);
  unsigned char (*device_memory_usage)(const Device*, const Allocator*, int64_t*, int64_t*);
} AllocatorFns;

typedef struct CustomAllocator {
  size_t struct_size;
  void* ext;
} CustomAllocator;

typedef struct CustomAllocatorFns {
  size_t struct_size;
  void* ext;
  void* (*allocate_raw)(const Device*, const CustomAllocator*, size_t, size_t);
  void (*deallocate_raw)(const Device*, const CustomAllocator*, void*);
  void* (*host_allocate_raw)(const Device*, const CustomAllocator*, uint64_t);
  void (*host_deallocate_raw)(const Device*, const CustomAllocator*, void*);
  unsigned char (*get_allocator_stats)(const Device*, const CustomAllocator*, Stats*);
  unsigned char (*device_memory_usage)(const Device*, const CustomAllocator*, int64_t*, int64_t*);
} CustomAllocatorFns;

typedef struct CreateAllocatorParams {
  size_t struct_size;
  void* ext;
  Allocator* allocator;
  AllocatorFns* fns;
} CreateAllocatorParams;

typedef struct CreateCustomAllocatorParams {
  size_t struct_size;
  void* ext;
  CustomAllocator* allocator;
  CustomAllocatorFns* fns;
} CreateCustomAllocatorParams;

static int mark; /* what ext points to in the plugin's structs */
static int exhausted;

VISIBLE void dialect_exhaust(void) { exhausted = 1; }
VISIBLE void dialect_recover(void) { exhausted = 0; }

static void note(const char* name, const void* ext, const Device* device) {
  int ours = ext == &mark && device->device_handle == device_handle(device->ordinal);
  called(ours ? name : "STRANGE_ALLOCATOR");
}

static void* take(uint64_t size, size_t alignment) {
  return exhausted ? NULL : aligned_memory(size, alignment);
}

static unsigned char fill_usage(int64_t* unused, int64_t* total) {
  *unused = *total = (int64_t)1 << 29;
  return 1;
}

/* ---- To be cut by the host ---- */

static void a_allocate(const Device* device, const Allocator* it, uint64_t size, int64_t space,
                       Memory* memory) {
  note(space == 0 ? "allocate" : "STRANGE_SPACE", it->ext, device);
  memory->opaque = take(size, 256);
  memory->size = memory->opaque != NULL ? size : 0;
  memory->payload = 9;
}
static void a_deallocate(const Device* device, const Allocator* it, Memory* memory) {
  note("deallocate", it->ext, device);
  free(memory->opaque);
}
static void* a_host_allocate(const Device* device, const Allocator* it, uint64_t size) {
  note("host_memory_allocate", it->ext, device);
  return take(size, 256);
}
static void a_host_deallocate(const Device* device, const Allocator* it, void* memory) {
  note("host_memory_deallocate", it->ext, device);
  free(memory);
}
static void* a_unified_allocate(const Device* device, const Allocator* it, uint64_t size) {
  note("unified_memory_allocate", it->ext, device);
  return take(size, 256);
}
static void a_unified_deallocate(const Device* device, const Allocator* it, void* memory) {
  note("unified_memory_deallocate", it->ext, device);
  free(memory);
}
static unsigned char a_stats(const Device* device, const Allocator* it, Stats* stats) {
  note("get_allocator_stats", it->ext, device);
  stats->num_allocs = 11;
  return 1;
}
static unsigned char a_usage(const Device* device, const Allocator* it, int64_t* unused,
                             int64_t* total) {
  note("device_memory_usage", it->ext, device);
  return fill_usage(unused, total);
}

/* Takes a function away where the variant says so. */
static void lack(void* fns) {
  int slot = ALLOCATOR_LACKS;
  if (slot >= 0) ((void**)fns)[2 + slot] = NULL;
}

static int fails(Status* status) {
  if (ALLOCATOR_FAILS) TF_SetStatus(status, ALLOCATOR_FAILS, "no memory to speak of");
  return ALLOCATOR_FAILS;
}

static Allocator own_allocator;
static AllocatorFns own_fns;

VISIBLE void fns_create_allocator(const Platform* platform, void* given, Status* status) {
  CreateAllocatorParams* params = given;
  (void)platform;
  called("create_allocator");
  if (fails(status)) return;
  own_allocator = (Allocator){SIZES ? 17 : 0, &mark, UNIFIED};
  own_fns = (AllocatorFns){.struct_size = SIZES ? sizeof(AllocatorFns) : 0,
                           .allocate = a_allocate,
                           .deallocate = a_deallocate,
                           .host_memory_allocate = a_host_allocate,
                           .host_memory_deallocate = a_host_deallocate,
                           .unified_memory_allocate = UNIFIED ? a_unified_allocate : NULL,
                           .unified_memory_deallocate = UNIFIED ? a_unified_deallocate : NULL,
                           .get_allocator_stats = a_stats,
                           .device_memory_usage = a_usage};
  lack(&own_fns);
  DELIVER(own_allocator, params->allocator);
  DELIVER(own_fns, params->fns);
}
VISIBLE void fns_destroy_allocator(const Platform* platform, void* allocator, void* fns) {
  (void)platform;
  int same = ((Allocator*)allocator)->ext == &mark && ((AllocatorFns*)fns)->allocate != NULL;
  called(same || ALLOCATOR_LACKS == 0 ? "destroy_allocator" : "STRANGE_ALLOCATOR");
}

/* ---- To be used as it is ---- */

static void* c_allocate(const Device* device, const CustomAllocator* it, size_t size,
                        size_t alignment) {
  note(alignment == 64 ? "allocate_raw" : "STRANGE_ALIGNMENT", it->ext, device);
  return take(size, alignment);
}
static void c_deallocate(const Device* device, const CustomAllocator* it, void* memory) {
  note("deallocate_raw", it->ext, device);
  free(memory);
}
static void* c_host_allocate(const Device* device, const CustomAllocator* it, uint64_t size) {
  note("host_allocate_raw", it->ext, device);
  return take(size, 256);
}
static void c_host_deallocate(const Device* device, const CustomAllocator* it, void* memory) {
  note("host_deallocate_raw", it->ext, device);
  free(memory);
}
static unsigned char c_stats(const Device* device, const CustomAllocator* it, Stats* stats) {
  note("get_allocator_stats", it->ext, device);
  stats->num_allocs = 12;
  return 1;
}
static unsigned char c_usage(const Device* device, const CustomAllocator* it, int64_t* unused,
                             int64_t* total) {
  note("device_memory_usage", it->ext, device);
  return fill_usage(unused, total);
}

static CustomAllocator own_custom;
static CustomAllocatorFns own_custom_fns;

VISIBLE void fns_create_custom_allocator(const Platform* platform, void* given, Status* status) {
  CreateCustomAllocatorParams* params = given;
  (void)platform;
  called("create_custom_allocator");
  if (fails(status)) return;
  own_custom = (CustomAllocator){SIZES ? sizeof(CustomAllocator) : 0, &mark};
  own_custom_fns = (CustomAllocatorFns){.struct_size = SIZES ? sizeof(CustomAllocatorFns) : 0,
                                        .allocate_raw = c_allocate,
                                        .deallocate_raw = c_deallocate,
                                        .host_allocate_raw = c_host_allocate,
                                        .host_deallocate_raw = c_host_deallocate,
                                        .get_allocator_stats = c_stats,
                                        .device_memory_usage = c_usage};
  lack(&own_custom_fns);
  DELIVER(own_custom, params->allocator);
  DELIVER(own_custom_fns, params->fns);
}
VISIBLE void fns_destroy_custom_allocator(const Platform* platform, void* allocator, void* fns) {
  (void)platform, (void)fns;
  int same = ((CustomAllocator*)allocator)->ext == &mark;
  called(same ? "destroy_custom_allocator" : "STRANGE_ALLOCATOR");
}
#else
typedef int nothing_here; /* no other layout has allocators */
#endif
