// A call of the host's in the worker of a plugin.
#pragma once

#include "owned_error.h"
#include "worker_channels.h"

namespace mtf {

// Rules of rules/first_contact.py as marks of a status.
constexpr int32_t kWorkerEnded = 2140;  // LD-140
constexpr int32_t kWorkerLate = 2141;   // LD-141
constexpr int32_t kInvalidReply = 2142;   // LD-142
constexpr int32_t kFileLost = 2143;     // LD-143
// A signal handler raised an exception during the call.
constexpr int32_t kInterrupted = 2999;

constexpr int64_t kLookForSignalsMs = 100;
constexpr size_t kMostOfAText = 4096;  // of what Python tells

// Runs the signal handlers that wait, where this thread is the one that does. Whether one has raised an
// exception, now or while the process was asked for, which is kept for the caller.
bool is_interrupted();

// A call: takes a channel, sends the request, waits for the reply, and gives the channel back.
class WorkerCall {
 public:
  // `run`: only in this process of the worker; 0: any. Without `waits`, where no channel is free,
  // there is none, and the status stays OK.
  WorkerCall(mtf_worker* worker, TF_Status* status, int64_t run = 0, bool waits = true);
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
  // The same in two steps, which may be repeated.
  bool begin(const wire::Request& request);
  bool finish();
  // Between them: brings memory for as many bytes of what comes back, until the worker has answered.
  void bring_room(size_t size);

  // Whether the last request was answered, be it by an error of the plugin's.
  bool is_answered() const { return is_answered_; }
  const wire::Reply& reply() const { return channel_->reply; }
  // Ends a call whose reply cannot be one, and its channel; returns false.
  bool reject_reply(const char* what);
  // The payload, of reply().size bytes, where it is beside or in the area.
  const char* payload() const;
  // Maps the payload for reading, wherever it is, for the caller to munmap where `mapped` is true. NULL
  // and a status where it cannot be, or is longer than `most`.
  const char* map(uint64_t most, bool* mapped);
  // A copy of it, of malloc's, with a NUL behind it; as map() else.
  char* copy_payload(uint64_t most);

 private:
  // Where a request has come to. With kNoProcess nothing has begun, nor with kRefused, which is the
  // channel's: the process lives, and had no thread or no descriptor for another one.
  enum class Way { kDone, kNoProcess, kRefused, kFailed };
  Way send(const wire::Request& request);
  Way send_files(wire::Request& request);
  Way receive();
  Way look(int64_t waited_ms);
  bool has_ended();
  bool is_refused();
  Way ended();
  Way without_process(Way way);
  void take_reply();
  void take_file();
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
  bool waits_;
  bool is_starting_ = false;  // it starts a process
  bool is_begun_ = false;
  bool is_answered_ = false;
  wire::Request begun_ = {};
  size_t room_ = 0;
  Channel* channel_ = nullptr;
  const char* data_ = nullptr;  // the payload of the request
  const char* second_ = nullptr;
  size_t first_size_ = 0;
  size_t size_ = 0;
  int file_ = -1;       // that came with the reply
  int directory_ = -1;  // to be sent
};

}  // namespace mtf
