#include "event.h"

#include <utility>

namespace host {

void Mark::pass() {
  {
    const std::lock_guard lock(mutex_);
    passed_ = true;
  }
  changed_.notify_all();
}

bool Mark::passed() const {
  const std::lock_guard lock(mutex_);
  return passed_;
}

void Mark::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return passed_; });
}

MarkPointer passed_mark() {
  auto mark = std::make_shared<Mark>();
  mark->pass();
  return mark;
}

void Event::set(MarkPointer mark) {
  const std::lock_guard lock(mutex_);
  mark_ = std::move(mark);
}

MarkPointer Event::mark() const {
  const std::lock_guard lock(mutex_);
  return mark_;
}

}  // namespace host
