#include "stream_guard.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <istream>
#include <string>

namespace {

// The memory that the plugin's read under way in this thread may write to.
thread_local char* t_buffer = nullptr;
thread_local size_t t_size = 0;

// A plain pointer: of a reference, and of `this`, the compiler knows that they are not null.
void* read_from(void* stream, char* buffer, std::streamsize size) {
  if (stream == nullptr) return stream;
  // An answer may have more bytes than were asked for; the count that the plugin returns tells.
  const bool is_callers = buffer == t_buffer && t_buffer != nullptr && size > 0;
  if (is_callers) size = static_cast<std::streamsize>(std::min<uint64_t>(size, t_size));
  static_cast<std::istream*>(stream)->read(buffer, size);
  return stream;
}

constexpr std::streamoff kLongestProlog = 4096;

// Whether a text has the parts that come before the first element of an XML document, complete,
// and nothing else. A parser takes that for a document, which has no element then.
bool has_no_element(const std::string& text) {
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos) {
    const bool is_comment = text.compare(at, 4, "<!--") == 0;
    const bool is_prolog = is_comment || text.compare(at, 2, "<?") == 0 ||
                           text.compare(at, 2, "<!") == 0;
    if (!is_prolog) return false;
    const char* const end = is_comment ? "-->" : ">";
    at = text.find(end, at);
    if (at == std::string::npos) return false;
    at += std::strlen(end);
  }
  return true;
}

// The first bytes of a buffer in memory, at most `most`, whose position for reading stays as it is.
// None of a buffer that is not for reading, or has no positions.
std::string beginning_of(std::streambuf* buffer, std::streamoff most) {
  const std::streampos none(std::streamoff(-1));
  const std::streampos before = buffer->pubseekoff(0, std::ios::cur, std::ios::in);
  if (before == none || buffer->pubseekpos(0, std::ios::in) == none) return {};
  std::string text(static_cast<size_t>(most), '\0');
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, buffer->sgetn(&text[0], most))));
  buffer->pubseekpos(before, std::ios::in);
  return text;
}

// Says of a document without an element that nothing was written, so that it is not parsed. What
// is written to a file is no answer of a store.
std::streampos written_to(std::ostream* stream) {
  const std::streampos count = stream->tellp();
  std::streambuf* const buffer = stream->rdbuf();
  if (count <= 0 || count > kLongestProlog || dynamic_cast<std::filebuf*>(buffer) != nullptr) {
    return count;
  }
  const std::string text = beginning_of(buffer, count + std::streamoff(1));
  const bool is_all = text.size() == static_cast<size_t>(std::streamoff(count));
  return is_all && has_no_element(text) ? std::streampos(0) : count;
}

struct Function {
  const char* name;
  void* address;
};

const Function kFunctions[] = {
    {"_ZNSi4readEPcl", reinterpret_cast<void*>(&read_from)},   // std::istream::read(char*, long)
    {"_ZNSo5tellpEv", reinterpret_cast<void*>(&written_to)},  // std::ostream::tellp()
};

bool is_global(const char* name) {
  void* const program = dlopen(nullptr, RTLD_NOW | RTLD_NOLOAD);
  if (program == nullptr) return true;
  const bool found = dlsym(program, name) != nullptr;
  dlclose(program);
  return found;
}

}  // namespace

mtf::ReadBounds::ReadBounds(char* buffer, size_t size) : buffer_(t_buffer), size_(t_size) {
  t_buffer = buffer;
  t_size = size;
}

mtf::ReadBounds::~ReadBounds() {
  t_buffer = buffer_;
  t_size = size_;
}

void* mtf_guarded_stream_function(const char* name, int own_scope_first) {
  for (const Function& function : kFunctions) {
    if (std::strcmp(name, function.name) != 0) continue;
    return own_scope_first == 0 && is_global(name) ? nullptr : function.address;
  }
  return nullptr;
}
