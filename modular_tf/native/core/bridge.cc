// The slots that the bridge gives to TensorFlow: calls of Python, whose answers become statuses of TensorFlow,
// and open files.
#include "bridge.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "filesystem_slots.h"
#include "fork_lock.h"
#include "modular_tf/filesystem.h"
#include "error.h"
#include "filesystem_state.h"
#include "utf8.h"

namespace mtf::bridge {
namespace {

using SetStatus = void (*)(TF_Status*, int, const char*);

constexpr size_t kAlignment = 64;  // of memory that tensors map
constexpr auto kPause = std::chrono::milliseconds(1);

SetStatus tensorflow_set_status = nullptr;
std::atomic<int64_t> under_way{0};
std::atomic<bool> is_closed{false};
std::string offered;  // under the GIL
bool has_offer = false;

// The calls of the parent's other threads are not in the child.
[[maybe_unused]] const int watching_forks =
    pthread_atfork(nullptr, nullptr, [] { under_way = 0; });

// An answer that frees what it holds.
struct Answer : mtf_bridge_answer {
  Answer() : mtf_bridge_answer{} { code = TF_INTERNAL; }
  ~Answer() {
    std::free(text);
    std::free(names.bytes);
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
};

// Sets a status of TensorFlow, which is no TF_Status of this package.
void set_status(TF_Status* status, int code, const char* message) {
  tensorflow_set_status(status, code, message);
}

// A plugin's message as TensorFlow can give it to Python: bytes that are not UTF-8 become \xNN.
std::string printable(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    if (length != 0) {
      result.append(text, at, length);
      at += length;
    } else {
      const auto byte = static_cast<unsigned char>(text[at++]);
      result += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return result;
}

// A call into Python that is under way. False where the bridge is closed.
class Call {
 public:
  Call() {
    under_way.fetch_add(1);  // first: who closes waits for those that have seen it open
    is_open_ = !is_closed.load();
  }
  ~Call() {
    int64_t count = under_way.load();
    while (count > 0 && !under_way.compare_exchange_weak(count, count - 1)) {
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  explicit operator bool() const { return is_open_; }

 private:
  bool is_open_;
};

// Reports in a status that the process ends.
void refuse(TF_Status* status) {
  set_status(status, TF_FAILED_PRECONDITION, "modular_tf: the process ends");
}

// Sets the status of an answer.
void finish(TF_Status* status, const Answer& answer) {
  if (answer.code == TF_OK) {
    set_status(status, TF_OK, "");
  } else {
    const bool has_text = answer.text != nullptr;  // not where Python's own lines were interrupted
    set_status(status, answer.code, has_text ? answer.text : "modular_tf: the call was interrupted");
  }
}

// Makes a call of Python unless the bridge is closed, and sets the status. Returns whether it is OK.
template <class Upcall>
bool ask(TF_Status* status, Answer& answer, Upcall&& upcall) {
  const Call call;
  if (!call) {
    refuse(status);
    return false;
  }
  upcall();
  finish(status, answer);
  return answer.code == TF_OK;
}

// Runs a slot; what the C++ library throws becomes a status.
template <class Slot>
void catch_exceptions(TF_Status* status, Slot&& slot) {
  try {
    slot();
  } catch (const std::exception& error) {
    set_status(status, TF_RESOURCE_EXHAUSTED, error.what());
  }
}

// Lets Python forget an open file; 0 is none.
void release(int64_t file) {
  if (file == 0) return;
  Answer answer;
  const Call call;
  if (call) mtf_upcall_file("release", file, nullptr, 0, &answer);
}

// Takes the lock of a file. Its holder may wait for the GIL, which this thread may hold, since
// TensorFlow keeps it in some calls: so the wait is Python's, which gives it away. To a signal
// handler that has interrupted the holder it returns no lock, and a status that says so.
UniqueCallLock lock_of(CallLock& lock, int64_t file, TF_Status* status) {
  while (!lock.try_lock()) {
    if (lock.is_held_by_this_thread()) {
      const std::string message = std::string("modular_tf: ") + kFileIsInterrupted + kUseFileLater;
      set_status(status, TF_FAILED_PRECONDITION, message.c_str());
      return {};
    }
    Answer answer;
    mtf_upcall_file("wait", file, nullptr, 0, &answer);
  }
  return UniqueCallLock(lock, std::adopt_lock);
}

// -- files that TensorFlow reads, and the blocks that are read ahead ---------------------------------------

constexpr size_t kFirstBlock = size_t{256} << 10;
constexpr size_t kLargestBlock = size_t{16} << 20;

class Reader {
 public:
  ~Reader() { release(number_); }

  // Takes over what was opened.
  void take_over(Answer& answer) {
    number_ = answer.numbers[0];
    reads_ahead_ = answer.numbers[1] != 0;
    reader_ = answer.reader;
    name_.reset(std::exchange(answer.text, nullptr));
  }

  int64_t read(uint64_t offset, size_t size, char* buffer, TF_Status* status) {
    int64_t count = 0;
    const bool is_read = reads_ahead_ ? read_ahead(offset, size, buffer, &count, status)
                                      : read_now(offset, size, buffer, &count, status);
    if (!is_read) return -1;
    if (static_cast<size_t>(count) < size) set_status(status, TF_OUT_OF_RANGE, "end of file");
    return count;
  }

 private:
  // Reads from the file. A short count is no failure.
  bool read_now(uint64_t offset, size_t size, char* buffer, int64_t* count, TF_Status* status) {
    if (reader_ == nullptr) {
      Answer answer;
      const bool is_read = ask(status, answer, [&] {
        mtf_upcall_read(number_, offset, buffer, size, &answer);
      });
      *count = answer.numbers[0];
      return is_read;
    }
    const Call call;  // the process ends no sooner, which frees what Python holds
    if (!call) {
      refuse(status);
      return false;
    }
    const Error error(mtf_reader_read(reader_, offset, buffer, size, count));
    if (error) {
      const std::string name = name_ == nullptr ? "read" : name_.get();
      set_status(status, error.code(), printable(name + ": " + error.message()).c_str());
    } else {
      set_status(status, TF_OK, "");
    }
    return !error;
  }

  // Serves what the block holds, and reads the rest: large pieces at once, small ones by a block.
  // Blocks grow, by either, while reads go on where the last one ended.
  bool read_ahead(uint64_t offset, size_t size, char* buffer, int64_t* count, TF_Status* status) {
    const Call call;
    if (!call) {
      refuse(status);
      return false;
    }
    const UniqueCallLock lock = lock_of(lock_, number_, status);
    if (!lock) return false;
    if (lock_.is_abandoned()) block_.clear();  // a thread of the parent was changing it
    size_t done = take(offset, size, buffer);
    const bool goes_on = offset == next_;
    next_ = offset + size;
    while (done < size) {
      int64_t more = 0;
      block_size_ = goes_on ? std::min(4 * block_size_, kLargestBlock) : kFirstBlock;
      if (size - done >= block_size_) {
        if (!read_now(offset + done, size - done, buffer + done, &more, status)) return false;
        done += static_cast<size_t>(more);
        break;
      }
      if (!fetch(offset + done, status)) return false;
      more = static_cast<int64_t>(take(offset + done, size - done, buffer + done));
      if (more == 0) break;
      done += static_cast<size_t>(more);
    }
    set_status(status, TF_OK, "");
    *count = static_cast<int64_t>(done);
    return true;
  }

  size_t take(uint64_t offset, size_t size, char* buffer) const {
    if (offset < at_ || offset - at_ >= block_.size()) return 0;
    const size_t begin = offset - at_;
    const size_t count = std::min(size, block_.size() - begin);
    std::memcpy(buffer, block_.data() + begin, count);
    return count;
  }

  // What is short is not the end for ever: the file may grow.
  bool fetch(uint64_t offset, TF_Status* status) {
    at_ = UINT64_MAX;  // the block has nothing that can be served, should what follows throw
    block_.resize(block_size_);
    int64_t count = 0;
    const bool is_read = read_now(offset, block_size_, block_.data(), &count, status);
    block_.resize(is_read ? static_cast<size_t>(count) : 0);
    at_ = offset;
    return is_read;
  }

  struct Free {
    void operator()(char* text) const { std::free(text); }
  };

  int64_t number_ = 0;  // of no file
  bool reads_ahead_ = false;
  mtf_reader* reader_ = nullptr;  // Python keeps it until `release`
  std::unique_ptr<char, Free> name_;
  CallLock lock_;
  std::vector<char> block_;
  uint64_t at_ = 0;
  uint64_t next_ = 0;
  size_t block_size_ = kFirstBlock / 4;
};

void cleanup_reader(TF_RandomAccessFile* file) { delete static_cast<Reader*>(file->plugin_file); }

int64_t read(const TF_RandomAccessFile* file, uint64_t offset, size_t size, char* buffer,
             TF_Status* status) {
  int64_t count = -1;
  catch_exceptions(status, [&] {
    count = static_cast<Reader*>(file->plugin_file)->read(offset, size, buffer, status);
  });
  return count;
}

void open_reader(const TF_Filesystem*, const char* path, TF_RandomAccessFile* file,
                 TF_Status* status) {
  catch_exceptions(status, [&] {
    Answer answer;
    auto reader = std::make_unique<Reader>();  // first: what is opened must have an owner
    if (ask(status, answer,
            [&] { mtf_upcall_path("new_random_access_file", path, nullptr, &answer); })) {
      reader->take_over(answer);
      file->plugin_file = reader.release();
    } else {
      release(answer.numbers[0]);  // interrupted when it was open
    }
  });
}

// -- files that TensorFlow writes, whose small appends are gathered ----------------------------------------

constexpr size_t kGathered = size_t{256} << 10;

// A file that is written. TensorFlow lets several threads write to one.
class Writer {
 public:
  Writer();
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void take_over(const Answer& answer) { number_ = answer.numbers[0]; }

  void append(const char* data, size_t size, TF_Status* status) {
    const Use use(*this, status);
    if (!use) return;
    if (gathered_.size() + size > kGathered && !hand_on(status)) return;
    if (size >= kGathered) {
      append_now(data, size, status);
      return;
    }
    const bool was_lossless = std::exchange(is_lossless_, false);  // where memory is short
    gathered_.insert(gathered_.end(), data, data + size);
    is_lossless_ = was_lossless;
    set_status(status, TF_OK, "");
  }

  int64_t tell(TF_Status* status) {
    Answer answer;
    const Use use(*this, status);
    if (!use || !hand_on(status)) return -1;
    const bool is_ok =
        ask(status, answer, [&] { mtf_upcall_file("tell", number_, nullptr, 0, &answer); });
    return is_ok ? answer.numbers[0] : -1;
  }

  void flush(const char* operation, TF_Status* status) {
    const Use use(*this, status);
    if (use && hand_on(status)) call(operation, nullptr, 0, status);
  }

  void close(TF_Status* status) {
    const Use use(*this, status);
    if (!use) return;
    const bool was_lossless = is_lossless_;
    if (was_lossless) hand_on(status);
    is_closed_ = true;
    if (is_lossless_) {
      call("close", nullptr, 0, status);
    } else if (was_lossless) {
      give({number_, {}, false});  // the status says what was lost
    } else {
      call("give_up", nullptr, 0, status);
    }
  }

  // What was gathered in a file that nobody closed. Nothing where it is closed, or in use for ever.
  struct Rest {
    int64_t number = 0;  // of no file
    std::vector<char> gathered;
    bool is_lossless = true;
  };
  Rest take_rest();

  static void give(const Rest& rest) {
    Answer answer;
    if (rest.number == 0) return;
    if (rest.is_lossless) {
      mtf_upcall_file("release", rest.number, rest.gathered.data(), rest.gathered.size(), &answer);
    } else {
      mtf_upcall_file("give_up", rest.number, nullptr, 0, &answer);
    }
  }

 private:
  // An operation of TensorFlow's that is under way. False where it cannot be: the status says why.
  class Use {
   public:
    Use(Writer& writer, TF_Status* status) {
      if (!call_) {
        refuse(status);
        return;
      }
      lock_ = lock_of(writer.lock_, writer.number_, status);
      if (!lock_) return;
      if (writer.is_closed_) {
        set_status(status, TF_FAILED_PRECONDITION, "modular_tf: the file is closed");
      } else {
        is_open_ = true;
      }
    }
    explicit operator bool() const { return is_open_; }

   private:
    Call call_;
    UniqueCallLock lock_;
    bool is_open_ = false;
  };

  bool hand_on(TF_Status* status) {
    if (gathered_.empty()) return true;
    const bool is_taken = append_now(gathered_.data(), gathered_.size(), status);
    gathered_.clear();
    return is_taken;
  }

  bool append_now(const char* data, size_t size, TF_Status* status) {
    const bool was_lossless = std::exchange(is_lossless_, false);  // also where the call throws
    const bool is_taken = call("append", data, size, status);
    is_lossless_ = was_lossless && is_taken;
    return is_taken;
  }

  bool call(const char* operation, const char* data, size_t size, TF_Status* status) {
    Answer answer;
    return ask(status, answer,
               [&] { mtf_upcall_file(operation, number_, data, size, &answer); });
  }

  CallLock lock_;
  int64_t number_ = 0;  // of no file
  std::vector<char> gathered_;
  bool is_closed_ = false;
  bool is_lossless_ = true;  // no append failed, or was interrupted
  const unsigned generation_ = fork_generation();
};

// Those that exist. No upcall is made under the lock: whoever waits for it may hold the GIL.
struct Writers {
  Lock lock;
  std::set<Writer*> all;
};

Writers* const writers = new Writers;  // TensorFlow may free files after destructors ran

// What a parent gathered, the parent writes; and another thread may have been in the middle of a change.
[[maybe_unused]] const int writers_watch_forks =
    pthread_atfork(nullptr, nullptr, [] { new (writers) Writers; });

Writer::Writer() {
  const LockGuard lock(writers->lock);
  writers->all.insert(this);
}

// TensorFlow's cache writes a file and never closes it: it must exist all the same.
Writer::~Writer() {
  {
    const LockGuard lock(writers->lock);
    writers->all.erase(this);
  }
  const Call call;
  if (call) give(take_rest());
}

Writer::Rest Writer::take_rest() {
  Rest rest;
  // What a parent gathered, the parent writes.
  if (generation_ != fork_generation() || !lock_.try_lock()) return rest;
  if (!is_closed_) rest = {number_, std::move(gathered_), is_lossless_};
  is_closed_ = true;
  lock_.unlock();
  return rest;
}

Writer* writer_of(const TF_WritableFile* file) { return static_cast<Writer*>(file->plugin_file); }

void cleanup_writer(TF_WritableFile* file) { delete writer_of(file); }

void append(const TF_WritableFile* file, const char* data, size_t size, TF_Status* status) {
  catch_exceptions(status, [&] { writer_of(file)->append(data, size, status); });
}

int64_t tell(const TF_WritableFile* file, TF_Status* status) {
  int64_t position = -1;
  catch_exceptions(status, [&] { position = writer_of(file)->tell(status); });
  return position;
}

void flush(const TF_WritableFile* file, TF_Status* status) {
  catch_exceptions(status, [&] { writer_of(file)->flush("flush", status); });
}

void sync(const TF_WritableFile* file, TF_Status* status) {
  catch_exceptions(status, [&] { writer_of(file)->flush("sync", status); });
}

void close(const TF_WritableFile* file, TF_Status* status) {
  catch_exceptions(status, [&] { writer_of(file)->close(status); });
}

void open_for_writing(const char* operation, const char* path, TF_WritableFile* file,
                      TF_Status* status) {
  catch_exceptions(status, [&] {
    Answer answer;
    auto writer = std::make_unique<Writer>();  // first: what is opened must have an owner
    if (ask(status, answer, [&] { mtf_upcall_path(operation, path, nullptr, &answer); })) {
      writer->take_over(answer);
      file->plugin_file = writer.release();
    } else {
      release(answer.numbers[0]);  // interrupted when it was open
    }
  });
}

void close_writers() {
  std::vector<Writer::Rest> rests;
  {
    const LockGuard lock(writers->lock);
    for (Writer* writer : writers->all) rests.push_back(writer->take_rest());
  }
  for (const Writer::Rest& rest : rests) Writer::give(rest);
}

void open_writer(const TF_Filesystem*, const char* path, TF_WritableFile* file,
                 TF_Status* status) {
  open_for_writing("new_writable_file", path, file, status);
}

void open_appender(const TF_Filesystem*, const char* path, TF_WritableFile* file,
                   TF_Status* status) {
  open_for_writing("new_appendable_file", path, file, status);
}

// -- the table of a filesystem, and memory regions ---------------------------------------------------------

// The call of a slot by Python, which knows it by its name.
class PythonCall {
 public:
  PythonCall(const TF_Filesystem*, Slot slot, SlotValues& values, TF_Status* status) : status_(status) {
    if (slot == Slot::delete_recursively) answer_.numbers[1] = 1;  // where the walk cannot start
    if (slot == Slot::is_directory) answer_.numbers[0] = 1;        // where the status is OK
    is_ok_ = ask(status, answer_, [&] {
      mtf_upcall_path(info_of(slot).name, values.texts[0], values.texts[1], &answer_);
    });
    std::memcpy(values.numbers, answer_.numbers, sizeof values.numbers);
  }

  bool is_ok() const { return is_ok_; }

  int names(char*** entries) {
    const mtf_strings& names = answer_.names;
    const int count = split_names(names.bytes, names.size, names.count, entries);
    if (count < 0) set_status(status_, TF_RESOURCE_EXHAUSTED, "modular_tf: no memory for the names");
    return count;
  }

 private:
  Answer answer_;
  TF_Status* status_;
  bool is_ok_ = false;
};

struct Region {
  char* data;
  uint64_t length;
};

Region* region_of(const TF_ReadOnlyMemoryRegion* region) {
  return static_cast<Region*>(region->plugin_memory_region);
}

void cleanup_region(TF_ReadOnlyMemoryRegion* region) {
  std::free(region_of(region)->data);
  delete region_of(region);
}

void open_region(const TF_Filesystem*, const char* path, TF_ReadOnlyMemoryRegion* region,
                 TF_Status* status) {
  catch_exceptions(status, [&] {
    Answer answer;
    auto opened = std::make_unique<Region>();
    if (ask(status, answer, [&] {
          mtf_upcall_path("new_read_only_memory_region_from_file", path, nullptr, &answer);
        })) {
      *opened = {std::exchange(answer.text, nullptr), static_cast<uint64_t>(answer.numbers[0])};
      region->plugin_memory_region = opened.release();
    }
  });
}

// -- the tables -------------------------------------------------------------------------------------------

// The functions of slots whose rows say kBridge.
template <Slot slot>
constexpr void* kBridgeFunction = nullptr;  // is none
template <>
constexpr auto kBridgeFunction<Slot::new_random_access_file> = open_reader;
template <>
constexpr auto kBridgeFunction<Slot::new_writable_file> = open_writer;
template <>
constexpr auto kBridgeFunction<Slot::new_appendable_file> = open_appender;
template <>
constexpr auto kBridgeFunction<Slot::new_read_only_memory_region_from_file> = open_region;
// The whole URI: TensorFlow's own rule would drop the scheme, by which Python finds the filesystem.
template <>
constexpr auto kBridgeFunction<Slot::translate_name> = +[](const TF_Filesystem*, const char* uri) {
  return strdup(uri);
};
// TensorFlow names no scheme here.
template <>
constexpr auto kBridgeFunction<Slot::flush_caches> = +[](const TF_Filesystem*) {};

TF_FilesystemOps filesystem_table() {
  TF_FilesystemOps table = {};
  table.init = [](TF_Filesystem*, TF_Status* status) { set_status(status, TF_OK, ""); };
  table.cleanup = [](TF_Filesystem*) {};
#define MTF_FUNCTION_kAsked(slot) slot_function<PythonCall, Slot::slot>()
#define MTF_FUNCTION_kBridge(slot) kBridgeFunction<Slot::slot>
#define MTF_FUNCTION_kNone(slot) nullptr
#define MTF_SLOT(slot, texts, missing, worker, tensorflow) table.slot = MTF_FUNCTION_##tensorflow(slot);
#include "filesystem_slots.def"
  return table;
}

// The slots before the transactions: what the tables of 264 and of 216 bytes have in common.
constexpr size_t kCommonTable = offsetof(TF_FilesystemOps_V221, start_transaction);

// Lets TensorFlow, which frees each table, have a copy of its own.
template <class Table>
Table* lent(const Table& table) {
  auto* copy = static_cast<Table*>(std::malloc(sizeof(Table)));
  if (copy != nullptr) *copy = table;
  return copy;
}

void fill_tables(TF_FilesystemPluginOps* entry, const char* scheme) {
  TF_SetFilesystemVersionMetadata(entry);
  entry->scheme = strdup(scheme);
  entry->filesystem_ops_size = kCommonTable;
  entry->filesystem_ops = lent(filesystem_table());
  entry->random_access_file_ops = lent(TF_RandomAccessFileOps{cleanup_reader, read});
  entry->writable_file_ops = lent(TF_WritableFileOps{cleanup_writer, append, tell, flush, sync, close});
  entry->read_only_memory_region_ops = lent(TF_ReadOnlyMemoryRegionOps{
      cleanup_region,
      [](const TF_ReadOnlyMemoryRegion* region) -> const void* { return region_of(region)->data; },
      [](const TF_ReadOnlyMemoryRegion* region) { return region_of(region)->length; }});
}

}  // namespace
}  // namespace mtf::bridge

using namespace mtf::bridge;

extern "C" {

char* mtf_bridge_copy(const char* bytes, size_t size) {
  const size_t room = (size + kAlignment) / kAlignment * kAlignment;  // one byte more at least
  auto* copy = static_cast<char*>(std::aligned_alloc(kAlignment, room));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, bytes, size);
  copy[size] = '\0';
  return copy;
}

mtf_error* mtf_bridge_connect(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return mtf::make_error(TF_FAILED_PRECONDITION, "TensorFlow's library is not in the process");
  }
  auto set = reinterpret_cast<SetStatus>(dlsym(handle, "TF_SetStatus"));
  if (set == nullptr) return mtf::make_error(TF_FAILED_PRECONDITION, "it has no TF_SetStatus");
  tensorflow_set_status = set;
  return nullptr;
}

mtf_error* mtf_bridge_offer(const char* scheme) {
  offered = scheme;
  has_offer = true;
  return nullptr;
}

int64_t mtf_bridge_close(double wait_s) {
  is_closed = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_s);
  while (under_way.load() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
  }
  const int64_t left = under_way.load();
  close_writers();
  return left;
}

void mtf_bridge_open(void) { is_closed = false; }

// TensorFlow's way in: called once for each scheme that is offered.
TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = [](size_t size) { return std::malloc(size); };
  info->plugin_memory_free = [](void* memory) { std::free(memory); };
  info->num_schemes = 0;
  if (!has_offer || tensorflow_set_status == nullptr) return;
  has_offer = false;
  info->ops = static_cast<TF_FilesystemPluginOps*>(std::calloc(1, sizeof(TF_FilesystemPluginOps)));
  if (info->ops == nullptr) return;
  fill_tables(info->ops, offered.c_str());
  info->num_schemes = 1;
}

}  // extern "C"
