#include "executor_call.h"

#include <cstdio>

namespace mtf {
namespace {

thread_local mtf_error* kept_error = nullptr;

}  // namespace

mtf_error* closed_executor_error() { return make_closed_error("the device was closed"); }

mtf_error* missing_slot_error(const char* name) {
  char message[128];
  std::snprintf(message, sizeof message, "the plugin has no %s", name);
  return make_error(12, message);
}

std::nullptr_t fail_with(mtf_error* error) {
  mtf_error_free(kept_error);
  kept_error = error;
  return nullptr;
}

void Operand::hold() {
  if (!owner_->enter()) {
    verdict_ = Verdict::kClosed;
  } else if (!user_->shares_plugin_with(owner_)) {
    verdict_ = Verdict::kStranger;
  } else if (!owner_->add_user(user_)) {
    verdict_ = Verdict::kNoMemory;
  }
}

mtf_error* Operand::explain() const {
  switch (verdict_) {
    case Verdict::kUsable: return nullptr;
    case Verdict::kClosed: return closed_executor_error();
    case Verdict::kStranger:
      return make_error(3, "the streams, events and memory of two plugins cannot be used together");
    case Verdict::kNoMemory: break;
  }
  return make_error(8, "no memory to note which devices work together");
}

}  // namespace mtf

extern "C" mtf_error* mtf_take_error(void) {
  mtf_error* error = mtf::kept_error;
  mtf::kept_error = nullptr;
  return error;
}
