// The memory through which a channel hands requests and replies over.
//
// Host and worker take turns: who has no turn sleeps on `turn`, a futex, which takes half as long as a
// message through a socket. The worker may write here whatever it likes, whenever it likes: the host
// copies what it looks at, then checks the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "worker_wire.h"

namespace mtf {

enum Turn : uint32_t {
  kOfHost = 0,      // the last request is answered, or there was none
  kOfWorker = 1,    // there is a request
  kLeft = 2,        // the host uses the channel no more
  kLeftUnread = 3,  // the same, and it has not taken the reply to its last request
};

// Who may touch the area of the channel now.
enum AreaUse : uint32_t {
  kUnused = 0,    // nobody, until one of the two sides takes it
  kOfCall = 1,    // from the host's request, before it is handed over, to its look at the reply
  kEmptying = 2,  // the worker is giving the memory back
  kEmpty = 3,     // nobody, as above, and its memory was given back
};

struct Line {
  std::atomic<uint32_t> turn;
  std::atomic<uint32_t> area;
  std::atomic<uint32_t> taken;  // the serial of the last request that the worker has begun with
  wire::Request request;
  wire::Reply reply;
  char beside[wire::kInline];  // the payload of the request, then of the reply
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "processes share it");

// The host's: gives the worker its turn, or leaves.
void hand_over(Line& line, uint32_t turn);
// The worker's: gives the host its turn. False: it has left.
bool hand_back(Line& line);

// Sleeps while `seen` is the turn, at most so long; 0: without an end. It may wake for no reason. Returns
// 0 or an error number: EINTR after the handler of a signal has run.
int sleep_on(Line& line, uint32_t seen, int64_t most_ms);

}  // namespace mtf
