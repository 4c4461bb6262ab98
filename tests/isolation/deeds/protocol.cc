// Forged replies. The plugin puts itself between the host and the thread that serves a channel: that
// thread goes on with a line of the plugin's, requests come there as they are, and the replies are
// changed but the first, which is that to the deed.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "deed.h"
#include "worker_line.h"

using mtf::Line;
using mtf::wire::Reply;

namespace {

constexpr int kFirst = 5, kMost = 1024;
constexpr size_t kPage = 4096;
constexpr size_t kLineSize = (sizeof(Line) + kPage - 1) / kPage * kPage;

struct Forgery {
  Reply reply;
  int files[2];
  int file_count;
};
using Forge = void (*)(Forgery&);

struct Way {
  Line* host;
  Line* server;
  int socket;
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
void enormous(Forgery& forged) { forged.reply.size = UINT64_MAX; }
void outside(Forgery& forged) {
  forged.reply = {0, 0, {1, 1, 1}, uint64_t{1} << 40, mtf::wire::kInArea, forged.reply.serial};
}
void no_place(Forgery& forged) { forged.reply.place = 77; }
void no_file(Forgery& forged) { forged.reply.place = mtf::wire::kInFile; }
void no_code(Forgery& forged) { forged.reply.code = 77; }
void negative_code(Forgery& forged) { forged.reply.code = -1; }
void other_call(Forgery& forged) { ++forged.reply.serial; }
void no_serial(Forgery& forged) { forged.reply.serial = 0; }
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

void no_token(Forgery& forged) { forged.reply.numbers[0] = 0; }
void enormous_token(Forgery& forged) { forged.reply.numbers[0] = int64_t{1} << 40; }
void spoilt_options(Forgery&) { std::memset(way.host->beside, 0x7f, 64); }
void many_options(Forgery& forged) {
  many_empty(forged);
  forged.reply.numbers[0] /= 32;
}

void wake(Line& line) { syscall(SYS_futex, &line.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

uint32_t wait_for_change(Line& line, uint32_t seen) {
  uint32_t turn;
  while ((turn = line.turn.load()) == seen) {
    syscall(SYS_futex, &line.turn, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
  return turn;
}

// The line of the call that is under way; NULL where there is none.
Line* line() {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char text[512];
  Line* found = nullptr;
  while (maps != nullptr && found == nullptr && fgets(text, sizeof text, maps) != nullptr) {
    uintptr_t start = 0, end = 0;
    if (sscanf(text, "%zx-%zx", &start, &end) != 2 || end - start != kLineSize) continue;
    if (strstr(text, "modular_tf call") == nullptr) continue;
    auto* const candidate = reinterpret_cast<Line*>(start);
    if (candidate->turn.load() == mtf::kOfWorker) found = candidate;
  }
  if (maps != nullptr) fclose(maps);
  return found;
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

void send_files(const Forgery& forged) {
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  char byte = 'f';
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const size_t size = static_cast<size_t>(forged.file_count) * sizeof(int);
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(size);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  *header = {CMSG_LEN(size), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(CMSG_DATA(header), forged.files, size);
  sendmsg(way.socket, &message, MSG_NOSIGNAL);
  for (int i = 0; i < forged.file_count; ++i) close(forged.files[i]);
}

void answer(Line& line, const Reply& reply) {
  line.reply = reply;
  uint32_t turn = mtf::kOfWorker;
  line.turn.compare_exchange_strong(turn, mtf::kOfHost);
  wake(line);
}

void* relay(void*) {
  Line& host = *way.host;
  Line& server = *way.server;
  for (bool is_first = true;; is_first = false) {
    if (wait_for_change(server, mtf::kOfWorker) != mtf::kOfHost) return nullptr;
    Forgery forged = {server.reply, {-1, -1}, 0};
    std::memcpy(host.beside, server.beside, sizeof host.beside);
    if (!is_first) way.forge(forged);
    if (forged.file_count > 0) send_files(forged);
    answer(host, forged.reply);
    const uint32_t turn = wait_for_change(host, mtf::kOfHost);
    server.request = host.request;
    std::memcpy(server.beside, host.beside, sizeof host.beside);
    server.area.store(host.area.load());
    host.taken.store(host.request.serial);
    server.turn.store(turn);
    wake(server);
    if (turn != mtf::kOfWorker) return nullptr;
  }
}

// Takes the next request, which the thread that serves the line never sees, and leaves the reply before
// it where it is.
void* take_request(void*) {
  Line& host = *way.host;
  if (wait_for_change(*way.server, mtf::kOfWorker) != mtf::kOfHost) return nullptr;
  std::memcpy(host.beside, way.server->beside, sizeof host.beside);
  answer(host, way.server->reply);
  if (wait_for_change(host, mtf::kOfHost) != mtf::kOfWorker) return nullptr;
  host.taken.store(host.request.serial);
  answer(host, way.server->reply);
  return nullptr;
}

template <Forge forge, void* (*work)(void*) = relay>
void forge_replies() {
  Line* const served = line();
  if (served == nullptr) _exit(1);
  void* const hosts = mmap(nullptr, kLineSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mremap(served, kLineSize, kLineSize, MREMAP_MAYMOVE | MREMAP_FIXED, hosts) != hosts ||
      mmap(served, kLineSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
          served) {
    _exit(1);
  }
  std::memcpy(static_cast<void*>(served), hosts, sizeof *served);
  way = {static_cast<Line*>(hosts), served, channel(), forge};
  on_thread(work, 0);
}

// Answers beside the thread that serves the line, which comes when the host has seen it.
void answer_first(Line& line, const Reply& reply) {
  answer(line, reply);
  sleep_ms(100);
}
void answer_twice() { answer_first(*line(), {}); }
void* answer_without_end(void* argument) {
  auto& line = *static_cast<Line*>(argument);
  for (;;) answer(line, {});
}
void answer_for_ever() {
  static Line* answered;
  answered = line();
  on_thread([](void*) { return answer_without_end(answered); }, 0);
  sleep_ms(100);
}
void answer_with_rubbish() {
  Reply rubbish;
  std::memset(&rubbish, 0xff, sizeof rubbish);
  answer_first(*line(), rubbish);
}
void answer_too_long() {
  Line& its = *line();
  answer_first(its, {0, 0, {1, 1, 1}, 100000, mtf::wire::kBeside, its.request.serial});
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
    {"forge-no-serial", forge_replies<no_serial>},
    {"forge-two-files", forge_replies<two_files>},
    {"forge-useless-file", forge_replies<useless_file>},
    {"forge-unsealed", forge_replies<unsealed>},
    {"forge-with-holes", forge_replies<with_holes>},
    {"forge-too-short", forge_replies<too_short>},
    {"forge-device", forge_replies<device>},
    {"forge-negative-count", forge_replies<negative_count>},
    {"forge-enormous-count", forge_replies<enormous_count>},
    {"forge-many-empty", forge_replies<many_empty>},
    {"forge-no-token", forge_replies<no_token>},
    {"forge-enormous-token", forge_replies<enormous_token>},
    {"forge-spoilt-options", forge_replies<spoilt_options>},
    {"forge-many-options", forge_replies<many_options>},
    {"steal-requests", forge_replies<nullptr, take_request>},
    {"answer-twice", answer_twice},
    {"answer-for-ever", answer_for_ever},
    {"answer-with-rubbish", answer_with_rubbish},
    {"answer-too-long", answer_too_long},
    {nullptr, nullptr},
};
