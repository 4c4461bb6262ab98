// Strings of a plugin that change each time somebody measures them: longer, then shorter again. What
// measures twice, or copies until a NUL that is gone by then, writes or reads where it must not;
// AddressSanitizer ends the process. The argument is the case.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "filesystem.h"
#include "host_runtime.h"
#include "modular_tf/filesystem.h"
#include "modular_tf/logging.h"
#include "modular_tf/status.h"
#include "error.h"
#include "plugin_messages.h"
#include "filesystem_state.h"

extern "C" {
size_t __real_strlen(const char* text);
size_t __real_strnlen(const char* text, size_t most);
}

namespace {

constexpr size_t kShort = 60, kLong = 240;
char changing[kLong + 1];

void begin() {
  std::memset(changing, 'a', kLong);
  changing[kShort] = changing[kLong] = '\0';
}

void measured(const char* text) {
  if (text < changing || text >= changing + kShort) return;
  changing[kShort] = changing[kShort] == '\0' ? 'a' : '\0';
}

// Reads a whole string that the host has made.
void look_at(const char* text) {
  if (text == nullptr || __real_strlen(text) > 4 * kLong) std::abort();
}

}  // namespace

extern "C" {

size_t __wrap_strlen(const char* text) {
  const size_t length = __real_strlen(text);
  measured(text);
  return length;
}

size_t __wrap_strnlen(const char* text, size_t most) {
  const size_t length = __real_strnlen(text, most);
  measured(text);
  return length;
}

// As the C library has them.
char* __wrap_strdup(const char* text) {
  const size_t size = __wrap_strlen(text) + 1;
  return static_cast<char*>(std::memcpy(std::malloc(size), text, size));
}

char* __wrap_strcpy(char* target, const char* text) {
  return static_cast<char*>(std::memcpy(target, text, __wrap_strlen(text) + 1));
}

}  // extern "C"

namespace {

void names() {
  char* entries[] = {changing, changing, changing};
  mtf_strings strings = {};
  mtf::drop(mtf::PluginStrings(nullptr, entries, 3, [](void*) {}).copy_to(&strings));
  if (strings.count != 3 || strings.bytes[strings.size - 1] != '\0') std::abort();
  const char* name = strings.bytes;
  for (int i = 0; i < 3; ++i) name += __real_strlen(name) + 1;
  if (name != strings.bytes + strings.size) std::abort();
  mtf_strings_free(&strings);
}

void message_of_a_status() {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_INTERNAL, changing);
  look_at(TF_Message(status));
  TF_DeleteStatus(status);
}

void message_of_an_error() {
  mtf_error* error = mtf::make_error(13, changing);
  look_at(error->message);
  mtf_error_free(error);
}

void log_line() {
  mtf_plugin_messages_attach(reinterpret_cast<void*>(mtf_set_log_sink),
                             reinterpret_cast<void*>(mtf_write_log_line));
  mtf_plugin_messages_open(-5);
  mtf_plugin_line line = {};
  line.file = line.text = changing;
  mtf_log_line(&line);
  TF_Log(TF_ERROR, "%s", changing);
  for (int i = 0; i < 2; ++i) {
    const mtf_plugin_message* message = mtf_plugin_messages_next();
    look_at(message->text);
    if (message->source != nullptr) look_at(message->source);
  }
  mtf_plugin_messages_close();
}

void stop(mtf_error* error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "%s\n", error->message);
  std::abort();
}

struct Tables {
  TF_FilesystemOps filesystem;
  TF_RandomAccessFileOps reader;
  TF_WritableFileOps writer;
  TF_ReadOnlyMemoryRegionOps region;
  void* (*plugin_allocate)(size_t);
  void (*plugin_free)(void*);
};

Tables tables() {
  Tables made = {};
  made.filesystem.init = [](TF_Filesystem*, TF_Status*) {};
  made.filesystem.cleanup = [](TF_Filesystem*) {};
  made.filesystem.translate_name = [](const TF_Filesystem*, const char*) { return changing; };
  made.filesystem.paths_exist = [](const TF_Filesystem*, char** paths, int count, TF_Status**) {
    for (int i = 0; i < count; ++i) look_at(paths[i]);
    return true;
  };
  made.filesystem.decode_transaction_token = [](const TF_Filesystem*,
                                                const TF_TransactionToken*) { return changing; };
  made.plugin_allocate = std::malloc;
  made.plugin_free = [](void*) {};
  return made;
}

void filesystem() {
  const Tables of = tables();
  mtf_filesystem* made = nullptr;
  stop(mtf_filesystem_new(&of, nullptr, &made));
  for (int i = 0; i < 3; ++i) {
    char* text = nullptr;
    stop(mtf_translate_name(made, "x://h", &text));
    look_at(text);
    mtf_string_free(text);
    stop(mtf_decode_transaction_token(made, changing, &text));
    look_at(text);
    mtf_string_free(text);
    const char* paths[] = {"x://h", "x://h", "x://h"};
    mtf_error* errors[3] = {};
    int all = 0;
    stop(mtf_paths_exist(made, paths, 3, errors, &all));
  }
  mtf_filesystem_release(made);
}

const std::map<std::string, std::function<void()>> cases = {
    {"names", names},
    {"message_of_a_status", message_of_a_status},
    {"message_of_an_error", message_of_an_error},
    {"log_line", log_line},
    {"filesystem", filesystem},
};

}  // namespace

int main(int, char** arguments) {
  for (int i = 0; i < 2; ++i) {
    begin();
    if (i == 1) measured(changing);  // long at first
    cases.at(arguments[1])();
  }
  return 0;
}
