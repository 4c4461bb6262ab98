// What the host and the worker process of a plugin send each other.
//
// A channel is a line of memory (worker_line.h), an area of memory, and a socket pair, on which only
// descriptors are sent, each of them before the request or reply that it belongs to; its end is the end of
// the channel. The host hands one request over and waits for one reply. What is longer than kInline lies in
// the area, which the host makes and seals: the worker can change its bytes, but not its length. A result
// of unknown length comes in a sealed memory file of the worker's, which has all its pages and never
// changes. The host believes no length, number or text of a reply.
#pragma once

#include <cstddef>
#include <cstdint>

#include "filesystem_slots.h"

namespace mtf::wire {

constexpr size_t kInline = size_t{16} << 10;   // bytes in the line of a channel
constexpr size_t kBlock = size_t{1} << 20;      // of long reads of files of this machine
constexpr size_t kMostArea = size_t{64} << 20;     // longer reads come in parts
constexpr size_t kMostAppended = size_t{8} << 20;  // longer writes go in parts

// What a request is for: the number of a slot (filesystem_slots.def), or one of these.
enum Operation : uint32_t {
  kStatAndOpenReader = kSlotCount,  // gives length and time too
  kRead,
  kReleaseReader,
  kAppend,
  kTell,
  kFlush,
  kSync,
  kCloseWriter,
  kReleaseWriter,
};
constexpr uint32_t operation_of(Slot slot) { return static_cast<uint32_t>(slot); }

// Where the payload of a message is. A request's: two texts, each with its NUL, the bytes to append, or
// options (worker_options.h).
enum Place : uint32_t { kBeside = 0, kInArea = 1, kInFile = 2 };

struct Request {
  uint32_t operation;
  uint32_t filesystem;  // which of the worker's
  uint64_t file;        // the number of an open file, or of a transaction
  uint64_t offset;
  uint64_t size;  // bytes of the payload; of a read: how many are wanted
  uint32_t first;  // bytes of the first text
  uint32_t count;  // of options
  uint32_t place;
  uint32_t files;  // which descriptors come with it, in this order
  uint32_t serial;  // the reply repeats it
  uint32_t zero;
};

enum SentFile : uint32_t {
  kNewArea = 1,
  kDirectory = 2,  // the host's current directory, for a path that begins there
};

enum Flag : uint32_t { kThrown = 1, kClosed = 2 };

struct Reply {
  int32_t code;    // TF_Code; the payload is the message unless it is 0
  uint32_t flags;  // of the error
  int64_t numbers[3];
  uint64_t size;  // bytes of the payload
  uint32_t place;
  uint32_t serial;  // of the request: a fork of the worker may answer twice
};

}  // namespace mtf::wire
