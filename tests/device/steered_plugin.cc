// A correct device plugin of type STEERED, two devices, whose every field a test can spoil.
//
// Spoiling is data: bytes put over a struct after it was filled, statuses, exceptions. The log
// tells what the host called, in order.
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "modular_tf/device.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum Table { kParams, kPlatform, kFns, kDeviceFns, kExecutor, kDevice, kTables };
enum Pointer { kLent, kNull, kOwn, kNowhere };

struct Patch {
  int table;
  size_t offset;
  size_t size;
  uint64_t value;
};

struct Failure {
  std::string operation;
  int code;  // -1: throws a std::runtime_error, -2: throws an int
  std::string message;
};

struct Steering {
  std::vector<Patch> patches;
  std::vector<Failure> failures;
  int pointer[kTables] = {};
  bool count_untouched = false;
  int count = 2;
  int failing_ordinal = -1;
  std::string log;
};

Steering steering;
alignas(16) char own_memory[kTables][1024];
const char* const kNowhereAddress = reinterpret_cast<const char*>(0x1000);

void log_call(const std::string& call) {
  if (!steering.log.empty()) steering.log += ' ';
  steering.log += call;
}

void fail_if_told(const char* operation, TF_Status* status) {
  for (const Failure& failure : steering.failures) {
    if (failure.operation != operation) continue;
    if (failure.code == -1) throw std::runtime_error(failure.message);
    if (failure.code == -2) throw 42;
    TF_SetStatus(status, static_cast<TF_Code>(failure.code), failure.message.c_str());
  }
}

// Puts `filled` where the host, or the steering, wants it; returns the pointer the host shall see.
template <class Struct>
Struct* deliver(Table table, Struct filled, Struct* lent) {
  const int kind = steering.pointer[table];
  Struct* target = kind == kOwn ? reinterpret_cast<Struct*>(own_memory[table]) : lent;
  std::memcpy(target, &filled, sizeof filled);
  for (const Patch& patch : steering.patches) {
    if (patch.table != table) continue;
    std::memcpy(reinterpret_cast<char*>(target) + patch.offset, &patch.value, patch.size);
  }
  if (kind == kNull) return nullptr;
  if (kind == kNowhere) return reinterpret_cast<Struct*>(const_cast<char*>(kNowhereAddress));
  return target;
}

void get_device_count(const SP_Platform*, int* count, TF_Status* status) {
  log_call("get_device_count");
  fail_if_told("get_device_count", status);
  if (!steering.count_untouched) *count = steering.count;
}

void create_device(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  log_call("create_device:" + std::to_string(params->ordinal));
  if (steering.failing_ordinal == params->ordinal) {
    TF_SetStatus(status, TF_UNAVAILABLE, "the cable is loose");
    return;
  }
  fail_if_told("create_device", status);
  SP_Device device = {};
  device.struct_size = SP_DEVICE_STRUCT_SIZE;
  device.ordinal = params->ordinal;
  device.hardware_name = params->ordinal == 0 ? "Steered 1000" : "Steered 2000";
  device.device_vendor = "Nobody";
  device.pci_bus_id = "0000:00:02.1";
  params->device = deliver(kDevice, device, params->device);
}

void destroy_device(const SP_Platform*, SP_Device* device) {
  log_call("destroy_device:" + std::to_string(device->ordinal));
  fail_if_told("destroy_device", nullptr);
}

int32_t get_numa_node(const SP_Device* device) {
  fail_if_told("get_numa_node", nullptr);
  return device->ordinal == 0 ? 3 : -1;
}

int64_t get_memory_bandwidth(const SP_Device* device) {
  return device->ordinal == 0 ? 900000000000 : -1;
}

double get_gflops(const SP_Device* device) { return device->ordinal == 0 ? 12.5 : -1.0; }

void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  log_call("create_device_fns");
  fail_if_told("create_device_fns", status);
  SP_DeviceFns fns = {SP_DEVICE_FNS_STRUCT_SIZE, nullptr, get_numa_node, get_memory_bandwidth,
                      get_gflops};
  params->device_fns = deliver(kDeviceFns, fns, params->device_fns);
}

void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) { log_call("destroy_device_fns"); }

// Nothing here runs work: every slot of the executor is this function, never called.
void never_called() {}

void create_stream_executor(const SP_Platform*, SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  log_call("create_stream_executor");
  fail_if_told("create_stream_executor", status);
  SP_StreamExecutor executor = {};
  executor.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  auto* slots = reinterpret_cast<void (**)()>(&executor.allocate);
  for (size_t i = 0; i < (sizeof executor - 16) / 8; ++i) slots[i] = never_called;
  params->stream_executor = deliver(kExecutor, executor, params->stream_executor);
}

void destroy_stream_executor(const SP_Platform*, SP_StreamExecutor*) {
  log_call("destroy_stream_executor");
  fail_if_told("destroy_stream_executor", nullptr);
}

void create_timer_fns(const SP_Platform*, SP_TimerFns*, TF_Status*) {}
void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) { log_call("destroy_timer_fns"); }

void destroy_platform(SP_Platform* platform) {
  log_call("destroy_platform");
  platform->name = nullptr;  // the host's own copy must not be what we get
}

void destroy_platform_fns(SP_PlatformFns* fns) {
  log_call("destroy_platform_fns");
  fns->create_device = nullptr;
}

}  // namespace

EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  log_call("init");
  fail_if_told("SE_InitPlugin", status);
  SP_Platform platform = {};
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform.name = "STEERED_PLATFORM";
  platform.type = "STEERED";
  SP_PlatformFns fns = {SP_PLATFORM_FNS_STRUCT_SIZE,
                        nullptr,
                        get_device_count,
                        create_device,
                        destroy_device,
                        create_device_fns,
                        destroy_device_fns,
                        create_stream_executor,
                        destroy_stream_executor,
                        create_timer_fns,
                        destroy_timer_fns};
  SE_PlatformRegistrationParams filled = *params;
  filled.platform = deliver(kPlatform, platform, params->platform);
  filled.platform_fns = deliver(kFns, fns, params->platform_fns);
  filled.destroy_platform = destroy_platform;
  filled.destroy_platform_fns = destroy_platform_fns;
  deliver(kParams, filled, params);
}

EXPORT void steer_reset() { steering = {}; }

EXPORT void steer_patch(int table, size_t offset, size_t size, uint64_t value) {
  steering.patches.push_back({table, offset, size, value});
}

EXPORT void steer_fail(const char* operation, int code, const char* message) {
  steering.failures.push_back({operation, code, message});
}

EXPORT void steer_pointer(int table, int kind) { steering.pointer[table] = kind; }
EXPORT void steer_count(int count) { steering.count = count; }
EXPORT void steer_count_untouched() { steering.count_untouched = true; }
EXPORT void steer_failing_ordinal(int ordinal) { steering.failing_ordinal = ordinal; }
EXPORT const char* steer_log() { return steering.log.c_str(); }
EXPORT const char* steer_text(const char* text) { return strdup(text); }
