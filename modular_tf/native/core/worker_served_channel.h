// The worker's end of a channel: takes requests, and gives replies.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "owned_error.h"
#include "worker_line.h"

namespace mtf {

// Takes the descriptors, at most two, of a message that comes with so many. False, and none is left
// open, where others came: this process had no number for one of them.
bool take_descriptors(const msghdr& message, int* files, size_t count);

// Made and used by one thread.
class ServedChannel {
 protected:
  // Owns both.
  ServedChannel(int socket, Line& line) : line_(line), socket_(socket) {}
  ~ServedChannel();
  ServedChannel(const ServedChannel&) = delete;
  ServedChannel& operator=(const ServedChannel&) = delete;

  // Waits for a request; false where the host has left.
  bool take_request();
  const char* payload() const { return request_.place == wire::kInArea ? area_ : line_.beside; }

  // Put into the reply: bytes wherever there is room, bytes in a file, an error instead of all else.
  Error answer(const char* bytes, size_t size);
  Error answer_in_file(const char* bytes, size_t size);
  void tell(const Error& error);
  void reply();

  // Whether the host has left without the last reply.
  bool is_unread() const;

  Line& line_;
  char* area_ = nullptr;
  size_t area_size_ = 0;
  wire::Request request_ = {};
  wire::Reply reply_ = {};

 private:
  void empty_area();
  bool take_files();
  bool change_directory(int directory);
  bool map_area(int file);
  void send_file();

  int socket_;
  int file_ = -1;  // of the reply
  uint32_t replied_ = 0;
  bool has_own_directory_ = false;
  bool is_area_used_ = false;  // since its memory was given back
  int64_t area_used_ms_ = 0;   // when it was used last, or was about to be given back
};

}  // namespace mtf
