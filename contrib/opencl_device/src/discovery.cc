#include "discovery.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace opencl {
namespace {

constexpr const char* kWishedPlatform = "MTF_OPENCL_PLATFORM";

std::vector<cl_platform_id> all_platforms() {
  cl_uint count = 0;
  const cl_int error = clGetPlatformIDs(0, nullptr, &count);
  if (error == CL_PLATFORM_NOT_FOUND_KHR || count == 0) return {};
  check(error, "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  return platforms;
}

std::vector<cl_device_id> all_devices(cl_platform_id platform) {
  cl_uint count = 0;
  const cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (error == CL_DEVICE_NOT_FOUND) return {};
  check(error, "clGetDeviceIDs");
  std::vector<cl_device_id> devices(count);
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr),
        "clGetDeviceIDs");
  return devices;
}

bool has(cl_device_id device, cl_device_svm_capabilities kind) {
  return (device_number<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES, 0) & kind) !=
         0;
}

bool fits(cl_device_id device) {
  const auto queues =
      device_number<cl_command_queue_properties>(device, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, 0);
  return device_number<cl_bool>(device, CL_DEVICE_AVAILABLE, CL_FALSE) == CL_TRUE &&
         has(device, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) && (queues & CL_QUEUE_PROFILING_ENABLE) != 0;
}

Found devices_of(cl_platform_id platform) {
  Found found{platform, all_devices(platform), false};
  auto& devices = found.devices;
  devices.erase(std::remove_if(devices.begin(), devices.end(),
                               [](cl_device_id device) { return !fits(device); }),
                devices.end());
  found.shares_with_host =
      !devices.empty() && std::all_of(devices.begin(), devices.end(), [](cl_device_id device) {
        return has(device, CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
      });
  return found;
}

Found wished_platform(const std::vector<cl_platform_id>& platforms, const std::string& wish) {
  std::string names;
  for (cl_platform_id platform : platforms) {
    const std::string name = platform_text(platform, CL_PLATFORM_NAME);
    if (name == wish) return devices_of(platform);
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  throw device::Failed(TF_NOT_FOUND, std::string(kWishedPlatform) + " names '" + wish +
                                 "'; the OpenCL platforms here are: " +
                                 (names.empty() ? "none" : names));
}

// A driver that fails must not hide the others.
Found first_platform(const std::vector<cl_platform_id>& platforms) {
  std::string failures;
  for (cl_platform_id platform : platforms) {
    try {
      Found found = devices_of(platform);
      if (!found.devices.empty()) return found;
    } catch (const device::Failed& failed) {
      failures += std::string(failures.empty() ? "" : "; ") + failed.what();
    }
  }
  if (!failures.empty()) throw device::Failed(TF_UNAVAILABLE, "no OpenCL driver works: " + failures);
  return {};
}

Found look_up() {
  const std::vector<cl_platform_id> platforms = all_platforms();
  const char* wish = std::getenv(kWishedPlatform);
  if (wish != nullptr && *wish != '\0') return wished_platform(platforms, wish);
  return first_platform(platforms);
}

Context make_context() {
  const Found& found = found_devices();
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(found.platform), 0};
  cl_int error = CL_SUCCESS;
  Context context(clCreateContext(properties, static_cast<cl_uint>(found.devices.size()),
                                  found.devices.data(), nullptr, nullptr, &error));
  check(error, "clCreateContext");
  return context;
}

// clGetPlatformInfo and clGetDeviceInfo.
template <class Subject, class What>
std::string text(cl_int (*get)(Subject, What, size_t, void*, size_t*), Subject subject, What what) {
  size_t size = 0;
  if (get(subject, what, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string found(size, '\0');
  if (get(subject, what, size, found.data(), nullptr) != CL_SUCCESS) return "";
  return found.c_str();  // the size counts the zero at the end
}

}  // namespace

const Found& found_devices() {
  static const Found* const found = new Found(look_up());  // outlives whoever runs at exit
  return *found;
}

std::shared_ptr<const Context> shared_context() {
  static auto* const mutex = new std::mutex();
  static auto* const current = new std::weak_ptr<const Context>();
  const std::lock_guard lock(*mutex);
  std::shared_ptr<const Context> context = current->lock();
  if (context == nullptr) {
    context = std::make_shared<const Context>(make_context());
    *current = context;
  }
  return context;
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  return text(clGetPlatformInfo, platform, what);
}

std::string device_text(cl_device_id device, cl_device_info what) {
  return text(clGetDeviceInfo, device, what);
}

}  // namespace opencl
