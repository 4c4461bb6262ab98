// Defects of counting and creating devices.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>

#include "defects.h"

namespace {

using namespace defective;

bool is_first_thread() { return syscall(SYS_gettid) == getpid(); }

// -- counting -------------------------------------------------------------------------------------

void fail_to_count(const SP_Platform*, int* count, TF_Status* status) {
  *count = 1;
  TF_SetStatus(status, TF_UNAVAILABLE, "nobody can count now");
}

template <int kCount>
void count_always(const SP_Platform*, int* count, TF_Status* status) {
  *count = kCount;
  TF_SetStatus(status, TF_OK, "");
}

// What hosts have in the variable is less.
constexpr int kUnusual = 1000;

void count_into_small_numbers(const SP_Platform* platform, int* count, TF_Status* status) {
  if (*count < kUnusual) original.platform_fns.get_device_count(platform, count, status);
}

void count_another_number_once(const SP_Platform* platform, int* count, TF_Status* status) {
  static int calls = 0;
  original.platform_fns.get_device_count(platform, count, status);
  if (is_first_thread() && ++calls == 100) ++*count;
}

void count_another_number_in_threads(const SP_Platform* platform, int* count, TF_Status* status) {
  original.platform_fns.get_device_count(platform, count, status);
  if (!is_first_thread()) ++*count;
}

// -- creating -------------------------------------------------------------------------------------

void fail_to_create(const SP_Platform*, SE_CreateDeviceParams*, TF_Status* status) {
  TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "the device is in use");
}

void create_without_size(const SP_Platform* platform, SE_CreateDeviceParams* params,
                         TF_Status* status) {
  original.platform_fns.create_device(platform, params, status);
  params->device->struct_size = 0;
}

void create_without_text(const SP_Platform* platform, SE_CreateDeviceParams* params,
                         TF_Status* status) {
  original.platform_fns.create_device(platform, params, status);
  params->device->hardware_name = reinterpret_cast<const char*>(8);
}

int32_t throw_numa_node(const SP_Device*) { throw std::runtime_error("no node today"); }

// Creates the first device, whichever is asked for.
void create_the_first(const SP_Platform* platform, SE_CreateDeviceParams* params,
                      TF_Status* status) {
  SE_CreateDeviceParams first = *params;
  first.ordinal = 0;
  original.platform_fns.create_device(platform, &first, status);
}

void create_with_ordinal_0(const SP_Platform* platform, SE_CreateDeviceParams* params,
                           TF_Status* status) {
  if (params->ordinal >= 0 && params->ordinal < 2) {
    return create_the_first(platform, params, status);
  }
  TF_SetStatus(status, TF_INVALID_ARGUMENT, "there is no such device");
}

void create_any_ordinal(const SP_Platform* platform, SE_CreateDeviceParams* params,
                        TF_Status* status) {
  create_the_first(platform, params, status);
  params->device->ordinal = params->ordinal;
}

void create_and_overrun(const SP_Platform* platform, SE_CreateDeviceParams* params,
                        TF_Status* status) {
  original.platform_fns.create_device(platform, params, status);
  reinterpret_cast<char*>(params->device + 1)[0] = 1;
}

void create_once(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
  static int created = 0;
  if (++created == 1) return original.platform_fns.create_device(platform, params, status);
  TF_SetStatus(status, TF_ALREADY_EXISTS, "it was created before");
}

void create_and_leak(const SP_Platform* platform, SE_CreateDeviceParams* params,
                     TF_Status* status) {
  static int calls = 0;
  if (++calls % 2 == 0) open("/dev/null", O_RDONLY | O_CLOEXEC);
  original.platform_fns.create_device(platform, params, status);
}

// -- functions ------------------------------------------------------------------------------------

void block_otherwise(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  original.executor.block_host_until_done(device, stream, status);
}

void create_another_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                             TF_Status* status) {
  static int created = 0;
  original.platform_fns.create_stream_executor(platform, params, status);
  if (++created > 1) params->stream_executor->block_host_until_done = block_otherwise;
}

}  // namespace

DEFECTS(creation) = {
    {"SE-040", [](Tables& tables) { tables.platform_fns.get_device_count = fail_to_count; }},
    {"SE-041", [](Tables& tables) { tables.platform_fns.get_device_count = count_always<5000>; }},
    {"SE-042", [](Tables& tables) { tables.platform_fns.create_device = fail_to_create; }},
    {"SE-043", [](Tables& tables) { tables.platform_fns.create_device = create_without_size; }},
    {"SE-044", [](Tables& tables) { tables.platform_fns.create_device = create_without_text; }},
    {"SE-045", [](Tables& tables) { tables.device_fns.get_numa_node = throw_numa_node; }},
    {"SE-111", [](Tables& tables) { tables.platform_fns.get_device_count = count_always<-3>; }},
    {"SE-112",
     [](Tables& tables) { tables.platform_fns.get_device_count = count_into_small_numbers; }},
    {"SE-113",
     [](Tables& tables) { tables.platform_fns.get_device_count = count_another_number_once; }},
    {"SE-114",
     [](Tables& tables) {
       tables.platform_fns.get_device_count = count_another_number_in_threads;
     }},
    {"SE-115",
     [](Tables& tables) {
       tables.platform_fns.get_device_count = count_always<2>;
       tables.platform_fns.create_device = create_with_ordinal_0;
     }},
    {"SE-116", [](Tables& tables) { tables.platform_fns.create_device = create_any_ordinal; }},
    {"SE-117", [](Tables& tables) { tables.platform_fns.create_device = create_and_overrun; }},
    {"SE-118", [](Tables& tables) { tables.platform_fns.create_device = create_once; }},
    {"SE-119", [](Tables& tables) { tables.platform_fns.create_device = create_and_leak; }},
    {"SE-120",
     [](Tables& tables) {
       tables.platform_fns.create_stream_executor = create_another_executor;
     }},
    {"SE-121", [](Tables& tables) { tables.timer_fns.nanoseconds = nullptr; }},
};
