// What the function in place of std::ostream::tellp says of streams; prints one count a line.
#include "stream_guard.h"

#include <iostream>
#include <sstream>
#include <streambuf>
#include <string>

namespace {

using Tell = std::streampos (*)(std::ostream*);

// Has no positions: what was read of it cannot be put back.
class Pipe : public std::streambuf {
 public:
  std::string bytes;
  size_t taken = 0;

 protected:
  int_type overflow(int_type byte) override {
    bytes.push_back(static_cast<char>(byte));
    return byte;
  }
  int_type underflow() override {
    return taken < bytes.size() ? static_cast<unsigned char>(bytes[taken]) : traits_type::eof();
  }
  int_type uflow() override {
    const int_type byte = underflow();
    if (taken < bytes.size()) ++taken;
    return byte;
  }
  pos_type seekoff(off_type offset, std::ios::seekdir from, std::ios::openmode which) override {
    const bool is_tell = offset == 0 && from == std::ios::cur && which == std::ios::out;
    return pos_type(is_tell ? static_cast<off_type>(bytes.size()) : off_type(-1));
  }
};

void print(Tell tell, std::ostream&& stream, const char* text) {
  stream << text;
  std::cout << tell(&stream) << "\n";
}

}  // namespace

int main() {
  const auto tell = reinterpret_cast<Tell>(mtf_guarded_stream_function("_ZNSo5tellpEv", 1));
  print(tell, std::stringstream(), "<?xml version='1.0'?>\n<!-- > -->\n");
  print(tell, std::stringstream(), "<?xml?><a/>");
  print(tell, std::stringstream(), "abc");
  print(tell, std::ostringstream(), "abc");
  print(tell, std::ostringstream(), "<?xml?>");
  print(tell, std::stringstream(), "");
  std::stringstream document("<?xml?><a/>");
  document.seekp(7);
  std::cout << tell(&document) << "\n";  // in front of the element
  Pipe pipe;
  print(tell, std::ostream(&pipe), "<?xml?>");
  std::cout << pipe.taken << "\n";
}
