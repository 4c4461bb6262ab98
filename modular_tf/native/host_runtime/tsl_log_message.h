// The stream classes behind LOG(...) and CHECK(...) in plugins of TensorFlow 2.16. The plugin makes
// them on its stack and writes into the inherited stream with inlined code, so bases and fields are
// the ABI.
#pragma once

#include <sstream>

#include "modular_tf/export.h"

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

}  // namespace internal
}  // namespace tsl
