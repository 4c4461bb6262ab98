// Messages between processes, some of which carry descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace mtf {

constexpr size_t kMostFiles = 2;  // of a message

// Closes a descriptor that is not -1, and makes it that.
void close_file(int& file);

// Two pieces of memory: of a message that is sent, or where one is received.
struct MessageParts {
  void* header;
  size_t header_size;
  void* body = nullptr;
  size_t body_size = 0;
  void* rest = nullptr;
  size_t rest_size = 0;
};

// Sends a message with `count` descriptors; -1 and errno where that fails. With `flags` as of sendmsg().
ssize_t send_message(int socket, const MessageParts& parts, const int* files, size_t count, int flags = 0);

// Receives a message: its size, 0 at the end, -1 and errno where that fails (EMSGSIZE: it is too long). `files`
// gets at most `most` descriptors, the others are -1 and closed. A wait is interrupted by signals where the socket has a
// time limit (SO_RCVTIMEO).
ssize_t receive_message(int socket, const MessageParts& parts, int* files, size_t most);

}  // namespace mtf
