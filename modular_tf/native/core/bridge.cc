#include "bridge.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "bridge_calls.h"
#include "utf8.h"

namespace mtf::bridge {
namespace {

using SetStatus = void (*)(TF_Status*, int, const char*);

constexpr size_t kAlignment = 64;  // of memory that tensors map
constexpr auto kPause = std::chrono::milliseconds(1);

SetStatus tensorflow_set_status = nullptr;
std::atomic<int64_t> under_way{0};
std::atomic<bool> is_closed{false};
std::string offered;  // under the GIL
bool has_offer = false;

// The calls of the parent's other threads are not in the child.
[[maybe_unused]] const int watching_forks =
    pthread_atfork(nullptr, nullptr, [] { under_way = 0; });

}  // namespace

void set_status(TF_Status* status, int code, const char* message) {
  tensorflow_set_status(status, code, message);
}

std::string printable(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    if (length != 0) {
      result.append(text, at, length);
      at += length;
    } else {
      const auto byte = static_cast<unsigned char>(text[at++]);
      result += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return result;
}

void finish(TF_Status* status, const Answer& answer) {
  if (answer.code == TF_OK) {
    set_status(status, TF_OK, "");
  } else {
    const bool has_text = answer.text != nullptr;  // not where Python's own lines were interrupted
    set_status(status, answer.code, has_text ? answer.text : "modular_tf: the call was interrupted");
  }
}

void release(int64_t file) {
  if (file == 0) return;
  Answer answer;
  const Call call;
  if (call) mtf_upcall_file("release", file, nullptr, 0, &answer);
}

UniqueCallLock lock_of(CallLock& lock, int64_t file, TF_Status* status) {
  while (!lock.try_lock()) {
    if (lock.is_held_by_this_thread()) {
      const std::string message = std::string("modular_tf: ") + kFileIsInterrupted + kUseFileLater;
      set_status(status, TF_FAILED_PRECONDITION, message.c_str());
      return {};
    }
    Answer answer;
    mtf_upcall_file("wait", file, nullptr, 0, &answer);
  }
  return UniqueCallLock(lock, std::adopt_lock);
}

void refuse(TF_Status* status) {
  set_status(status, TF_FAILED_PRECONDITION, "modular_tf: the process ends");
}

Call::Call() {
  under_way.fetch_add(1);  // first: who closes waits for those that have seen it open
  is_open_ = !is_closed.load();
}

Call::~Call() {
  int64_t count = under_way.load();
  while (count > 0 && !under_way.compare_exchange_weak(count, count - 1)) {
  }
}

}  // namespace mtf::bridge

using namespace mtf::bridge;

extern "C" {

char* mtf_bridge_copy(const char* bytes, size_t size) {
  const size_t room = (size + kAlignment) / kAlignment * kAlignment;  // one byte more at least
  auto* copy = static_cast<char*>(std::aligned_alloc(kAlignment, room));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, bytes, size);
  copy[size] = '\0';
  return copy;
}

mtf_error* mtf_bridge_connect(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return mtf::make_error(TF_FAILED_PRECONDITION, "TensorFlow's library is not in the process");
  }
  auto set = reinterpret_cast<SetStatus>(dlsym(handle, "TF_SetStatus"));
  if (set == nullptr) return mtf::make_error(TF_FAILED_PRECONDITION, "it has no TF_SetStatus");
  tensorflow_set_status = set;
  return nullptr;
}

mtf_error* mtf_bridge_offer(const char* scheme) {
  offered = scheme;
  has_offer = true;
  return nullptr;
}

int64_t mtf_bridge_close(double wait_s) {
  is_closed = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_s);
  while (under_way.load() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
  }
  const int64_t left = under_way.load();
  close_writers();
  return left;
}

void mtf_bridge_open(void) { is_closed = false; }

// TensorFlow's way in: called once for each scheme that is offered.
TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = [](size_t size) { return std::malloc(size); };
  info->plugin_memory_free = [](void* memory) { std::free(memory); };
  info->num_schemes = 0;
  if (!has_offer || tensorflow_set_status == nullptr) return;
  has_offer = false;
  info->ops = static_cast<TF_FilesystemPluginOps*>(std::calloc(1, sizeof(TF_FilesystemPluginOps)));
  if (info->ops == nullptr) return;
  fill_tables(info->ops, offered.c_str());
  info->num_schemes = 1;
}

}  // extern "C"
