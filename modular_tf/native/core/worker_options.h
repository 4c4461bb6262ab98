// Options of a filesystem, as host and worker send them to each other.
//
// What is malformed crosses as it is: the host refuses it as it would in its own process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "filesystem.h"

namespace mtf {

constexpr size_t kMostOfOptions = size_t{16} << 20;  // bytes of all that are sent at a time
constexpr char kTooManyOptions[] = "options of more than 16 MiB cannot be sent between processes";

// Options whose blocks are malloc's.
struct OwnedOptions {
  OwnedOptions() = default;
  ~OwnedOptions();
  OwnedOptions(const OwnedOptions&) = delete;
  OwnedOptions& operator=(const OwnedOptions&) = delete;

  mtf_option* options = nullptr;
  int count = 0;
};

// Appends options to `bytes`. False: there are more than kMostOfOptions.
bool write_options(const mtf_option* options, int count, std::string& bytes);

// Reads so many options, and nothing else, from bytes that nobody changes meanwhile. False: that is not
// what they are, or there is no memory.
bool read_options(const char* bytes, size_t size, int64_t count, OwnedOptions& made);

}  // namespace mtf
