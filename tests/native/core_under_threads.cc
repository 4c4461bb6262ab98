// The native core under threads, for ThreadSanitizer (scripts/sanitize --threads): threads use
// executors, arenas, streams, events, callbacks, host memory, filesystems and workers while others
// close them, as Python's threads do without its lock. Both sides of a worker are in this process.
//
// Usage: core_under_threads ROUNDS     exit status 1 when something is left or wrong
//        core_under_threads misuse     breaks a promise of the core's header: a race to be found
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "arena.h"
#include "call_counts.h"
#include "call_trace.h"
#include "executor.h"
#include "filesystem.h"
#include "modular_tf/filesystem.h"
#include "threaded_device.h"
#include "worker.h"
#include "worker_upcalls.h"

namespace {

using Dice = std::minstd_rand;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "core_under_threads: %s\n", what);
  std::exit(1);
}

void ignore(mtf_error* error) { mtf_error_free(error); }

// Frees the reason why a function has returned NULL.
template <class Made>
Made* made(Made* object) {
  if (object == nullptr) ignore(mtf_take_error());
  return object;
}

// -- threads --------------------------------------------------------------------------------------

// Calls `use` in several threads until `end` has returned, and once more.
void race(int threads, const std::function<void(Dice&)>& use, Dice& dice,
          const std::function<void()>& end) {
  std::atomic<bool> ended{false};
  std::vector<std::thread> users;
  for (int number = 0; number < threads; ++number) {
    users.emplace_back([&use, &ended, seed = dice()] {
      Dice own(seed);
      for (bool last = false; !last;) {
        last = ended;
        use(own);
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::microseconds(dice() % 4000));
  end();
  ended = true;
  for (std::thread& user : users) user.join();
}

void close(const std::vector<mtf_executor*>& executors) {
  std::vector<mtf_error*> errors(executors.size());
  mtf_executors_close(executors.data(), errors.data(), static_cast<int32_t>(executors.size()));
  for (mtf_error* error : errors) ignore(error);
}

// -- executors ------------------------------------------------------------------------------------

constexpr uint64_t kSize = 512;

// Two devices, whose memory, streams and events all threads use; with an arena each.
struct Devices {
  explicit Devices(bool one_device) {
    const SP_StreamExecutor table = device_table();
    for (int number = 0; number < 2; ++number) {
      structs[number].device_handle = &devices[one_device ? 0 : number];
      executors.push_back(mtf_executor_new(&table, &structs[one_device ? 0 : number], nullptr, "", 0));
      mtf_executor_set_timer(executors[number], reinterpret_cast<void*>(nanoseconds));
      arenas[number] =
          mtf_executor_arena_new(executors[number], MTF_DEVICE_MEMORY, uint64_t{1} << 26, 1, 1);
      memories.push_back(mtf_memory_new(executors[number], MTF_DEVICE_MEMORY, kSize));
      events.push_back(mtf_event_new(executors[number]));
      timers.push_back(mtf_timer_new(executors[number]));
    }
  }
  ~Devices() {
    for (mtf_memory* memory : memories) mtf_memory_free(memory);
    for (mtf_event* event : events) mtf_event_free(event);
    for (mtf_timer* timer : timers) mtf_timer_free(timer);
    for (mtf_arena* arena : arenas) {
      ignore(mtf_arena_close(arena));
      mtf_arena_release(arena);
    }
    for (mtf_executor* executor : executors) mtf_executor_free(executor);
  }

  Device devices[2];
  SP_Device structs[2] = {};
  std::vector<mtf_executor*> executors;
  mtf_arena* arenas[2] = {};
  std::vector<mtf_memory*> memories;
  std::vector<mtf_event*> events;
  std::vector<mtf_timer*> timers;
};

void use_stream(Devices& devices, mtf_stream* stream, Dice& dice) {
  const auto any = [&dice](auto& objects) { return objects[dice() % objects.size()]; };
  char bytes[kSize];
  for (int step = 0; step < 8; ++step) {
    switch (dice() % 6) {
      case 0:
        ignore(mtf_memcpy_dtod(stream, any(devices.memories), 0, any(devices.memories), 0, kSize));
        break;
      case 1: ignore(mtf_stream_wait_for_event(stream, any(devices.events))); break;
      case 2: ignore(mtf_event_record(any(devices.events), stream)); break;
      case 3: ignore(mtf_timer_start(any(devices.timers), stream)); break;
      case 4:
        if (mtf_event* mark = made(mtf_stream_mark(stream))) {
          if (mtf_event_poll(mark, 1000) < 0) ignore(mtf_take_error());
          mtf_event_free(mark);
        }
        break;
      default:
        ignore(mtf_sync_memcpy_dtoh(any(devices.executors), bytes, any(devices.memories), 0, kSize));
    }
  }
  ignore(mtf_stream_block_until_done(stream));
}

void use_executor(Devices& devices, Dice& dice) {
  const size_t number = dice() % 2;
  mtf_executor* executor = devices.executors[number];
  mtf_stream* stream = made(mtf_stream_new(executor));
  mtf_stream* other = made(mtf_stream_new(devices.executors[dice() % 2]));
  if (stream != nullptr && other != nullptr) ignore(mtf_stream_depend(stream, other));
  if (stream != nullptr) use_stream(devices, stream, dice);
  if (mtf_memory* cut = made(mtf_arena_memory_new(executor, devices.arenas[number], 0,
                                                  dice() % 3'000'000))) {
    mtf_memory_free(cut);
  }
  if (mtf_memory* host = made(mtf_memory_new(executor, MTF_HOST_MEMORY, 64))) {
    mtf_memory_free_of_host(host);
  }
  mtf_stream_free(other);
  mtf_stream_free(stream);
  mtf_executor_held_objects(executor);
  mtf_executor_waits_for(executor, devices.executors[0]);
}

// Both at once, one after the other, or by two threads.
void close_devices(const Devices& devices, Dice& dice) {
  const auto one = [&devices](size_t number) { close({devices.executors[number]}); };
  switch (dice() % 3) {
    case 0: return close(devices.executors);
    case 1: one(1); return one(0);
    default: {
      std::thread first([&one] { one(0); });
      one(1);
      first.join();
    }
  }
}

void try_executors(Dice& dice) {
  {
    Devices devices(dice() % 2 == 0);
    race(4, [&](Dice& own) { use_executor(devices, own); }, dice,
         [&] { close_devices(devices, dice); });
    for (mtf_executor* executor : devices.executors) {
      check(mtf_executor_host_memories(executor) == 0, "host memory is left");
    }
  }
  check(alive == 0, "objects of a device are left");
}

// -- arenas ---------------------------------------------------------------------------------------

// A source that waits for another thread, which uses the arena.
struct Visited {
  std::atomic<uint64_t> bytes{0};
  std::atomic<mtf_arena*> arena{nullptr};

  void visit() const {
    std::thread([it = arena.load()] {
      mtf_allocator_stats stats;
      mtf_arena_get_stats(it, &stats);
      ignore(mtf_arena_free(it, mtf_arena_take(it, 256)));
    }).join();
  }
  static void* allocate(void* context, uint64_t bytes) {
    static_cast<Visited*>(context)->visit();
    static_cast<Visited*>(context)->bytes += bytes;
    return std::malloc(bytes);
  }
  static void free(void* context, void* address, uint64_t bytes) {
    std::free(address);
    static_cast<Visited*>(context)->bytes -= bytes;
  }
};

void use_arena(mtf_arena* arena, Dice& dice) {
  uintptr_t addresses[4] = {};
  for (uintptr_t& address : addresses) {
    ignore(mtf_arena_allocate(arena, dice() % 1'500'000, &address));
    if (address != 0) *reinterpret_cast<char*>(address) = 1;
  }
  mtf_string_free(mtf_arena_picture(arena));
  for (const uintptr_t address : addresses) ignore(mtf_arena_free(arena, address));
}

void try_arenas(Dice& dice) {
  Visited source;
  const mtf_arena_options options = {"arena", uint64_t{8} << 20, 1,       1,      Visited::allocate,
                                     Visited::free, nullptr,     nullptr, &source};
  mtf_arena* arena = nullptr;
  ignore(mtf_arena_new(&options, &arena));
  source.arena = arena;
  race(4, [&](Dice& own) { use_arena(arena, own); }, dice, [&] { ignore(mtf_arena_close(arena)); });
  mtf_arena_release(arena);
  check(source.bytes == 0, "regions are left");
}

// -- callbacks ------------------------------------------------------------------------------------

void try_callbacks(Dice& dice) {
  Devices devices(false);
  mtf_stream* stream = mtf_stream_new(devices.executors[0]);
  mtf_callback_queue* queue = mtf_callback_queue_new();
  std::atomic<bool> ended{false};
  std::thread worker([&] {
    while (!ended) {
      const uint64_t job = mtf_callback_next(queue, 1'000'000);
      if (job != 0) mtf_callback_done(job, static_cast<int32_t>(job % 2), "told to fail");
    }
  });
  const auto add = [&](Dice& own) {
    int32_t outcome = 0;
    const uint64_t job = mtf_callback_new(queue);
    ignore(mtf_callback_enqueue(stream, job, &outcome));
    if (own() % 3 == 0) mtf_callback_cancel(job);
  };
  race(3, add, dice, [&] { close(devices.executors); });
  ended = true;
  worker.join();
  mtf_stream_free(stream);
  mtf_callback_queue_free(queue);
}

// -- filesystems ----------------------------------------------------------------------------------

void init(TF_Filesystem* filesystem, TF_Status*) {
  filesystem->plugin_filesystem = new int(7);
  ++alive;
}
void clean_up(TF_Filesystem* filesystem) {
  delete static_cast<int*>(filesystem->plugin_filesystem);
  --alive;
}
int state_of(const TF_Filesystem* filesystem) {
  return *static_cast<int*>(filesystem->plugin_filesystem);
}
void open_reader(const TF_Filesystem* filesystem, const char*, TF_RandomAccessFile* file,
                 TF_Status*) {
  file->plugin_file = new int(state_of(filesystem));
  ++alive;
}
void clean_reader(TF_RandomAccessFile* file) {
  delete static_cast<int*>(file->plugin_file);
  --alive;
}
int64_t read_file(const TF_RandomAccessFile* file, uint64_t, size_t size, char* buffer,
                  TF_Status*) {
  std::memset(buffer, *static_cast<int*>(file->plugin_file), size);
  return static_cast<int64_t>(size);
}
void path_exists(const TF_Filesystem* filesystem, const char*, TF_Status*) {
  check(state_of(filesystem) == 7, "a filesystem was used after its cleanup");
}

struct FilesystemTables {
  TF_FilesystemOps filesystem;
  TF_RandomAccessFileOps reader;
  TF_WritableFileOps writer;
  TF_ReadOnlyMemoryRegionOps region;
  void* (*plugin_allocate)(size_t);
  void (*plugin_free)(void*);
};

void use_filesystem(mtf_filesystem* filesystem) {
  ignore(mtf_path_exists(filesystem, "x://h/p"));
  mtf_filesystem_open_count(filesystem);
  mtf_reader* reader = nullptr;
  if (mtf_error* error = mtf_reader_open(filesystem, "x://h/p", &reader)) return ignore(error);
  std::thread closer([reader] { ignore(mtf_reader_close(reader)); });
  char bytes[64];
  int64_t count = 0;
  ignore(mtf_reader_read(reader, 0, bytes, sizeof bytes, &count));
  closer.join();
  mtf_reader_release(reader);
}

void read_counts() {
  mtf_call_counts counts;
  for (const void* at = nullptr; (at = mtf_call_counts_next(at, &counts)) != nullptr;) {
    check(counts.under_way <= 4, "more calls are under way than there are threads");
  }
}

void try_filesystems(Dice& dice) {
  FilesystemTables tables = {};
  tables.filesystem.init = init;
  tables.filesystem.cleanup = clean_up;
  tables.filesystem.new_random_access_file = open_reader;
  tables.filesystem.path_exists = path_exists;
  tables.reader.cleanup = clean_reader;
  tables.reader.read = read_file;
  tables.plugin_allocate = std::malloc;
  tables.plugin_free = std::free;
  mtf_filesystem* filesystem = nullptr;
  static const mtf_plugin* const plugin = mtf_plugin_new("threads", "libthreads.so", "");
  ignore(dice() % 2 == 0 ? mtf_filesystem_new(&tables, plugin, &filesystem)
                         : mtf_filesystem_new_shared(&tables, plugin, &filesystem));
  FILE* const file = std::tmpfile();
  int failure = 0;
  mtf_call_counts_begin();
  const uint64_t trace = mtf_trace_begin(fileno(file), &failure);
  check(trace != 0, "no trace has begun");
  const auto use = [&](Dice&) {
    use_filesystem(filesystem);
    read_counts();
  };
  race(4, use, dice, [&] {
    check(mtf_trace_end(trace) == 0, "a trace was not written");
    mtf_call_counts_end();
    ignore(mtf_filesystem_close(filesystem, static_cast<int>(dice() % 2)));
  });
  std::fclose(file);
  mtf_filesystem_release(filesystem);
  check(alive == 0, "objects of a filesystem are left");
}

// -- workers --------------------------------------------------------------------------------------

mtf_filesystem* served = nullptr;  // for good: threads of servers use it after the host has left

void start_worker(TF_Filesystem* filesystem, TF_Status*) {
  filesystem->plugin_filesystem = new int(7);
}
void find_nothing(const TF_Filesystem*, const char*, TF_Status*) {}
void open_there(const TF_Filesystem*, const char*, TF_RandomAccessFile*, TF_Status*) {}
int64_t read_there(const TF_RandomAccessFile*, uint64_t, size_t size, char* buffer, TF_Status*) {
  std::memset(buffer, 7, size);
  return static_cast<int64_t>(size);
}
void open_writer_there(const TF_Filesystem*, const char*, TF_WritableFile*, TF_Status*) {}
void append_there(const TF_WritableFile*, const char* data, size_t size, TF_Status*) {
  check(std::all_of(data, data + size, [](char byte) { return byte == 5; }), "other bytes were written");
}

FilesystemTables tables_of_worker() {
  FilesystemTables tables = {};
  tables.filesystem.init = start_worker;
  tables.filesystem.cleanup = [](TF_Filesystem*) {};
  tables.filesystem.path_exists = find_nothing;
  tables.filesystem.new_random_access_file = open_there;
  tables.filesystem.new_writable_file = open_writer_there;
  tables.reader.cleanup = [](TF_RandomAccessFile*) {};
  tables.reader.read = read_there;
  tables.writer.cleanup = [](TF_WritableFile*) {};
  tables.writer.append = append_there;
  tables.writer.close = [](const TF_WritableFile*, TF_Status*) {};
  tables.plugin_allocate = std::malloc;
  tables.plugin_free = std::free;
  return tables;
}

// Short and long requests and replies.
void use_worker(mtf_filesystem* filesystem, Dice& dice) {
  const std::string path = "x://h/" + std::string(dice() % 2 == 0 ? 10 : 100'000, 'p');
  ignore(mtf_path_exists(filesystem, path.c_str()));
  mtf_reader* reader = nullptr;
  ignore(mtf_reader_open(filesystem, "x://h/p", &reader));
  if (reader != nullptr) {
    std::vector<char> bytes(dice() % 2 == 0 ? 64 : 3 << 20);
    int64_t count = 0;
    ignore(mtf_reader_read(reader, 0, bytes.data(), bytes.size(), &count));
    const auto end = bytes.begin() + std::max(int64_t{0}, count);
    check(std::all_of(bytes.begin(), end, [](char byte) { return byte == 7; }), "other bytes were read");
    mtf_reader_release(reader);
  }
  mtf_writer* writer = nullptr;
  ignore(mtf_writer_open(filesystem, "x://h/p", 0, &writer));
  if (writer != nullptr) {
    const std::vector<char> bytes(dice() % 2 == 0 ? 64 : 3 << 20, 5);
    ignore(mtf_writer_append(writer, bytes.data(), bytes.size(), 0));
    ignore(mtf_writer_close(writer));
    mtf_writer_release(writer);
  }
}

void try_workers(Dice& dice) {
  static const FilesystemTables tables = tables_of_worker();
  static const mtf_plugin* const plugin = mtf_plugin_new("worker", "libworker.so", "");
  static FilesystemTables remote;
  if (served == nullptr) {
    ignore(mtf_filesystem_new(&tables, plugin, &served));
    mtf_worker_tables(&tables, &remote);
  }
  mtf_worker* worker = mtf_worker_new(1, plugin, 0);
  mtf_filesystem* filesystem = nullptr;
  const auto stats_on_open = static_cast<int>(dice() % 2);
  ignore(mtf_filesystem_new_in_worker(&remote, plugin, worker, 0, stats_on_open, &filesystem));
  mtf_worker_state state;
  const auto end = [&] {
    mtf_worker_get_state(worker, &state);
    mtf_worker_rest(worker, state.calls);
    if (dice() % 2 == 0) mtf_worker_stop(worker, 5'000);
    mtf_worker_close(worker);
  };
  race(4, [&](Dice& own) { use_worker(filesystem, own); }, dice, end);
  mtf_worker_get_state(worker, &state);
  check(state.in_flight == 0, "calls of a worker are left");
  ignore(mtf_filesystem_close(filesystem, 1));
  mtf_filesystem_release(filesystem);
  mtf_worker_release(worker);
}

// -- a race to be found ---------------------------------------------------------------------------

// The header allows mtf_executor_set_allocator "before all other use" only.
void misuse() {
  const SP_StreamExecutor table = device_table();
  Device device;
  SP_Device handed = {};
  handed.device_handle = &device;
  mtf_executor* executor = mtf_executor_new(&table, &handed, nullptr, "", 0);
  const void* fns[10] = {};  // an SP_AllocatorFns
  std::thread other([&] {
    mtf_allocator_stats stats;
    int32_t known = 0;
    for (int i = 0; i < 1000; ++i) ignore(mtf_get_allocator_stats(executor, &stats, &known));
  });
  for (int i = 0; i < 1000; ++i) {
    ignore(mtf_executor_set_allocator(executor, MTF_PLAIN_ALLOCATOR, fns, nullptr, 0));
  }
  other.join();
}

}  // namespace

extern "C" int mtf_upcall_worker_start(int64_t, int64_t, char*, size_t) {
  int ends[2];
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "there are no descriptors");
  std::thread([control = ends[1]] {
    ignore(mtf_worker_serve(control, &served, 1));
    ::close(control);
  }).detach();
  return ends[0];
}

extern "C" void mtf_upcall_worker_ended(int64_t, int64_t, int, char*, size_t) {}

extern "C" int mtf_upcall_worker_signals(void) { return 0; }

int main(int count, char** arguments) {
  check(count == 2, "expected a number of rounds, or misuse");
  if (std::string(arguments[1]) == "misuse") {
    misuse();
    return 0;
  }
  const int rounds = std::atoi(arguments[1]);
  Dice dice(20261122);
  for (int round = 0; round < rounds; ++round) {
    try_executors(dice);
    try_arenas(dice);
    try_callbacks(dice);
    try_filesystems(dice);
    try_workers(dice);
  }
  std::printf("core_under_threads: %d rounds\n", rounds);
  return rounds > 0 ? 0 : 1;
}
