#include "plugin_messages.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <new>

#include "copied_text.h"
#include "fork_lock.h"
#include "host_runtime.h"

namespace {

constexpr size_t kMost = MTF_PLUGIN_MESSAGES_MOST;
constexpr size_t kMostBytes = 16 << 20;
constexpr int kWarning = 1, kFatal = 3;
constexpr std::chrono::seconds kPatienceAtTheEnd(1);

struct Message : mtf_plugin_message {
  Message* next = nullptr;
  size_t n_bytes = 0;
};

struct Queue {
  mtf::Lock lock;
  mtf::Signal filled;   // or closed, or interrupted
  mtf::Signal emptied;  // and the last message dealt with
  Message* first = nullptr;
  Message** last = &first;
  size_t count = 0, n_bytes = 0;
  size_t fetched = 0;  // by readers, who may still be at it
  uint64_t dropped = 0;
  int32_t least_level = 0;
  bool open = false, interrupted = false;
};

Queue* const queue = new Queue;  // never destroyed: plugins' threads may outlive our destructors
decltype(&mtf_write_log_line) write_to_stderr = nullptr;

thread_local Message* own_fetched = nullptr;  // by this thread

// A forked child has none of its parent's messages and no reader. Some may be half in the queue.
const int watching_forks = pthread_atfork(nullptr, nullptr, [] {
  new (queue) Queue;
  own_fetched = nullptr;
});

// One block: the message, its text and the name of its source file. NULL when there is no memory.
Message* copy_of(const mtf_plugin_line& line) {
  const size_t text = mtf_text_length(line.text);
  const size_t source = line.file == nullptr ? 0 : mtf_text_length(line.file);
  const size_t n_bytes = sizeof(Message) + text + 1 + source + 1;
  void* block = std::malloc(n_bytes);
  if (block == nullptr) return nullptr;
  auto* message = new (block) Message;
  char* words = reinterpret_cast<char*>(message + 1);
  char* file = mtf_put_text(words, line.text, text);
  message->level = line.level;
  message->source_line = line.line;
  message->time_ns = line.time_ns;
  message->thread = syscall(SYS_gettid);
  message->caller = line.caller;
  message->text = words;
  message->source = line.file == nullptr ? nullptr : file;
  if (line.file != nullptr) mtf_put_text(file, line.file, source);
  message->n_bytes = n_bytes;
  return message;
}

void write_out(const Message& message) {
  const mtf_plugin_line line = {message.level,  message.source_line, message.time_ns,
                                message.source, message.text,        message.caller};
  write_to_stderr(&line);
}

bool has_room(const Queue& its, int level, size_t n_bytes) {
  const bool matters = level >= kWarning;
  const size_t most = matters ? kMost : kMost / 4 * 3;
  const size_t most_bytes = matters ? kMostBytes : kMostBytes / 4 * 3;
  return its.count < most && its.n_bytes + n_bytes <= most_bytes;
}

Message* take_first(Queue& its) {
  Message* message = its.first;
  if (message == nullptr) return nullptr;
  its.first = message->next;
  if (its.first == nullptr) its.last = &its.first;
  its.count -= 1;
  its.n_bytes -= message->n_bytes;
  return message;
}

// Writes the messages that were not fetched to stderr, except for the message `except`.
void write_out_rest(Queue& its, const Message* except) {
  while (Message* message = take_first(its)) {
    if (message != except) write_out(*message);
    std::free(message);
  }
}

// The process ends by this line, so its thread may wait for the reader, for a while. Returns whether
// the reader has dealt with everything; if not, nothing is left to it.
bool handed_over(Queue& its, mtf::UniqueLock& lock, const Message* fatal) {
  const auto all_done = [&] { return its.first == nullptr && its.fetched == 0; };
  if (its.emptied.wait_for(lock, kPatienceAtTheEnd, all_done)) return true;
  write_out_rest(its, fatal);
  return false;
}

int take_line(const mtf_plugin_line* line) {
  Queue& its = *queue;
  mtf::UniqueLock lock(its.lock);
  if (!its.open) return 0;
  if (line->level < its.least_level) return 1;
  lock.unlock();
  Message* message = copy_of(*line);
  lock.lock();
  if (!its.open || (message == nullptr && line->level >= kWarning)) {
    std::free(message);
    return 0;
  }
  if (message == nullptr || !has_room(its, line->level, message->n_bytes)) {
    std::free(message);
    its.dropped += 1;
    return line->level == kFatal ? 0 : 1;
  }
  *its.last = message;
  its.last = &message->next;
  its.count += 1;
  its.n_bytes += message->n_bytes;
  its.filled.notify_one();
  return line->level != kFatal || handed_over(its, lock, message) ? 1 : 0;
}

// The calling thread has dealt with what it has fetched.
void release_fetched(Queue& its) {
  if (own_fetched == nullptr) return;
  std::free(own_fetched);
  own_fetched = nullptr;
  its.fetched -= 1;
}

// exit() called by a plugin, or whatever else ends the process without Python's taking part.
void write_out_at_exit() {
  Queue& its = *queue;
  mtf::UniqueLock lock(its.lock);
  its.open = false;
  write_out_rest(its, nullptr);
  // A reader may be at what it has fetched, for a while; this thread will not go on with its own.
  const size_t own = own_fetched == nullptr ? 0 : 1;
  its.emptied.wait_for(lock, kPatienceAtTheEnd, [&] { return its.fetched <= own; });
}

}  // namespace

extern "C" {

void mtf_plugin_messages_attach(void* set_log_sink, void* write_log_line) {
  write_to_stderr = reinterpret_cast<decltype(write_to_stderr)>(write_log_line);
  reinterpret_cast<decltype(&mtf_set_log_sink)>(set_log_sink)(take_line);
}

void mtf_plugin_messages_open(int32_t least_level) {
  static const int at_exit = std::atexit(write_out_at_exit);
  if (at_exit != 0 || watching_forks != 0) return;  // nothing is lost: stderr has it
  const mtf::LockGuard lock(queue->lock);
  queue->least_level = least_level;
  queue->open = true;
  queue->interrupted = false;
}

void mtf_plugin_messages_close(void) {
  const mtf::LockGuard lock(queue->lock);
  queue->open = false;
  queue->filled.notify_all();
}

const mtf_plugin_message* mtf_plugin_messages_next(void) {
  Queue& its = *queue;
  mtf::UniqueLock lock(its.lock);
  release_fetched(its);
  if (its.first == nullptr) its.emptied.notify_all();
  its.filled.wait(lock, [&] {
    return its.first != nullptr || !its.open || its.interrupted || its.dropped != 0;
  });
  if (its.interrupted) return nullptr;
  own_fetched = take_first(its);
  if (own_fetched != nullptr) its.fetched += 1;
  return own_fetched;
}

void mtf_plugin_messages_interrupt(void) {
  const mtf::LockGuard lock(queue->lock);
  queue->interrupted = true;
  queue->filled.notify_all();
}

uint64_t mtf_plugin_messages_dropped(void) {
  const mtf::LockGuard lock(queue->lock);
  const uint64_t dropped = queue->dropped;
  queue->dropped = 0;
  return dropped;
}

}  // extern "C"
