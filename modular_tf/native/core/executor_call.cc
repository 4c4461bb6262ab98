#include "executor_call.h"

#include <cstdio>

namespace mtf {

Error closed_executor_error(const mtf_executor* executor) {
  if (!executor->is_foreign()) return make_closed_error("the device was closed");
  return make_closed_error("it belongs to the parent process, and a forked child cannot use it");
}

Error missing_slot_error(const char* name) {
  char message[128];
  std::snprintf(message, sizeof message, "the plugin has no %s", name);
  return make_error(TF_UNIMPLEMENTED, message);
}

void Operand::hold() {
  // What is closed, or a parent's, does no work that the end of the owner could wait for.
  if (!owner_->enter() || !user_->is_open()) {
    verdict_ = Verdict::kClosed;
  } else if (!user_->shares_plugin_with(owner_)) {
    verdict_ = Verdict::kStranger;
  } else if (!owner_->add_user(user_)) {
    verdict_ = Verdict::kNoMemory;
  }
}

Error Operand::explain() const {
  switch (verdict_) {
    case Verdict::kUsable: return nullptr;
    case Verdict::kClosed: return closed_executor_error(user_->is_open() ? owner_ : user_);
    case Verdict::kStranger:
      return make_error(TF_INVALID_ARGUMENT,
                        "the streams, events and memory of two plugins cannot be used together");
    case Verdict::kNoMemory: break;
  }
  return make_error(TF_RESOURCE_EXHAUSTED, "no memory to note which devices work together");
}

}  // namespace mtf
