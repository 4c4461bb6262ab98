// A worker that answers whatever comes to its mind, against the host's side of the protocol
// (native/core/worker_call.cc, worker_proxies.cc). Both run in this process,
// so that sanitizers see all that the host does with the replies.
//
// Usage: protocol_fuzzer MESSAGES SEED     exit status 1 where something was believed or is left
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "fd_message.h"
#include "filesystem.h"
#include "filesystem_state.h"
#include "fuzzed_options.h"
#include "fuzzer_dice.h"
#include "worker.h"
#include "worker_area.h"
#include "worker_upcalls.h"
#include "worker_wire.h"

using namespace mtf::wire;

namespace {

constexpr int kThreads = 4;
constexpr int64_t kTimeoutMs = 200;
constexpr size_t kMostOfAFile = size_t{1} << 18;

std::atomic<int64_t> sent{0};
std::atomic<int64_t> messages_left{0};
std::atomic<uint64_t> seeds{0};
std::mutex told_lock;
std::map<int, int64_t> told;  // by rule, or by code where there is none; OK is 0

// -- the worker -----------------------------------------------------------------------------------

struct Message {
  Reply reply;
  char body[kInline];
  size_t size;  // of body
  std::vector<int> files;
};

// A file of a kind that the host may be sent.
int new_file(Dice& dice, uint64_t size) {
  if (one_in(dice, 8)) return open("/dev/zero", O_RDWR | O_CLOEXEC);
  if (one_in(dice, 8)) return open("/", O_PATH | O_CLOEXEC);
  const int file = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (one_in(dice, 3)) {  // with holes, however large
    if (ftruncate(file, static_cast<off_t>(size & INT64_MAX)) != 0) return file;
  } else {
    std::vector<char> bytes(size % kMostOfAFile);
    for (char& byte : bytes) byte = one_in(dice, 10) ? '\0' : 'f';
    if (!bytes.empty() && write(file, bytes.data(), bytes.size()) < 0) return file;
  }
  constexpr int kSeals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_SEAL};
  int seals = 0;
  for (const int seal : kSeals) seals |= one_in(dice, 6) ? 0 : seal;
  fcntl(file, F_ADD_SEALS, seals);
  return file;
}

uint64_t any_size(Dice& dice, size_t body, size_t area) {
  const uint64_t sizes[] = {body, body, body, body + 1, kInline, kInline + 1, area, area + 1,
                            uint64_t{area} * 2, dice() % 100000, uint64_t{1} << 32, uint64_t{1} << 62,
                            UINT64_MAX, UINT64_MAX - 1, 0};
  return any_of(dice, sizes);
}

constexpr uint32_t kGetOption = operation_of(mtf::Slot::get_filesystem_configuration_option);

bool is_of_options(uint32_t operation) {
  return operation == operation_of(mtf::Slot::get_filesystem_configuration) || operation == kGetOption;
}

// Puts options into a reply that is a success.
void put_options(Dice& dice, const Request& request, Message& message) {
  const bool is_one = request.operation == kGetOption && !one_in(dice, 8);
  const int count = is_one ? 1 : static_cast<int>(dice() % 4);
  const std::string bytes = any_options(dice, count);
  message.reply = {0, 0, {count, 0, 0}, bytes.size(), kInMessage, request.serial};
  if (one_in(dice, 8)) message.reply.numbers[0] = any_number(dice);
  if (one_in(dice, 8)) message.reply.size = dice() % (bytes.size() + 2);
  std::memcpy(message.body, bytes.data(), bytes.size());
  message.size = bytes.size();
}

void make_reply(Dice& dice, const Request& request, size_t area, Message& message) {
  const size_t body = one_in(dice, 3) ? 0 : dice() % (one_in(dice, 50) ? kInline + 1 : 200);
  for (size_t i = 0; i < body; ++i) message.body[i] = one_in(dice, 5) ? '\0' : 'x';
  const int32_t codes[] = {0, 0, 0, 0, 0, 1, 5, 11, 16, 17, -1, INT32_MAX, INT32_MIN};
  const uint32_t places[] = {kInMessage, kInMessage, kInMessage, kInArea, kInFile, kInFile, 3, UINT32_MAX};
  message.reply = {any_of(dice, codes), static_cast<uint32_t>(dice() % 8), {}, body,
                   any_of(dice, places), request.serial};
  for (int64_t& number : message.reply.numbers) number = any_number(dice);
  if (one_in(dice, 2)) message.reply.size = any_size(dice, body, area);
  if (one_in(dice, 20)) message.reply.serial += 1 + static_cast<uint32_t>(dice() % 3);
  message.size = body;
  if (message.reply.place == kInFile ? !one_in(dice, 10) : one_in(dice, 10)) {
    const size_t count = one_in(dice, 10) ? 2 + dice() % 3 : 1;
    const uint64_t size = message.reply.size;
    while (message.files.size() < count) message.files.push_back(new_file(dice, size));
    const bool is_cut = size > kMostOfAFile;
    if (is_cut && one_in(dice, 2)) message.reply.size = size % kMostOfAFile;
  }
  if (is_of_options(request.operation) && message.files.empty() && !one_in(dice, 4)) {
    put_options(dice, request, message);
  }
}

void send_message(Dice& dice, int socket, Message& message) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  const bool is_cut = one_in(dice, 100);
  iovec parts[] = {{&message.reply, is_cut ? dice() % (sizeof message.reply + 1) : sizeof message.reply},
                   {message.body, is_cut ? 0 : message.size},
                   {message.body, one_in(dice, 500) ? sizeof message.body : 0}};
  msghdr header = {};
  header.msg_iov = parts;
  header.msg_iovlen = 3;
  if (!message.files.empty()) {
    const size_t size = message.files.size() * sizeof(int);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    *rights = {CMSG_LEN(size), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(rights), message.files.data(), size);
  }
  sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  for (const int file : message.files) close(file);
  message.files.clear();
  ++sent;
}

void map_area(mtf::Area& area, int file) {
  if (fcntl(file, F_GET_SEALS) < 0) return;  // of another request, which was answered too early
  check(ftruncate(file, 1) != 0, "the worker can cut off the shared memory");
  check(area.map(file), "the shared memory cannot be mapped");
}

// Takes a request; false at the end of the channel.
bool take_request(int socket, Request& request, mtf::Area& area) {
  static thread_local char body[kInline];
  int files[mtf::kMostFiles];
  const ssize_t got = mtf::receive_message(socket, {&request, sizeof request, body, sizeof body}, files, 2);
  if (got <= 0) return false;
  check(got >= static_cast<ssize_t>(sizeof request), "the host sent half a request");
  if ((request.files & kNewArea) != 0) map_area(area, files[0]);
  for (int& file : files) mtf::close_file(file);
  return request.operation != kForget;
}

void serve_channel(int socket) {
  Dice dice(++seeds);
  mtf::Area area;
  Request request;
  const auto message = std::make_unique<Message>();
  while (take_request(socket, request, area)) {
    if (one_in(dice, 500)) break;
    if (one_in(dice, 3000)) {  // the host waits for it
      usleep(300000);
      continue;
    }
    if (area.size() > 0) {  // its first word too
      char* const start = area.bytes() - (one_in(dice, 4) ? mtf::Area::kStart : 0);
      std::memset(start, static_cast<int>(dice() % 256), 4096);
    }
    const int count = one_in(dice, 30) ? 2 + static_cast<int>(dice() % 3) : 1;
    for (int i = 0; i < count; ++i) {
      make_reply(dice, request, area.size(), *message);
      send_message(dice, socket, *message);
    }
    if (area.size() > 0 && one_in(dice, 4)) std::memset(area.bytes(), 'y', area.size());
  }
  close(socket);
}

std::atomic<int> serving{0};

void serve(int control) {
  char byte;
  int channel;
  while (mtf::receive_message(control, {&byte, 1}, &channel, 1) > 0) {
    ++serving;
    std::thread([channel] {
      serve_channel(channel);
      --serving;
    }).detach();
  }
  close(control);
  --serving;
}

// -- the host -------------------------------------------------------------------------------------

void note(mtf_error* error) {
  const std::lock_guard<std::mutex> lock(told_lock);
  ++told[error == nullptr ? 0 : error->rule != 0 ? error->rule : error->code];
  if (error != nullptr) check(std::strlen(error->message) <= kInline + 4096, "a message is too long");
  if (error != nullptr) check(error->code > TF_OK && error->code <= TF_UNAUTHENTICATED, "a code is none");
  mtf_error_free(error);
}

void check_names(const mtf_strings& names) {
  size_t done = 0;
  for (int64_t i = 0; i < names.count; ++i) {
    done += strnlen(names.bytes + done, names.size - done) + 1;
    check(done <= names.size, "a name has no end");
  }
}

void use_names(mtf_filesystem* fs, bool matches) {
  mtf_strings names = {};
  note(matches ? mtf_get_matching_paths(fs, "fuzz://h/*", &names) : mtf_get_children(fs, "fuzz://h/", &names));
  check_names(names);
  mtf_strings_free(&names);
}

void use_reader(mtf_filesystem* fs, Dice& dice) {
  mtf_reader* reader = nullptr;
  mtf_error* error = mtf_reader_open(fs, "fuzz://h/file", &reader);
  const bool is_open = error == nullptr;
  note(error);
  for (int i = 0; is_open && i < 4; ++i) {
    const size_t size = one_in(dice, 3) ? kInline + dice() % (size_t{1} << 18) : dice() % 300;
    const auto buffer = std::make_unique<char[]>(size);  // whose end sanitizers know
    int64_t count = 0;
    note(mtf_reader_read(reader, dice(), buffer.get(), size, &count));
    check(count >= 0 && static_cast<uint64_t>(count) <= size, "more was read than there is room");
  }
  if (is_open) mtf_reader_release(reader);
}

void use_writer(mtf_filesystem* fs, Dice& dice) {
  mtf_writer* writer = nullptr;
  mtf_error* error = mtf_writer_open(fs, "fuzz://h/file", one_in(dice, 2), &writer);
  const bool is_open = error == nullptr;
  note(error);
  if (!is_open) return;
  const std::string bytes(one_in(dice, 3) ? 100000 : 100, 'w');
  int64_t position = 0;
  note(mtf_writer_append(writer, bytes.data(), bytes.size(), 1));
  note(mtf_writer_tell(writer, &position));
  note(mtf_writer_flush(writer));
  note(mtf_writer_close(writer));
  mtf_writer_release(writer);
}

void use_region(mtf_filesystem* fs) {
  mtf_region* region = nullptr;
  const char* data = nullptr;
  uint64_t length = 0;
  mtf_error* error = mtf_region_open(fs, "fuzz://h/file", &region, &data, &length);
  const bool is_open = error == nullptr;
  note(error);
  if (!is_open) return;
  check(length <= kMostOfAFile, "a memory region is longer than what was sent");
  volatile char last = 0;
  for (uint64_t i = 0; i < length; ++i) last = data[i];
  static_cast<void>(last);
  mtf_region_release(region);
}

void use_numbers(mtf_filesystem* fs) {
  char statistics[24];
  int is = 0;
  int64_t size = 0;
  uint64_t files = 0, dirs = 0;
  note(mtf_stat_path(fs, "fuzz://h/file", statistics));
  note(mtf_is_directory(fs, "fuzz://h/file", &is));
  note(mtf_get_file_size(fs, "fuzz://h/file", &size));
  note(mtf_delete_recursively(fs, "fuzz://h/file", &files, &dirs));
}

void use_paths(mtf_filesystem* fs, Dice& dice) {
  const std::string path(one_in(dice, 20) ? 50000 : 20, 'p');
  note(mtf_path_exists(fs, ("fuzz://h/" + path).c_str()));
  note(mtf_rename_file(fs, "fuzz://h/a", ("fuzz://h/" + path).c_str()));
  note(mtf_create_dir(fs, path.c_str()));  // with the current directory
  note(mtf_flush_caches(fs));
  char* name = nullptr;
  note(mtf_translate_name(fs, "fuzz://h/file", &name));
  if (name != nullptr) check(std::strlen(name) < kMostOfAFile + (size_t{1} << 21), "a name is too long");
  mtf_string_free(name);
}

void use_options(mtf_filesystem* fs) {
  mtf_option* options = nullptr;
  int count = 0;
  mtf_error* error = mtf_get_configuration(fs, &options, &count);
  if (error == nullptr) check_options(fs, options, count);
  note(error);
  options = nullptr;
  error = mtf_get_configuration_option(fs, "key", &options);
  if (error == nullptr) check_options(fs, options, 1);
  note(error);
  char name[] = "name", empty[] = "";
  mtf_option_item item = {7};
  mtf_option_value value = {0, 1, &item};
  const mtf_option given = {name, empty, 0, &value};
  note(mtf_set_configuration(fs, &given, 1));
  note(mtf_set_configuration_option(fs, &given));
}

void use_transactions(mtf_filesystem* fs) {
  void* token = nullptr;
  char* text = nullptr;
  mtf_error* error = mtf_start_transaction(fs, &token);
  const bool is_started = error == nullptr;
  note(error);
  if (!is_started) return;
  check((reinterpret_cast<uintptr_t>(token) & UINT32_MAX) != 0, "a transaction has no number");
  note(mtf_add_to_transaction(fs, "fuzz://h/file", token));
  note(mtf_decode_transaction_token(fs, token, &text));
  mtf_string_free(text);
  note(mtf_get_transaction_for_path(fs, "fuzz://h/file", &token));
  note(mtf_get_or_start_transaction_for_path(fs, "fuzz://h/file", &token));
  note(mtf_end_transaction(fs, token));
}

void use(mtf_filesystem* fs, uint64_t seed) {
  Dice dice(seed);
  while (sent < messages_left) {
    switch (dice() % 8) {
      case 0: use_names(fs, one_in(dice, 2)); break;
      case 1: use_reader(fs, dice); break;
      case 2: use_writer(fs, dice); break;
      case 3: use_region(fs); break;
      case 4: use_numbers(fs); break;
      case 5: use_options(fs); break;
      case 6: use_transactions(fs); break;
      default: use_paths(fs, dice);
    }
  }
}

int descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

void wait_for_worker() {
  for (int i = 0; serving > 0 && i < 3000; ++i) usleep(10000);
  check(serving == 0, "a channel of the host stays open");
}

}  // namespace

extern "C" int mtf_upcall_worker_start(int64_t, int64_t, char*, size_t) {
  int ends[2];
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "there are no descriptors");
  ++serving;
  std::thread(serve, ends[1]).detach();
  return ends[0];
}

extern "C" void mtf_upcall_worker_ended(int64_t, int64_t, int, char* text, size_t room) {
  std::snprintf(text, room, "the worker has ended");
}

extern "C" int mtf_upcall_worker_signals(void) { return 0; }

int main(int count, char** arguments) {
  check(count == 3, "usage: protocol_fuzzer MESSAGES SEED");
  messages_left = std::atoll(arguments[1]);
  seeds = std::strtoull(arguments[2], nullptr, 10) * 1000000;
  const int before = descriptors();
  mtf_worker* worker = mtf_worker_new(1, nullptr, kTimeoutMs);
  mtf::Tables slots, tables;
  std::memset(static_cast<void*>(&slots), 1, sizeof slots);
  mtf_worker_tables(&slots, &tables);
  mtf_filesystem* fs = nullptr;
  note(mtf_filesystem_new_in_worker(&tables, nullptr, worker, 0, seeds / 1000000 % 2 == 0, &fs));
  std::vector<std::thread> users;
  for (int i = 0; i < kThreads; ++i) users.emplace_back(use, fs, ++seeds);
  for (std::thread& user : users) user.join();
  mtf_worker_state state;
  mtf_worker_get_state(worker, &state);
  check(state.in_flight == 0, "calls are under way that have ended");
  mtf_worker_close(worker);
  note(mtf_filesystem_close(fs, 1));
  mtf_filesystem_release(fs);
  mtf_worker_release(worker);
  wait_for_worker();
  check(descriptors() == before, "descriptors are left");
  std::printf("%lld messages in %lld processes;", static_cast<long long>(sent),
              static_cast<long long>(state.run));
  for (const auto& [rule, times] : told) std::printf(" %d: %lld", rule, static_cast<long long>(times));
  std::printf("\n");
  return 0;
}
