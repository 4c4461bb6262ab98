#include "call_trace.h"

#include <pthread.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "call_counts.h"
#include "filesystem_state.h"
#include "fork_lock.h"

namespace {

// -- secrets in URIs, which no trace shows: the rules of modular_tf/redaction.py, for code that cannot ask
// Python. A test compares the two --

constexpr char kHidden[] = "***";
constexpr char kQuotes[] = "'\"";

// As Python's \s and \w; all bytes of other letters than ASCII's are letters.
bool is_space(char c) { return (c >= 9 && c <= 13) || (c >= 28 && c <= 32); }
bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_';
}
bool is_any(char c, const char* of) { return std::strchr(of, c) != nullptr; }

// Where the characters end, from `at` on, for which `holds`.
template <class Holds>
size_t end_of(const std::string& text, size_t at, Holds&& holds) {
  while (at < text.size() && holds(at)) ++at;
  return at;
}

// The length of a control character, as it is or as `repr` writes it; 0: there is none.
size_t separator_at(const std::string& text, size_t at) {
  if (at >= text.size()) return 0;
  if (text[at] >= 1 && text[at] <= 8) return 1;
  const bool is_written = text.compare(at, 3, "\\x0") == 0 && at + 3 < text.size();
  return is_written && text[at + 3] >= '1' && text[at + 3] <= '8' ? 4 : 0;
}

// What is hidden: from `begin` to `end`; nothing where they are one.
struct Secret {
  size_t begin = 0;
  size_t end = 0;
};

// A parameter of the host, behind a control character, but for the address of the server.
Secret parameter_at(const std::string& text, size_t at, bool) {
  const size_t length = separator_at(text, at);
  const size_t name = at + length;
  if (length == 0 || text.compare(name, 5, "host=") == 0) return {};
  const size_t sign = end_of(text, name, [&](size_t i) { return is_word(text[i]); });
  if (sign == name || sign == text.size() || text[sign] != '=') return {};
  const size_t end = end_of(text, sign + 1, [&](size_t i) {
    return text[i] != '/' && !is_space(text[i]) && !is_any(text[i], kQuotes) &&
           separator_at(text, i) == 0;
  });
  return {sign + 1, end};
}

// The password of a user, up to the last @ before the path.
Secret password_at(const std::string& text, size_t at, bool is_cut) {
  if (text.compare(at, 3, "://") != 0) return {};
  const size_t colon = end_of(text, at + 3, [&](size_t i) {
    return !is_space(text[i]) && !is_any(text[i], "/:@?#'\"");
  });
  if (colon == text.size() || text[colon] != ':') return {};
  const size_t begin = colon + 1;
  const size_t end = end_of(text, begin, [&](size_t i) {
    return text[i] != '/' && !is_space(text[i]) && !is_any(text[i], kQuotes);
  });
  if (is_cut && end == text.size()) return {begin, end};
  const size_t last = text.rfind('@', end - 1);
  return last == std::string::npos || last <= begin ? Secret{} : Secret{begin, last};
}

// A token in place of a user; what is short, or has no digit, is a name.
Secret token_at(const std::string& text, size_t at, bool is_cut) {
  constexpr size_t kShortest = 20;  // characters, which begin with any byte but 10xxxxxx
  if (text.compare(at, 3, "://") != 0) return {};
  size_t characters = 0;
  bool has_digit = false;
  const size_t end = end_of(text, at + 3, [&](size_t i) {
    if (is_space(text[i]) || is_any(text[i], "/:@?#'\"")) return false;
    characters += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    has_digit = has_digit || (text[i] >= '0' && text[i] <= '9');
    return true;
  });
  const bool is_user = end == text.size() ? is_cut : text[end] == '@';
  return is_user && has_digit && characters >= kShortest ? Secret{at + 3, end} : Secret{};
}

bool names_secret(const std::string& name) {
  static constexpr const char* kEnds[] = {"signature",  "token", "secret", "password",
                                          "credential", "key"};
  return strcasecmp(name.c_str(), "sig") == 0 ||
         std::any_of(std::begin(kEnds), std::end(kEnds), [&](const std::string& end) {
           return name.size() >= end.size() &&
                  strcasecmp(name.c_str() + (name.size() - end.size()), end.c_str()) == 0;
         });
}

// A parameter of a query that signs it.
Secret signature_at(const std::string& text, size_t at, bool) {
  if (text[at] != '?' && text[at] != '&') return {};
  const size_t sign = end_of(
      text, at + 1, [&](size_t i) { return is_word(text[i]) || text[i] == '-'; });
  if (sign == text.size() || text[sign] != '=') return {};
  if (!names_secret(text.substr(at + 1, sign - at - 1))) return {};
  const size_t end = end_of(text, sign + 1, [&](size_t i) {
    return !is_any(text[i], "&#") && !is_space(text[i]) && !is_any(text[i], kQuotes);
  });
  return {sign + 1, end};
}

using SecretAt = Secret (*)(const std::string&, size_t, bool);

std::string without(const std::string& text, bool is_cut, SecretAt secret_at) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const Secret secret = secret_at(text, at, is_cut);
    const bool is_hidden = secret.begin < secret.end;
    shown.append(text, at, (is_hidden ? secret.begin : at + 1) - at);
    if (is_hidden) shown += kHidden;
    at = is_hidden ? secret.end : at + 1;
  }
  return shown;
}

// `is_cut`: the text may go on; what may be the beginning of a secret is hidden too.
std::string redacted_text(const char* text, bool is_cut) {
  std::string shown = text;
  if (shown.find("://") == std::string::npos) return shown;
  for (SecretAt secret_at : {parameter_at, password_at, token_at, signature_at}) {
    shown = without(shown, is_cut, secret_at);
  }
  return shown;
}

// -- a call as one event of a trace: a line of JSON --

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

// Adds a call as one event. Secrets in what it is about are hidden.
void add_event(std::string& text, const mtf::CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns,
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
    const bool is_cut = std::strlen(call.subject) == mtf::OpenFile::kMostOfAPath - 1;
    text += ", \"subject\": ";
    add_string(text, redacted_text(call.subject, is_cut).c_str());
  }
  text += "}}";
}

// -- the trace --

constexpr char kClose[] = "\n]\n";

// Writes all of `text`, at `place` or, where that is negative, behind what was written; an errno.
int write_all(int file, const std::string& text, off_t place) {
  size_t done = 0;
  while (done < text.size()) {
    const char* const rest = text.data() + done;
    const size_t size = text.size() - done;
    const ssize_t count = place < 0 ? write(file, rest, size)
                                    : pwrite(file, rest, size, place + static_cast<off_t>(done));
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) done += static_cast<size_t>(count);
  }
  return 0;
}

// The trace of the process, one at a time. In a regular file each event takes the place of what
// closes the array, and closes it again; what cannot be written over is closed at the end.
class Trace {
 public:
  // An errno.
  int begin(int file, uint64_t* number) {
    const mtf::LockGuard guard(lock_);
    if (file_ >= 0) return EBUSY;
    struct stat facts = {};
    if (fstat(file, &facts) != 0) return errno;
    is_regular_ = S_ISREG(facts.st_mode);
    if (is_regular_ && ftruncate(file, 0) != 0) return errno;
    end_ = 0;
    failure_ = put(file, "[");
    if (failure_ != 0) return failure_;
    is_first_ = true;
    file_ = file;
    *number = ++number_;
    mtf::measured.fetch_or(mtf::kMeasureTrace);
    return 0;
  }

  int end(uint64_t number) {
    const mtf::LockGuard guard(lock_);
    if (file_ < 0 || number != number_) return 0;
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
    const int file = file_;
    file_ = -1;
    if (failure_ == 0 && !is_regular_) failure_ = write_all(file, kClose, -1);
    return failure_;
  }

  void add(const mtf::CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns, int code) {
    std::string event = ",\n";
    add_event(event, call, begin_ns, end_ns, code);
    const mtf::LockGuard guard(lock_);
    if (file_ < 0 || failure_ != 0) return;
    if (is_first_) event[0] = ' ';
    is_first_ = false;
    failure_ = put(file_, event);
    if (failure_ != 0) give_up();
  }

  void fail(int failure) {
    const mtf::LockGuard guard(lock_);
    if (failure_ == 0) failure_ = failure;
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
  }

  // In a forked child: file and trace are the parent's.
  void abandon() {
    file_ = -1;
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
  }

 private:
  int put(int file, const std::string& text) {
    if (!is_regular_) return write_all(file, text, -1);
    const int failure = write_all(file, text + kClose, end_);
    if (failure == 0) end_ += static_cast<off_t>(text.size());
    return failure;
  }

  // Leaves the events before the one that could not be written.
  void give_up() {
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
    if (!is_regular_ || ftruncate(file_, end_) != 0) return;
    static_cast<void>(write_all(file_, kClose, end_));
  }

  mtf::Lock lock_;
  int file_ = -1;  // the caller's; negative: no trace
  uint64_t number_ = 0;
  bool is_regular_ = false;
  bool is_first_ = true;
  off_t end_ = 0;  // of the events in a regular file
  int failure_ = 0;
};

Trace* const trace = new Trace;  // never destroyed: plugins' threads may outlive our destructors
const int watching_forks = pthread_atfork(nullptr, nullptr, [] { trace->abandon(); });

}  // namespace

void mtf::trace_call(const CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns,
                     int code) noexcept {
  try {
    trace->add(call, begin_ns, end_ns, code);
  } catch (const std::bad_alloc&) {
    trace->fail(ENOMEM);
  }
}

extern "C" uint64_t mtf_trace_begin(int file, int* failure) {
  uint64_t number = 0;
  *failure = trace->begin(file, &number);
  return number;
}

extern "C" int mtf_trace_end(uint64_t number) { return trace->end(number); }
