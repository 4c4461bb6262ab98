#include "fd_message.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mtf {
namespace {

constexpr size_t kMostParts = 3;

// Puts the parts into a message.
void put_parts(const MessageParts& parts, iovec (&pieces)[kMostParts], msghdr& message) {
  pieces[0] = {parts.header, parts.header_size};
  pieces[1] = {parts.body, parts.body_size};
  pieces[2] = {parts.rest, parts.rest_size};
  message.msg_iov = pieces;
  message.msg_iovlen = kMostParts;
}

}  // namespace

void close_file(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

ssize_t send_message(int socket, const MessageParts& parts, const int* files, size_t count, int flags) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
  iovec pieces[kMostParts];
  msghdr message = {};
  put_parts(parts, pieces, message);
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = {CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(header), files, count * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t receive_message(int socket, const MessageParts& parts, int* files, size_t most) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))];
  iovec pieces[kMostParts];
  msghdr message = {};
  put_parts(parts, pieces, message);
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(most * sizeof(int));  // another one would fit into the padding
  for (size_t i = 0; i < most; ++i) files[i] = -1;
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(files, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
  }
  // Those for which there was no number, or no room, are closed already.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    for (size_t i = 0; i < most; ++i) close_file(files[i]);
  }
  if ((message.msg_flags & MSG_TRUNC) == 0) return got;
  for (size_t i = 0; i < most; ++i) close_file(files[i]);
  errno = EMSGSIZE;
  return -1;
}

}  // namespace mtf
