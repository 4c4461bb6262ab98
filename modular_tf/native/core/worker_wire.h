// What the host and the worker process of a plugin send each other.
//
// A channel is a socket of packets. A request is one message, and so is its reply: the structure, then the
// payload, where that has at most kInline bytes. A longer one lies in the area of the channel, memory that the
// host makes and seals: the worker can change its bytes, but not its length. A result of unknown length that is
// longer comes in a sealed memory file of the worker's, which has all its pages and never changes. The host
// believes no length, number or text of a reply.
#pragma once

#include <cstddef>
#include <cstdint>

#include "filesystem_slots.h"

namespace mtf::wire {

constexpr size_t kInline = size_t{64} << 10;       // bytes of a payload in a message
constexpr size_t kMostLocal = size_t{4} << 20;     // longer reads of local files come in parts, which fit into caches
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
  kForget,  // has no reply: the host did not read the reply before, and closes the channel
};
constexpr uint32_t operation_of(Slot slot) { return static_cast<uint32_t>(slot); }

// Where the payload of a message is. A request's: two texts, each with its NUL, the bytes to append, or
// options (worker_options.h).
enum Place : uint32_t { kInMessage = 0, kInArea = 1, kInFile = 2 };

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

enum Flag : uint32_t {
  kThrown = 1,
  kClosed = 2,
  kFilesRefused = 4,  // the descriptors of the request could not be used: it was not begun, and its area is not known
};

struct Reply {
  int32_t code;    // TF_Code; the payload is the message unless it is 0
  uint32_t flags;  // of the error
  int64_t numbers[3];
  uint64_t size;  // bytes of the payload
  uint32_t place;
  uint32_t serial;  // of the request: a fork of the worker may answer twice
};

}  // namespace mtf::wire
