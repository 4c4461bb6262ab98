// What one filesystem was told by its options, and how many bytes its files hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace ram {

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

}  // namespace ram
