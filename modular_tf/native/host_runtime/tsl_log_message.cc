// The stream classes behind LOG(...) and CHECK(...) in plugins of TensorFlow 2.16. The plugin makes
// them on its stack and writes into the inherited stream with inlined code, so bases and fields are
// the ABI.
#include <charconv>
#include <cstdlib>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "log_line.h"
#include "modular_tf/export.h"
#include "modular_tf/logging.h"

namespace tsl {
namespace internal {

class LogMessage : public std::basic_ostringstream<char> {
 public:
  // Severities as in TF_LogLevel. `file_name` must outlive the message.
  TF_CAPI_EXPORT LogMessage(const char* file_name, int line, int severity);
  // Writes the line unless TF_CPP_MIN_LOG_LEVEL drops it.
  TF_CAPI_EXPORT ~LogMessage() override;
  // Whether VLOG(level) in that source file is on.
  TF_CAPI_EXPORT static bool VmoduleActivated(const char* file_name, int level);

 protected:
  // Hands the line over as one of the code that `caller` lies in.
  void write(const void* caller) const;

 private:
  const char* file_name_;
  int line_;
  int severity_;
};

class LogMessageFatal : public LogMessage {
 public:
  TF_CAPI_EXPORT LogMessageFatal(const char* file_name, int line);
  // Writes the line, then aborts the process.
  TF_CAPI_EXPORT ~LogMessageFatal() override;

 protected:
  [[noreturn]] void write_and_abort(const void* caller) const;
};

static_assert(sizeof(LogMessage) == sizeof(std::ostringstream) + 16, "compiled into plugins");
static_assert(sizeof(LogMessageFatal) == sizeof(LogMessage), "compiled into plugins");

namespace {

// TF_CPP_VMODULE: VLOG levels for single source files.
using VmoduleLevels = std::map<std::string, int, std::less<>>;

void add_entry(std::string_view entry, VmoduleLevels* levels) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return;
  int level = 0;
  const char* end = entry.data() + entry.size();
  const auto parsed = std::from_chars(entry.data() + equals + 1, end, level);
  if (parsed.ec == std::errc() && parsed.ptr == end) {
    levels->insert_or_assign(std::string(entry.substr(0, equals)), level);
  }
}

// Reads "module=level,module=level"; entries of another shape are skipped.
VmoduleLevels parse_vmodule(std::string_view text) {
  VmoduleLevels levels;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    add_entry(text.substr(0, comma), &levels);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return levels;
}

// The name by which the variable knows a source file: no folders, nothing from the first dot on.
std::string_view module_of(std::string_view file_name) {
  const std::size_t slash = file_name.rfind('/');
  if (slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  return file_name.substr(0, file_name.find('.'));
}

// Throws std::bad_alloc. Never destroyed: plugins log from destructors that run at exit.
const VmoduleLevels& vmodule_levels() {
  static const auto* const levels = [] {
    const char* text = std::getenv("TF_CPP_VMODULE");
    return new VmoduleLevels(parse_vmodule(text == nullptr ? "" : text));
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
    const auto found = levels.find(module_of(file_name));
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

// The same class under the name it had before TensorFlow 2.11; tensorflow-directml-plugin needs it.
namespace tensorflow {
namespace internal {

class LogMessageFatal : public tsl::internal::LogMessageFatal {
 public:
  TF_CAPI_EXPORT LogMessageFatal(const char* file_name, int line);
  TF_CAPI_EXPORT ~LogMessageFatal() override;
};

LogMessageFatal::LogMessageFatal(const char* file_name, int line)
    : tsl::internal::LogMessageFatal(file_name, line) {}

LogMessageFatal::~LogMessageFatal() { write_and_abort(__builtin_return_address(0)); }

}  // namespace internal
}  // namespace tensorflow
