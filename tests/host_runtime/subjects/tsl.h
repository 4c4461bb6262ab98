// The C++ classes and functions that plugins of TensorFlow 2.16 know, declared as a plugin sees
// them: an own reading of the ABI, so that an error of the runtime's headers is not repeated here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>

namespace tsl {

class mutex {
 public:
  mutex();
  void lock();
  void unlock();

 private:
  void* space_[2];
};

namespace io {
std::string_view Dirname(std::string_view path);
void ParseURI(std::string_view uri, std::string_view* scheme, std::string_view* host,
              std::string_view* path);
}  // namespace io

namespace strings {
size_t FastUInt64ToBufferLeft(uint64_t value, char* buffer);

class AlphaNum {
 public:
  AlphaNum(uint64_t value) : piece_(digits_, FastUInt64ToBufferLeft(value, digits_)) {}
  AlphaNum(const char* text) : piece_(text) {}
  AlphaNum(const AlphaNum&) = delete;

 private:
  std::string_view piece_;
  char digits_[32];
};

std::string StrCat(const AlphaNum& a);
std::string StrCat(const AlphaNum& a, const AlphaNum& b);
std::string StrCat(const AlphaNum& a, const AlphaNum& b, const AlphaNum& c);
std::string StrCat(const AlphaNum& a, const AlphaNum& b, const AlphaNum& c, const AlphaNum& d);
namespace internal {
std::string CatPieces(std::initializer_list<std::string_view> pieces);
}
}  // namespace strings

namespace str_util {
bool StartsWith(std::string_view text, std::string_view prefix);
bool EndsWith(std::string_view text, std::string_view suffix);
bool ConsumePrefix(std::string_view* text, std::string_view prefix);
}  // namespace str_util

namespace internal {
class LogMessage : public std::basic_ostringstream<char> {
 public:
  LogMessage(const char* file, int line, int severity);
  ~LogMessage() override;
  static bool VmoduleActivated(const char* file, int level);

 private:
  const char* file_;
  int line_;
  int severity_;
};

class LogMessageFatal : public LogMessage {
 public:
  LogMessageFatal(const char* file, int line);
  ~LogMessageFatal() override;
};
}  // namespace internal
}  // namespace tsl

namespace tensorflow {
namespace internal {
class LogMessageFatal : public tsl::internal::LogMessage {
 public:
  LogMessageFatal(const char* file, int line);
  ~LogMessageFatal() override;
};
}  // namespace internal
}  // namespace tensorflow
