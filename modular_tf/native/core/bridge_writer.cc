// Files that TensorFlow writes, whose small appends are gathered.
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "bridge_calls.h"

namespace mtf::bridge {
namespace {

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

Writers& writers() {
  static auto* const existing = new Writers;  // TensorFlow may free files after destructors ran
  return *existing;
}

Writer::Writer() {
  const LockGuard lock(writers().lock);
  writers().all.insert(this);
}

// TensorFlow's cache writes a file and never closes it: it must exist all the same.
Writer::~Writer() {
  {
    const LockGuard lock(writers().lock);
    writers().all.erase(this);
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

}  // namespace

void close_writers() {
  std::vector<Writer::Rest> rests;
  {
    const LockGuard lock(writers().lock);
    for (Writer* writer : writers().all) rests.push_back(writer->take_rest());
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

TF_WritableFileOps writer_table() {
  return {cleanup_writer, append, tell, flush, sync, close};
}

}  // namespace mtf::bridge
