// Forged replies. The plugin puts itself between the host and the thread that serves a channel: it has
// the requests go on as they are, and changes the replies but the first, which is that to the deed.
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
constexpr size_t kLargest = sizeof(Reply) + mtf::wire::kInline;

struct Forgery {
  Reply reply;
  char beside[mtf::wire::kInline];
  size_t size;  // of the message
  int files[2];
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
  forged.size = sizeof forged.reply;
  forged.files[forged.file_count++] = file;
}

constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

void longer(Forgery& forged) { forged.reply.size += 5; }
void enormous(Forgery& forged) { forged.reply.size = UINT64_MAX; }
void outside(Forgery& forged) {
  forged.reply = {0, 0, {1, 1, 1}, uint64_t{1} << 40, mtf::wire::kInArea, forged.reply.serial};
  forged.size = sizeof forged.reply;
}
void no_place(Forgery& forged) { forged.reply.place = 77; }
void no_file(Forgery& forged) { forged.reply.place = mtf::wire::kInFile; }
void no_code(Forgery& forged) { forged.reply.code = 77; }
void negative_code(Forgery& forged) { forged.reply.code = -1; }
void other_call(Forgery& forged) { ++forged.reply.serial; }
void cut_off(Forgery& forged) { forged.size = 3; }
void two_files(Forgery& forged) {
  for (int i = 0; i < 2; ++i) forged.files[forged.file_count++] = new_file(0, 0);
}
void useless_file(Forgery& forged) { forged.files[forged.file_count++] = new_file(0, 0); }
void unsealed(Forgery& forged) { send_file(forged, new_file(1 << 20, 0), 1 << 20); }
void with_holes(Forgery& forged) {
  send_file(forged, new_file(size_t{1} << 40, kAllSeals), uint64_t{1} << 40);
}
void too_short(Forgery& forged) { send_file(forged, new_file(4096, kAllSeals), 1 << 20); }
void device(Forgery& forged) { send_file(forged, open("/dev/zero", O_RDWR), 1 << 20); }
void negative_count(Forgery& forged) { forged.reply.numbers[0] = -1; }
void enormous_count(Forgery& forged) { forged.reply.numbers[0] = INT64_MAX; }
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

ssize_t take(int socket, Reply* reply, void* beside, int* file) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec parts[2] = {{reply, sizeof *reply}, {beside, mtf::wire::kInline}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &message, 0);
  const cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header != nullptr) std::memcpy(file, CMSG_DATA(header), sizeof *file);
  return got;
}

void give(int socket, Forgery& forged) {
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  iovec parts[2] = {{&forged.reply, sizeof forged.reply}, {forged.beside, 0}};
  if (forged.size < sizeof forged.reply) {
    parts[0].iov_len = forged.size;
  } else {
    parts[1].iov_len = forged.size - sizeof forged.reply;
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (forged.file_count > 0) {
    const size_t size = static_cast<size_t>(forged.file_count) * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = {CMSG_LEN(size), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(header), forged.files, size);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
  for (int i = 0; i < forged.file_count; ++i) close(forged.files[i]);
}

void* relay_replies(void*) {
  static Forgery forged;
  for (bool is_first = true;; is_first = false) {
    int file = -1;
    const ssize_t got = take(way.server, &forged.reply, forged.beside, &file);
    if (got <= 0) return nullptr;
    forged.size = static_cast<size_t>(got);
    forged.file_count = 0;
    if (file >= 0) forged.files[forged.file_count++] = file;
    if (!is_first) way.forge(forged);
    give(way.host, forged);
  }
}

// The descriptors that come with requests stay here: the calls that are forged need none.
void* relay_requests(void*) {
  static char request[kLargest + 4096];
  for (;;) {
    const ssize_t got = recv(way.host, request, sizeof request, 0);
    if (got <= 0) break;
    send(way.server, request, static_cast<size_t>(got), MSG_NOSIGNAL);
  }
  shutdown(way.server, SHUT_RDWR);
  return nullptr;
}

int channel() {
  for (int descriptor = kFirst; descriptor < kMost; ++descriptor) {
    int kind = 0;
    socklen_t size = sizeof kind;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_SEQPACKET) {
      return descriptor;
    }
  }
  return -1;
}

template <Forge forge>
void forge_replies() {
  const int found = channel();
  int ends[2];
  if (found < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) _exit(1);
  way = {dup(found), ends[0], forge};
  dup2(ends[1], found);
  close(ends[1]);
  on_thread(relay_replies, 0);
  on_thread(relay_requests, 0);
}

// Writes to the channel beside the one who serves it.
void answer_twice() {
  Reply reply = {};
  send(channel(), &reply, sizeof reply, MSG_NOSIGNAL);
}
void answer_for_ever() {
  Reply reply = {};
  while (send(channel(), &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
  }
}
void answer_with_rubbish() {
  static char rubbish[kLargest];
  std::memset(rubbish, 0xff, sizeof rubbish);
  send(channel(), rubbish, sizeof rubbish, MSG_NOSIGNAL);
}
void answer_too_long() {
  static char rubbish[100000];
  send(channel(), rubbish, sizeof rubbish, MSG_NOSIGNAL);
}


}  // namespace

extern "C" const deed protocol_deeds[] = {
    {"forge-longer", forge_replies<longer>},
    {"forge-enormous", forge_replies<enormous>},
    {"forge-outside", forge_replies<outside>},
    {"forge-no-place", forge_replies<no_place>},
    {"forge-no-file", forge_replies<no_file>},
    {"forge-no-code", forge_replies<no_code>},
    {"forge-negative-code", forge_replies<negative_code>},
    {"forge-other-call", forge_replies<other_call>},
    {"forge-cut-off", forge_replies<cut_off>},
    {"forge-two-files", forge_replies<two_files>},
    {"forge-useless-file", forge_replies<useless_file>},
    {"forge-unsealed", forge_replies<unsealed>},
    {"forge-with-holes", forge_replies<with_holes>},
    {"forge-too-short", forge_replies<too_short>},
    {"forge-device", forge_replies<device>},
    {"forge-negative-count", forge_replies<negative_count>},
    {"forge-enormous-count", forge_replies<enormous_count>},
    {"forge-many-empty", forge_replies<many_empty>},
    {"answer-twice", answer_twice},
    {"answer-for-ever", answer_for_ever},
    {"answer-with-rubbish", answer_with_rubbish},
    {"answer-too-long", answer_too_long},
    {nullptr, nullptr},
};
