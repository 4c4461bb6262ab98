// A call of the host's in the worker of a plugin.
#pragma once

#include "error.h"
#include "worker_channels.h"

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
  bool lost(bool is_late);
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
