// Files that TensorFlow reads, and the blocks that are read ahead.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bridge_calls.h"

namespace mtf::bridge {
namespace {

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
    block_.resize(block_size_);
    at_ = offset;
    int64_t count = 0;
    const bool is_read = read_now(offset, block_size_, block_.data(), &count, status);
    block_.resize(is_read ? static_cast<size_t>(count) : 0);
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

}  // namespace

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

TF_RandomAccessFileOps reader_table() { return {cleanup_reader, read}; }

}  // namespace mtf::bridge
