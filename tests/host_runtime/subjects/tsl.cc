// The tsl:: symbols, driven from C++.
#include "tsl.h"

#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "host_runtime.h"

CASE(a_mutex_excludes) {
  tsl::mutex mutex;
  long count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 50000; ++j) {
        mutex.lock();
        ++count;
        mutex.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(count == 200000);
}

// Plugins have mutexes with static storage that no constructor ran on.
CASE(zeroed_memory_is_an_unlocked_mutex) {
  alignas(tsl::mutex) static char memory[sizeof(tsl::mutex)];
  auto* mutex = reinterpret_cast<tsl::mutex*>(memory);
  bool entered = false;
  mutex->lock();
  std::thread waiting([&] {
    mutex->lock();
    entered = true;
    mutex->unlock();
  });
  CHECK(!entered);
  mutex->unlock();
  waiting.join();
  CHECK(entered);
}

// Another thread of the parent holds it at the moment of the fork.
CASE(a_forked_child_finds_a_mutex_free) {
  tsl::mutex mutex;
  int held[2], done[2];
  CHECK(pipe(held) == 0 && pipe(done) == 0);
  char byte = 0;
  std::thread holder([&] {
    mutex.lock();
    CHECK(write(held[1], "x", 1) == 1);
    CHECK(read(done[0], &byte, 1) == 1);
    mutex.unlock();
  });
  CHECK(read(held[0], &byte, 1) == 1);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    mutex.lock();
    mutex.unlock();
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(write(done[1], "x", 1) == 1);
  holder.join();
}

CASE(a_mutex_stays_inside_its_sixteen_bytes) {
  struct {
    char before[16];
    alignas(16) char mutex[16];
    char after[16];
  } memory;
  memset(&memory, 0x5a, sizeof(memory));
  auto* mutex = new (memory.mutex) tsl::mutex;
  mutex->lock();
  mutex->unlock();
  for (char byte : memory.before) CHECK(byte == 0x5a);
  for (char byte : memory.after) CHECK(byte == 0x5a);
}

CASE(numbers_are_written_in_decimal) {
  char buffer[32];
  CHECK(tsl::strings::FastUInt64ToBufferLeft(0, buffer) == 1);
  CHECK_TEXT("0", buffer);
  CHECK(tsl::strings::FastUInt64ToBufferLeft(UINT64_MAX, buffer) == 20);
  CHECK_TEXT("18446744073709551615", buffer);
}

CASE(strings_are_joined) {
  using tsl::strings::StrCat;
  CHECK(StrCat("a") == "a");
  CHECK(StrCat("a", 7) == "a7");
  CHECK(StrCat("a", "", "c") == "ac");
  CHECK(StrCat(1, "b", 2, "a text that no short string holds in place") ==
        "1b2a text that no short string holds in place");
  CHECK(tsl::strings::internal::CatPieces({}).empty());
  CHECK(tsl::strings::internal::CatPieces({"a", {}, "b", "c", "d", "e"}) == "abcde");
}

CASE(prefixes_and_suffixes) {
  using namespace tsl::str_util;
  CHECK(StartsWith("oss://b", "oss://") && StartsWith("a", "") && StartsWith("", ""));
  CHECK(!StartsWith("os", "oss") && !StartsWith("abc", "b"));
  CHECK(EndsWith("a/", "/") && EndsWith("a", "") && !EndsWith("", "a") && !EndsWith("ab", "a"));
  std::string_view text = "oss://b";
  CHECK(ConsumePrefix(&text, "oss://") && text == "b");
  CHECK(!ConsumePrefix(&text, "oss://") && text == "b");
}

static void check_uri(const char* uri, const char* scheme, const char* host, const char* path) {
  std::string_view found[3];
  const std::string_view whole = uri;
  tsl::io::ParseURI(whole, &found[0], &found[1], &found[2]);
  if (found[0] == scheme && found[1] == host && found[2] == path) {
    for (std::string_view part : found) {
      CHECK(part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
    }
    return;
  }
  fprintf(stderr, "%s: found '%s' '%s' '%s'\n", uri, std::string(found[0]).c_str(),
          std::string(found[1]).c_str(), std::string(found[2]).c_str());
  exit(1);
}

CASE(uris_are_split) {
  check_uri("", "", "", "");
  check_uri("/", "", "", "/");
  check_uri("a/b", "", "", "a/b");
  check_uri("zz://", "zz", "", "");
  check_uri("zz:///", "zz", "", "/");
  check_uri("zz://h", "zz", "h", "");
  check_uri("zz://h//", "zz", "h", "//");
  check_uri("zz://h/p?q=/../1", "zz", "h", "/p?q=/../1");
  check_uri("zz://../x", "zz", "..", "/x");
  check_uri("S3://Bucket/Key", "S3", "Bucket", "/Key");
  check_uri("a.1://h/p", "a.1", "h", "/p");
  check_uri("s3-x://h/p", "", "", "s3-x://h/p");
  check_uri("9s://h", "", "", "9s://h");
  check_uri("a://h/p", "", "", "a://h/p");
  check_uri("zz:/h/p", "", "", "zz:/h/p");
  check_uri("://h/p", "", "", "://h/p");
}

CASE(directory_names) {
  CHECK(tsl::io::Dirname("zz://h/p/q") == "zz://h/p");
  CHECK(tsl::io::Dirname("zz://h/p") == "zz://h/");
  CHECK(tsl::io::Dirname("zz://h/") == "zz://h/");
  CHECK(tsl::io::Dirname("zz://h") == "zz://h");
  CHECK(tsl::io::Dirname("/a/b") == "/a");
  CHECK(tsl::io::Dirname("/a") == "/");
  CHECK(tsl::io::Dirname("a/b/") == "a/b");
  CHECK(tsl::io::Dirname("s") == "");
  CHECK(tsl::io::Dirname("") == "");
}

CASE(log_messages_of_each_severity) {
  for (int severity = 0; severity < 3; ++severity) {
    tsl::internal::LogMessage("dir/source.cc", 42, severity) << "severity " << severity;
  }
}

static bool has_memory = true;

void* operator new(std::size_t size) {
  void* block = has_memory ? std::malloc(size) : nullptr;
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

static int lines = 0;

CASE(a_message_without_memory_is_a_line_nevertheless) {
  setenv("TF_CPP_VMODULE", "source=3", 1);
  mtf_set_log_sink([](const mtf_plugin_line* line) {
    CHECK_TEXT("a line without memory for it", line->text);
    return ++lines;
  });
  {
    tsl::internal::LogMessage message("dir/source.cc", 42, 2);
    message << std::string(1000, 'x');
    has_memory = false;
    CHECK(!tsl::internal::LogMessage::VmoduleActivated("dir/source.cc", 3));
  }
  has_memory = true;
  CHECK(lines == 1);
  CHECK(tsl::internal::LogMessage::VmoduleActivated("dir/source.cc", 3));
}

CASE(print_vmodule) {
  using tsl::internal::LogMessage;
  for (const char* file : {"dir/oss_filesystem.cc", "other.cc", "plain"}) {
    for (int level = 0; level < 4; ++level) printf("%d", LogMessage::VmoduleActivated(file, level));
    printf("\n");
  }
}

// The next two end in SIGABRT.
// Prints the line in its parts, and whether this program wrote it.
static int print_parts(const mtf_plugin_line* line) {
  Dl_info owner, here;
  CHECK(dladdr(line->caller, &owner) != 0);
  CHECK(dladdr(reinterpret_cast<void*>(print_parts), &here) != 0);
  std::printf("%d %s %d %s %s\n", line->level, line->file, line->line, line->text,
              owner.dli_fbase == here.dli_fbase ? "ours" : owner.dli_fname);
  std::fflush(stdout);
  return 1;
}

CASE(log_messages_in_their_parts) {
  mtf_set_log_sink(print_parts);
  log_messages_of_each_severity();
}

CASE(a_fatal_message_in_its_parts) {
  mtf_set_log_sink(print_parts);
  tsl::internal::LogMessageFatal("dir/source.cc", 42) << "checked " << 1;
}

CASE(an_older_fatal_message_in_its_parts) {
  mtf_set_log_sink(print_parts);
  tensorflow::internal::LogMessageFatal("dir/source.cc", 42) << "checked " << 1;
}

CASE(a_fatal_message) { tsl::internal::LogMessageFatal("dir/source.cc", 42) << "checked " << 1; }

CASE(a_fatal_message_of_older_plugins) {
  tensorflow::internal::LogMessageFatal("dir/source.cc", 42) << "checked " << 1;
}
