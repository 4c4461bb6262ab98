// Forged replies. The plugin puts itself between the host and the thread that serves the channel: that thread
// goes on with a socket of the plugin's, requests come there as they are, and the replies are changed but the
// first, which is that to the deed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "deed.h"
#include "worker_wire.h"

using mtf::wire::Reply;

namespace {

constexpr int kFirst = 5, kMost = 1024;
constexpr int kMostFiles = 4;

struct Message {
  union {
    Reply reply;
    char start[128];  // of a request
  };
  char body[mtf::wire::kInline];
};

struct Forgery {
  Reply& reply;
  int files[kMostFiles];
  int file_count;
};
using Forge = void (*)(Forgery&);

struct Way {
  int host;
  int server;
  Forge forge;
};
Way way;

int new_file(size_t size, int seals) {
  const int file = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (ftruncate(file, static_cast<off_t>(size)) != 0) return -1;
  if (seals != 0) fcntl(file, F_ADD_SEALS, seals);
  return file;
}

void send_file(Forgery& forged, int file, uint64_t claimed) {
  forged.reply = {0, 0, {1, 1, 1}, claimed, mtf::wire::kInFile, forged.reply.serial};
  forged.files[forged.file_count++] = file;
}

constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

void longer(Forgery& forged) { forged.reply.size += 5; }
void outside(Forgery& forged) {
  forged.reply = {0, 0, {1, 1, 1}, uint64_t{1} << 40, mtf::wire::kInArea, forged.reply.serial};
}
void other_call(Forgery& forged) { ++forged.reply.serial; }
void two_files(Forgery& forged) {
  for (int i = 0; i < 2; ++i) forged.files[forged.file_count++] = new_file(0, 0);
}
void unsealed(Forgery& forged) { send_file(forged, new_file(1 << 20, 0), 1 << 20); }
void with_holes(Forgery& forged) {
  send_file(forged, new_file(size_t{1} << 40, kAllSeals), uint64_t{1} << 40);
}
void device(Forgery& forged) { send_file(forged, open("/dev/zero", O_RDWR), 1 << 20); }
/* More names than a directory may have, each of one byte. */
void many_empty(Forgery& forged) {
  constexpr size_t kSize = size_t{1} << 26;
  const int file = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  static char zeros[1 << 16];
  for (size_t done = 0; done < kSize; done += sizeof zeros)
    if (write(file, zeros, sizeof zeros) < 0) return;
  fcntl(file, F_ADD_SEALS, kAllSeals);
  send_file(forged, file, kSize);
  forged.reply.numbers[0] = int64_t{kSize};
}

// The socket of the call that is under way.
int channel() {
  for (int descriptor = kFirst; descriptor < kMost; ++descriptor) {
    int kind = 0;
    socklen_t size = sizeof kind;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_SEQPACKET) {
      return descriptor;
    }
  }
  _exit(1);
}

// Passes a message on, which begins with `head` bytes; 0 at the end of the channel.
ssize_t receive(int socket, Message& message, size_t head, int (&files)[kMostFiles], int& file_count) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))];
  iovec parts[] = {{message.start, head}, {message.body, sizeof message.body}};
  msghdr received = {};
  received.msg_iov = parts;
  received.msg_iovlen = 2;
  received.msg_control = control;
  received.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &received, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&received) : nullptr;
  const size_t size = header != nullptr ? header->cmsg_len - CMSG_LEN(0) : 0;
  if (size > 0) std::memcpy(files, CMSG_DATA(header), size);
  file_count = static_cast<int>(size / sizeof(int));
  return got;
}

void send(int socket, Message& message, size_t head, size_t size, const int* files, int file_count) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
  iovec parts[] = {{message.start, head}, {message.body, size - head}};
  msghdr sent = {};
  sent.msg_iov = parts;
  sent.msg_iovlen = 2;
  if (file_count > 0) {
    const size_t bytes = static_cast<size_t>(file_count) * sizeof(int);
    sent.msg_control = control;
    sent.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&sent);
    *header = {CMSG_LEN(bytes), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(header), files, bytes);
  }
  sendmsg(socket, &sent, MSG_NOSIGNAL);
  for (int i = 0; i < file_count; ++i) close(files[i]);
}

constexpr size_t kRequest = sizeof(mtf::wire::Request);
Message passed;

void* relay(void*) {
  int files[kMostFiles];
  int count = 0;
  for (bool is_first = true;; is_first = false) {
    ssize_t size = receive(way.server, passed, sizeof(Reply), files, count);
    if (size <= 0) return nullptr;
    Forgery forged = {passed.reply, {}, 0};
    for (; forged.file_count < count; ++forged.file_count) forged.files[forged.file_count] = files[forged.file_count];
    if (!is_first) way.forge(forged);
    send(way.host, passed, sizeof(Reply), static_cast<size_t>(size), forged.files, forged.file_count);
    size = receive(way.host, passed, kRequest, files, count);
    if (size <= 0) return nullptr;
    send(way.server, passed, kRequest, static_cast<size_t>(size), files, count);
  }
}

// Takes the next request, which the thread that serves the channel never sees, and sends the reply before it
// once more.
void* take_request(void*) {
  int files[kMostFiles];
  int count = 0;
  static Message request;
  const ssize_t size = receive(way.server, passed, sizeof(Reply), files, count);
  send(way.host, passed, sizeof(Reply), static_cast<size_t>(size), files, count);
  if (receive(way.host, request, kRequest, files, count) <= 0) return nullptr;
  send(way.host, passed, sizeof(Reply), static_cast<size_t>(size), nullptr, 0);
  return nullptr;
}

template <Forge forge, void* (*work)(void*) = relay>
void forge_replies() {
  const int served = channel();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) _exit(1);
  way = {dup(served), ends[0], forge};
  if (dup2(ends[1], served) != served) _exit(1);
  close(ends[1]);
  on_thread(work, 0);
}

// Answers before the thread that serves the channel.
void answer_first(const Reply& reply, size_t body) {
  passed.reply = reply;
  send(channel(), passed, sizeof reply, sizeof reply + body, nullptr, 0);
  sleep_ms(100);
}
void answer_twice() { answer_first({}, 0); }
void answer_for_ever() {
  on_thread([](void*) -> void* {
    for (;;) answer_first({}, 0);
  }, 0);
  sleep_ms(100);
}
void answer_too_long() { answer_first({0, 0, {1, 1, 1}, 100000, mtf::wire::kInMessage, 1}, sizeof passed.body); }

}  // namespace

extern "C" const deed protocol_deeds[] = {
    {"forge-longer", forge_replies<longer>},
    {"forge-outside", forge_replies<outside>},
    {"forge-other-call", forge_replies<other_call>},
    {"forge-two-files", forge_replies<two_files>},
    {"forge-unsealed", forge_replies<unsealed>},
    {"forge-with-holes", forge_replies<with_holes>},
    {"forge-device", forge_replies<device>},
    {"forge-many-empty", forge_replies<many_empty>},
    {"steal-requests", forge_replies<nullptr, take_request>},
    {"answer-twice", answer_twice},
    {"answer-for-ever", answer_for_ever},
    {"answer-too-long", answer_too_long},
    {nullptr, nullptr},
};
