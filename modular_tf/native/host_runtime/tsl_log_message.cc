#include "tsl_log_message.h"

#include <cstdlib>
#include <new>
#include <string>

#include "log_levels.h"
#include "log_line.h"
#include "modular_tf/logging.h"
#include "tsl_vmodule.h"

namespace tsl {
namespace internal {
namespace {

// Throws std::bad_alloc. Never destroyed: plugins log from destructors that run at exit.
const mtf::VmoduleLevels& vmodule_levels() {
  static const auto* const levels = [] {
    const char* text = std::getenv("TF_CPP_VMODULE");
    return new mtf::VmoduleLevels(mtf::parse_vmodule(text == nullptr ? "" : text));
  }();
  return *levels;
}

}  // namespace

LogMessage::LogMessage(const char* file_name, int line, int severity)
    : file_name_(file_name), line_(line), severity_(severity) {}

// Destructors call it, which no exception may leave.
void LogMessage::write(const void* caller) const {
  mtf_plugin_line line = {severity_, line_, 0, file_name_, "a line without memory for it", caller};
  std::string text;
  try {
    text = str();
    line.text = text.c_str();
  } catch (const std::bad_alloc&) {
  }
  mtf_log_line(&line);
}

LogMessage::~LogMessage() {
  if (severity_ >= mtf_min_log_level()) write(__builtin_return_address(0));
}

bool LogMessage::VmoduleActivated(const char* file_name, int level) {
  if (level <= mtf_max_vlog_level()) return true;
  try {
    const auto& levels = vmodule_levels();
    const auto found = levels.find(mtf::module_of(file_name));
    return found != levels.end() && level <= found->second;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

LogMessageFatal::LogMessageFatal(const char* file_name, int line)
    : LogMessage(file_name, line, TF_FATAL) {}

void LogMessageFatal::write_and_abort(const void* caller) const {
  write(caller);
  std::abort();
}

LogMessageFatal::~LogMessageFatal() { write_and_abort(__builtin_return_address(0)); }

}  // namespace internal
}  // namespace tsl
