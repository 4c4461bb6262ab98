// The host's channels to the worker of a plugin, and a call by one of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "error.h"
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

// Rules of rules/first_contact.py as marks of a status.
constexpr int32_t kWorkerEnded = 2140;  // LD-140
constexpr int32_t kWorkerLate = 2141;   // LD-141
constexpr int32_t kInvalidReply = 2142;   // LD-142
constexpr int32_t kFileLost = 2143;     // LD-143
// A signal handler raised an exception during the call.
constexpr int32_t kInterrupted = 2999;

constexpr int kLookForSignalsMs = 100;
constexpr size_t kMostOfAText = 4096;  // of the text that Python gives

// Runs the signal handlers that wait, where this thread is the one that does. Whether one has raised an
// exception, now or while the process was asked for, which is kept for the caller.
bool is_interrupted();

// A call: takes a channel, sends the request, waits for the reply, and gives the channel back.
class WorkerCall {
 public:
  // `run`: only in this process of the worker; 0: any.
  WorkerCall(mtf_worker* worker, TF_Status* status, int64_t run = 0);
  ~WorkerCall();
  WorkerCall(const WorkerCall&) = delete;
  WorkerCall& operator=(const WorkerCall&) = delete;

  // How many calls of this worker the thread is in; more than one where signal handlers make calls.
  static int of_this_thread(const mtf_worker* worker);

  // False: there is no channel, and the status says why.
  explicit operator bool() const { return channel_ != nullptr; }
  int64_t run() const { return channel_->run; }

  // Texts for the request; `second` may be NULL. False: no memory.
  bool texts(const char* first, const char* second);
  // Bytes of the caller's, which stay there until the call has returned.
  bool bytes(const char* data, size_t size);
  // Room for what comes back.
  bool room(size_t size);

  // Sends the request and waits. False where the status is not OK.
  bool perform(wire::Request request);

  // Whether the last request was answered, be it by an error of the plugin's.
  bool is_answered() const { return is_answered_; }
  const wire::Reply& reply() const { return channel_->reply; }
  // Ends a call whose reply cannot be one, and its channel; returns false.
  bool reject_reply(const char* what);
  // The payload, of reply().size bytes, where it is in the message or in the area.
  const char* payload() const;
  // Maps the payload for reading, wherever it is, for the caller to munmap where `mapped` is true. NULL
  // and a status where it cannot be, or is longer than `most`.
  const char* map(uint64_t most, bool* mapped);
  // A copy of it, of malloc's, with a NUL behind it; as map() else.
  char* copy_payload(uint64_t most);

 private:
  // What became of a request. kNotBegun: the process has ended without taking it. kRefused: so has the channel
  // alone; the process had no thread or no descriptor for another one.
  enum class Outcome { kDone, kNotBegun, kRefused, kFailed };
  Outcome ask(const wire::Request& request);
  Outcome send(wire::Request request);
  Outcome receive();
  Outcome check_wait(int64_t waited_ms);
  Outcome not_begun();
  bool has_ended();
  bool is_refused();
  bool acquire_again();
  bool acquire_other();
  void give_back();
  bool add_directory(const char* path);
  bool check_reply();
  bool is_closed();
  bool failed(int code, int32_t mark, const char* format, ...) __attribute__((format(printf, 4, 5)));
  bool lost(bool is_late, int64_t run);
  bool acquire();
  Channel* new_channel();
  bool start(UniqueLock& lock);
  bool is_started_by_this_thread() const;
  void give_up();

  inline static thread_local WorkerCall* innermost_ = nullptr;
  WorkerCall* const outer_;  // of this thread
  mtf_worker* worker_;
  TF_Status* status_;
  int64_t wanted_run_;
  bool is_starting_ = false;  // it starts a process
  bool is_answered_ = false;
  size_t room_ = 0;
  Channel* channel_ = nullptr;
  const char* data_ = nullptr;  // the payload of the request
  const char* second_ = nullptr;
  size_t first_size_ = 0;
  size_t size_ = 0;
  size_t received_ = 0;  // bytes of the payload in the message of the reply
  int file_ = -1;       // that came with the reply
  int directory_ = -1;  // to be sent
};

}  // namespace mtf
