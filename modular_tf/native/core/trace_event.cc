#include "trace_event.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "filesystem_state.h"
#include "redacted_text.h"

namespace mtf {
namespace {

constexpr const char* kStatuses[] = {
    "OK",                  "CANCELLED",      "UNKNOWN",            "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",   "NOT_FOUND",      "ALREADY_EXISTS",     "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",  "FAILED_PRECONDITION", "ABORTED",       "OUT_OF_RANGE",
    "UNIMPLEMENTED",       "INTERNAL",       "UNAVAILABLE",        "DATA_LOSS",
    "UNAUTHENTICATED"};

const char* status_name(int code) {
  constexpr int kCount = sizeof kStatuses / sizeof *kStatuses;
  return kStatuses[code >= 0 && code < kCount ? code : int{TF_UNKNOWN}];
}

bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

// The length of the UTF-8 character at `bytes`, which end with NUL; 0: there is none.
size_t character_at(const unsigned char* bytes) {
  const unsigned char first = bytes[0];
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!continues(bytes[i])) return 0;
  }
  const unsigned char second = bytes[1];
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_none = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return is_overlong || is_none ? 0 : length;
}

// Adds a JSON string; bytes that are no UTF-8 become U+FFFD.
void add_string(std::string& text, const char* value) {
  text += '"';
  const auto* at = reinterpret_cast<const unsigned char*>(value);
  while (*at != 0) {
    const size_t length = character_at(at);
    if (length == 0) {
      text += "\\ufffd";
    } else if (*at < 0x20 || *at == 0x7f) {
      char escaped[7];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", *at);
      text += escaped;
    } else {
      if (*at == '"' || *at == '\\') text += '\\';
      text.append(reinterpret_cast<const char*>(at), length);
    }
    at += length == 0 ? 1 : length;
  }
  text += '"';
}

void add_microseconds(std::string& text, const char* name, uint64_t ns) {
  char number[64];
  std::snprintf(number, sizeof number, ", \"%s\": %" PRIu64 ".%03u", name, ns / 1000,
                static_cast<unsigned>(ns % 1000));
  text += number;
}

}  // namespace

void add_event(std::string& text, const CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns,
               int code) {
  text += "{\"name\": ";
  add_string(text, call.operation);
  text += ", \"cat\": ";
  add_string(text, call.plugin->name);
  text += ", \"ph\": \"X\"";
  add_microseconds(text, "ts", begin_ns);
  add_microseconds(text, "dur", end_ns - begin_ns);
  char numbers[128];
  std::snprintf(numbers, sizeof numbers,
                ", \"pid\": %ld, \"tid\": %ld, \"args\": {\"bytes\": %" PRIu64
                ", \"status\": \"%s\", \"plugin\": ",
                static_cast<long>(getpid()), static_cast<long>(syscall(SYS_gettid)), call.bytes(),
                status_name(code));
  text += numbers;
  add_string(text, call.plugin->name);
  if (call.subject != nullptr) {
    const bool is_cut = std::strlen(call.subject) == OpenFile::kMostOfAPath - 1;
    text += ", \"subject\": ";
    add_string(text, redacted_text(call.subject, is_cut).c_str());
  }
  text += "}}";
}

}  // namespace mtf
