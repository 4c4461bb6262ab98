// The worker's end of a channel: takes requests, and gives replies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "owned_error.h"
#include "worker_wire.h"

namespace mtf {

// Made and used by one thread.
class ServedChannel {
 protected:
  explicit ServedChannel(int socket) : socket_(socket) {}  // owns it
  ~ServedChannel();
  ServedChannel(const ServedChannel&) = delete;
  ServedChannel& operator=(const ServedChannel&) = delete;

  // Waits for a request; false where the host has left.
  bool take_request();
  const char* payload() const { return request_.place == wire::kInArea ? area_ : message_; }

  // Put into the reply: bytes wherever there is room, bytes in a file, an error instead of all else.
  Error answer(const char* bytes, size_t size);
  Error answer_in_file(const char* bytes, size_t size);
  void report(const Error& error);
  void reply();

  // Whether the host has left without the last reply.
  bool is_unread() const { return is_unread_; }

  char* area_ = nullptr;
  size_t area_size_ = 0;
  wire::Request request_ = {};
  wire::Reply reply_ = {};
  char message_[wire::kInline];  // the payload of the request, then of the reply

 private:
  bool use_files(int* files);
  bool change_directory(int directory);
  bool map_area(int file);

  int socket_;
  int file_ = -1;  // of the reply
  bool has_own_directory_ = false;
  bool is_unread_ = false;
};

}  // namespace mtf
