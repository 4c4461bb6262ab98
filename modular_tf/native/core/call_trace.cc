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
#include "utf8.h"

namespace {

// -- secrets in URIs, which no trace shows: the rules of modular_tf/redaction.py, for code that cannot ask
// Python. A test compares the two --

constexpr char kHidden[] = "***";

// Where a part of a URI ends: at one of `ends`, at Python's \s, or at a quote.
size_t end_of_part(const std::string& text, size_t at, const char* ends) {
  const std::string all = std::string("\t\n\v\f\r\x1c\x1d\x1e\x1f '\"") + ends;
  return std::min(text.find_first_of(all, at), text.size());
}

// Where a name ends: Python's \w, with all bytes of other letters than ASCII's, and `more`.
size_t end_of_name(const std::string& text, size_t at, const char* more) {
  const auto is_in_name = [&](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) != 0 || c == '_' || std::strchr(more, c) != nullptr;
  };
  while (at < text.size() && is_in_name(static_cast<unsigned char>(text[at]))) ++at;
  return at;
}

// The length of a control character, as it is or as `repr` writes it; 0: there is none.
size_t separator_at(const std::string& text, size_t at) {
  if (text[at] >= 1 && text[at] <= 8) return 1;
  const bool is_written = text.compare(at, 3, "\\x0") == 0;
  return is_written && text[at + 3] >= '1' && text[at + 3] <= '8' ? 4 : 0;
}

// What is hidden: from `begin` to `end`; nothing where they are one.
struct Secret {
  size_t begin = 0;
  size_t end = 0;
};

// A parameter of the host, behind a control character, but for the address of the server.
Secret parameter_at(const std::string& text, size_t at, bool) {
  const size_t name = at + separator_at(text, at);
  if (name == at || text.compare(name, 5, "host=") == 0) return {};
  const size_t sign = end_of_name(text, name, "");
  if (sign == name || text[sign] != '=') return {};
  const size_t most = end_of_part(text, sign + 1, "/");
  size_t end = sign + 1;
  while (end < most && separator_at(text, end) == 0) ++end;
  return {sign + 1, end};
}

// The password of a user, up to the last @ before the path.
Secret password_at(const std::string& text, size_t at, bool is_cut) {
  if (text.compare(at, 3, "://") != 0) return {};
  const size_t colon = end_of_part(text, at + 3, "/:@?#");
  if (text[colon] != ':') return {};
  const size_t end = end_of_part(text, colon + 1, "/");
  if (is_cut && end == text.size()) return {colon + 1, end};
  const size_t last = text.rfind('@', end - 1);
  return last == std::string::npos || last <= colon + 1 ? Secret{} : Secret{colon + 1, last};
}

// A token in place of a user; what is short, or has no digit, is a name.
Secret token_at(const std::string& text, size_t at, bool is_cut) {
  constexpr int kShortest = 20;  // characters, which begin with any byte but 10xxxxxx
  if (text.compare(at, 3, "://") != 0) return {};
  const size_t end = end_of_part(text, at + 3, "/:@?#");
  const std::string user = text.substr(at + 3, end - at - 3);
  const bool is_user = end == text.size() ? is_cut : text[end] == '@';
  const bool is_token =
      user.find_first_of("0123456789") != std::string::npos &&
      std::count_if(user.begin(), user.end(), [](char c) { return (c & 0xc0) != 0x80; }) >= kShortest;
  return is_user && is_token ? Secret{at + 3, end} : Secret{};
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
  const size_t sign = end_of_name(text, at + 1, "-");
  if (text[sign] != '=' || !names_secret(text.substr(at + 1, sign - at - 1))) return {};
  return {sign + 1, end_of_part(text, sign + 1, "&#")};
}

// `is_cut`: the text may go on; what may be the beginning of a secret is hidden too.
std::string redacted_text(std::string text, bool is_cut) {
  if (text.find("://") == std::string::npos) return text;
  for (const auto secret_at : {parameter_at, password_at, token_at, signature_at}) {
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const Secret secret = secret_at(text, at, is_cut);
      const bool is_hidden = secret.begin < secret.end;
      shown.append(text, at, (is_hidden ? secret.begin : at + 1) - at);
      if (is_hidden) shown += kHidden;
      at = is_hidden ? secret.end : at + 1;
    }
    text = shown;
  }
  return text;
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

// A JSON string; bytes that are no UTF-8 become U+FFFD.
std::string json(const std::string& value) {
  std::string text = "\"";
  for (size_t at = 0; at < value.size();) {
    const size_t length = mtf::character_length(value, at);
    const auto first = static_cast<unsigned char>(value[at]);
    if (length == 0) {
      text += "\\ufffd";
    } else if (first < 0x20 || first == 0x7f) {
      char escaped[7];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", first);
      text += escaped;
    } else {
      if (first == '"' || first == '\\') text += '\\';
      text.append(value, at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return text + '"';
}

// A call as one event. Secrets in what it is about are hidden.
std::string event_of(const mtf::CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns, int code) {
  const uint64_t took_ns = end_ns - begin_ns;
  char facts[320];
  std::snprintf(facts, sizeof facts,
                ", \"ph\": \"X\", \"ts\": %" PRIu64 ".%03u, \"dur\": %" PRIu64 ".%03u, \"pid\": %ld, "
                "\"tid\": %ld, \"args\": {\"bytes\": %" PRIu64 ", \"status\": \"%s\", \"plugin\": ",
                begin_ns / 1000, static_cast<unsigned>(begin_ns % 1000), took_ns / 1000,
                static_cast<unsigned>(took_ns % 1000), static_cast<long>(getpid()),
                static_cast<long>(syscall(SYS_gettid)), call.bytes(), status_name(code));
  const std::string plugin = json(call.plugin->name);
  std::string text = "{\"name\": " + json(call.operation) + ", \"cat\": " + plugin + facts + plugin;
  if (call.subject != nullptr) {
    const bool is_cut = std::strlen(call.subject) == mtf::OpenFile::kMostOfAPath - 1;
    text += ", \"subject\": " + json(redacted_text(call.subject, is_cut));
  }
  return text + "}}";
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
    std::string event = ",\n" + event_of(call, begin_ns, end_ns, code);
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
