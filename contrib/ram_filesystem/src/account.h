// Why an operation did not work, and what one filesystem was told by its options.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <string>

#include "modular_tf/status.h"

namespace ram {

// Inside the plugin faults travel as values; TF_Status is for the outside.
enum class Fault {
  kNone,
  kMissing,
  kParentIsFile,
  kIsDirectory,
  kNotDirectory,
  kExists,
  kNotEmpty,
  kIsRoot,
  kEmptyFile,
  kEndOfFile,
  kClosed,
  kNoSpace,
  kNoMemory,
  kUnknownOption,
  kWrongType,
  kBadValue,
  kInternal,
};

TF_Code code_of(Fault fault);
const char* text_of(Fault fault);

// Runs `body`, which returns a Fault; no exception leaves it, since the caller is C.
template <class Body>
Fault caught(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fault::kNoMemory;
  } catch (const std::exception&) {
    return Fault::kInternal;
  }
}

// Shared by a filesystem and everything that was opened from it. [any thread]
class Account {
 public:
  std::atomic<int64_t> capacity_bytes{0};   // of all files together; 0: no limit
  std::atomic<int64_t> block_bytes{64};     // buffers of files are multiples of it
  std::atomic<double> growth_factor{2.0};   // a full buffer is replaced by one so much bigger

  std::string label() const;
  void set_label(std::string label);

  // Counts `bytes` more; false, and nothing counted, where capacity_bytes would be passed.
  bool charge(size_t bytes);
  void release(size_t bytes);

 private:
  std::atomic<int64_t> used_{0};
  mutable std::mutex label_mutex_;
  std::string label_;
};

// The message is "[label] subject; text of the fault", without the brackets when there is no label.
void report(Fault fault, const Account& account, const char* subject, TF_Status* status);

}  // namespace ram
