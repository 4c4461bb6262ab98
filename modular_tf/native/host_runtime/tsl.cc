// Helpers for strings, URIs and locks that plugins of TensorFlow 2.16 import. Layouts are the ABI:
// AlphaNum is made by inlined code in the plugin.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "fork_lock.h"
#include "host_runtime.h"
#include "modular_tf/export.h"
#include "modular_tf/logging.h"
#include "copied_text.h"

namespace tsl {
namespace strings {

constexpr std::size_t kBufferSize = 32;

struct AlphaNum {
  std::string_view text;
  char digits[kBufferSize];  // what `text` points to when the value was a number
};
static_assert(sizeof(AlphaNum) == 48, "the size is compiled into plugins");

// Writes the decimal digits and a NUL; returns how many digits. `buffer` has 32 bytes.
TF_CAPI_EXPORT std::size_t FastUInt64ToBufferLeft(uint64_t value, char* buffer) {
  char* end = std::to_chars(buffer, buffer + kBufferSize - 1, value).ptr;
  *end = '\0';
  return static_cast<std::size_t>(end - buffer);
}

namespace internal {

TF_CAPI_EXPORT std::string CatPieces(std::initializer_list<std::string_view> pieces) {
  std::size_t length = 0;
  for (std::string_view piece : pieces) length += piece.size();
  std::string whole;
  whole.reserve(length);
  for (std::string_view piece : pieces) whole.append(piece);
  return whole;
}

}  // namespace internal

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a) { return std::string(a.text); }

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a, const AlphaNum& b) {
  return internal::CatPieces({a.text, b.text});
}

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a, const AlphaNum& b, const AlphaNum& c) {
  return internal::CatPieces({a.text, b.text, c.text});
}

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a, const AlphaNum& b, const AlphaNum& c,
                                  const AlphaNum& d) {
  return internal::CatPieces({a.text, b.text, c.text, d.text});
}

}  // namespace strings

namespace str_util {

TF_CAPI_EXPORT bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

TF_CAPI_EXPORT bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

// Cuts the prefix off `*text` when it is there, and says whether it was.
TF_CAPI_EXPORT bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  const bool starts = StartsWith(*text, prefix);
  if (starts) text->remove_prefix(prefix.size());
  return starts;
}

}  // namespace str_util

// Results point into the argument. The rules are TensorFlow's own (filesystem-abi §5).
namespace io {

TF_CAPI_EXPORT void ParseURI(std::string_view uri, std::string_view* scheme, std::string_view* host,
                             std::string_view* path) {
  const std::size_t length = mtf_scheme_length(uri.data(), uri.size());
  const std::string_view rest = length == 0 ? uri : uri.substr(length + 3);
  const std::size_t host_length = length == 0 ? 0 : rest.find('/');
  *scheme = uri.substr(0, length);
  *host = rest.substr(0, host_length);
  *path = host_length == std::string_view::npos ? rest.substr(rest.size())
                                                : rest.substr(host_length);
}

// All before the last '/' of the path; scheme and host stay, and so does the root's own slash.
TF_CAPI_EXPORT std::string_view Dirname(std::string_view uri) {
  std::string_view scheme;
  std::string_view host;
  std::string_view path;
  ParseURI(uri, &scheme, &host, &path);
  const std::size_t before_path = uri.size() - path.size();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return uri.substr(0, before_path);
  return uri.substr(0, before_path + (slash == 0 ? 1 : slash));
}

}  // namespace io

// 16 opaque bytes, a constructor here, a trivial destructor in the plugin; all zero where it was never
// constructed at run time.
class mutex {
 public:
  TF_CAPI_EXPORT mutex();
  TF_CAPI_EXPORT void lock();
  TF_CAPI_EXPORT void unlock();

 private:
  mtf::Lock lock_;  // which a forked child finds free
  uint32_t unused_[2];
};
static_assert(sizeof(mutex) == 16, "the size is compiled into plugins");

mutex::mutex() : unused_{} {}
void mutex::lock() { lock_.lock(); }
void mutex::unlock() { lock_.unlock(); }

// The stream classes behind LOG(...) and CHECK(...) in plugins of TensorFlow 2.16. The plugin makes
// them on its stack and writes into the inherited stream with inlined code, so bases and fields are
// the ABI.

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
