// The host's channels to the worker of a plugin.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "fd_message.h"
#include "fork_lock.h"
#include "worker.h"
#include "worker_area.h"
#include "worker_wire.h"

namespace mtf {

constexpr int kMostChannels = 64;
constexpr std::chrono::seconds kBetweenTries(5);  // for more channels than the process has had room for

// A socket and the memory that belongs to it. Used by one call at a time.
struct Channel {
  int socket = -1;
  bool is_asked = false;  // the reply to the last request was not read
  unsigned forks = 0;     // fork_generation() of the process whose channel it is
  Area area;
  int area_file = -1;  // to be sent with the next request; -1 when the worker has it
  int64_t run = 0;  // of the worker
  uint32_t serial = 0;  // of the last request
  Channel* next = nullptr;
  wire::Reply reply;
  char received[wire::kInline + 1];  // the payload that came with it; then a NUL fits

  ~Channel();                 // and the worker undoes what was opened and not read
  bool reserve(size_t size);  // takes an area of at least this size; false: no memory
  void drop_area();
};

// Length and time of a file when it was stated.
struct SeenFile {
  int64_t length;
  int64_t mtime_nsec;
  bool operator==(const SeenFile& other) const {
    return length == other.length && mtime_nsec == other.mtime_nsec;
  }
};

// The last files that were stated, by path.
class SeenFiles {
 public:
  void keep(const char* path, const SeenFile& seen);
  bool find(const char* path, SeenFile* seen) const;

 private:
  static constexpr size_t kMost = 64;
  struct Entry {
    std::string path;
    SeenFile seen;
  };
  std::vector<Entry> entries_;
  size_t next_ = 0;
};

}  // namespace mtf

struct mtf_worker {
  int64_t number = 0;
  const mtf_plugin* plugin = nullptr;
  int64_t timeout_ms = 0;
  std::atomic<int> references{1};
  std::atomic<int64_t> calls{0};

  mtf::Lock lock;  // of what follows
  mtf::Signal changed;
  mtf::Channel* idle = nullptr;
  int channels = 0;  // idle and in use
  int most_channels = mtf::kMostChannels;  // fewer after the process of now has refused one
  int more_channels = 0;  // how many more calls may try to have one at `tries_more_at`
  std::chrono::steady_clock::time_point tries_more_at;
  int in_flight = 0;
  int waiting = 0;  // for a change
  int given_up = 0;
  mtf::SeenFiles seen;
  int control = -1;
  int64_t run = 0;
  unsigned forks = 0;  // fork_generation() of the process whose channels these are
  bool is_starting = false;
  bool is_closed = false;

  void retain() { references.fetch_add(1); }
  void release();
};

namespace mtf {

// Forgets the connection of a process that is gone. Called with the lock, as is the next one.
void disconnect(mtf_worker& worker);

// After a channel was refused: lets calls try for more from time to time, each time for twice as many as
// the time before. Whether one may now. Called with the lock.
bool may_try_more_channels(mtf_worker& worker);

// In a forked child: forgets the connection of its parent.
void forget_parents(mtf_worker& worker);

}  // namespace mtf
