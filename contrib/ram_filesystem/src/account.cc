#include "account.h"

#include <utility>

namespace ram {

std::string Account::label() const {
  const std::lock_guard lock(label_mutex_);
  return label_;
}

void Account::set_label(std::string label) {
  const std::lock_guard lock(label_mutex_);
  label_ = std::move(label);
}

bool Account::charge(size_t bytes) {
  const int64_t more = static_cast<int64_t>(bytes);
  const int64_t limit = capacity_bytes.load();
  int64_t used = used_.load();
  do {
    if (limit > 0 && used > limit - more) return false;
  } while (!used_.compare_exchange_weak(used, used + more));
  return true;
}

void Account::release(size_t bytes) { used_.fetch_sub(static_cast<int64_t>(bytes)); }

}  // namespace ram
