#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "copied_text.h"
#include "filesystem_slots.h"
#include "filesystem_state.h"
#include "library.h"

namespace mtf {
namespace {

constexpr size_t kFirstRoom = 4096;
constexpr int64_t kMostNames = int64_t{1} << 24;  // copies take memory, also of names that are empty

// Strings, one behind the other, in memory that std::free takes back.
class StringBlock {
 public:
  StringBlock() = default;
  StringBlock(const StringBlock&) = delete;
  StringBlock& operator=(const StringBlock&) = delete;
  ~StringBlock() { std::free(bytes_); }

  Error add(const char* text) {
    const size_t length = mtf_text_length(text);
    if (length == MTF_LONGEST_TEXT) return make_error(TF_INTERNAL, "an entry of the array has no end");
    if (!make_room(length + 1)) return make_error(TF_RESOURCE_EXHAUSTED, "no memory for a list of names");
    mtf_put_text(bytes_ + size_, text, length);
    size_ += std::strlen(bytes_ + size_) + 1;  // a NUL may have come into it meanwhile
    return nullptr;
  }

  void move_to(mtf_strings* strings) {
    strings->size = std::exchange(size_, 0);
    strings->bytes = std::exchange(bytes_, nullptr);
  }

 private:
  bool make_room(size_t more) {
    if (more <= room_ - size_) return true;
    const size_t wanted = std::max({kFirstRoom, 2 * room_, size_ + more});
    auto* grown = static_cast<char*>(std::realloc(bytes_, wanted));
    if (grown == nullptr) return false;
    bytes_ = grown;
    room_ = wanted;
    return true;
  }

  char* bytes_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

}  // namespace

PluginStrings::~PluginStrings() {
  if (count_ < 0) return;
  for (int i = 0; entries_ != nullptr && i < count_; ++i) {
    free_by_plugin(plugin_, free_, entries_[i]);
  }
  free_by_plugin(plugin_, free_, entries_);
}

Error PluginStrings::copy_to(mtf_strings* strings) const {
  if (count_ < 0) return make_error(TF_INTERNAL, "a negative count came with an OK status");
  if (count_ > 0 && entries_ == nullptr) {
    return make_error(TF_INTERNAL, "a positive count came with a NULL array");
  }
  StringBlock block;
  for (int i = 0; i < count_; ++i) {
    const char* entry = __atomic_load_n(&entries_[i], __ATOMIC_RELAXED);
    if (entry == nullptr) return make_error(TF_INTERNAL, "the array holds a NULL entry");
    if (Error error = block.add(entry)) return error;
  }
  strings->count = count_;
  block.move_to(strings);
  return nullptr;
}

int split_names(const char* bytes, size_t size, int64_t count, char*** entries) {
  if (count < 0 || count > kMostNames || static_cast<uint64_t>(count) > size) return -1;
  auto** const made = static_cast<char**>(std::calloc(static_cast<size_t>(count) + 1, sizeof(char*)));
  int64_t done = 0;
  for (size_t at = 0; made != nullptr && done < count; ++done) {
    const size_t length = strnlen(bytes + at, size - at);
    if (length == size - at) break;
    made[done] = static_cast<char*>(std::malloc(length + 1));
    if (made[done] == nullptr) break;
    mtf_put_text(made[done], bytes + at, length);
    at += length + 1;
  }
  if (made != nullptr && done == count) {
    *entries = made;
    return static_cast<int>(count);
  }
  while (done > 0) std::free(made[--done]);
  std::free(made);
  return -1;
}

}  // namespace mtf

// Calls of the slots of a plugin's filesystem: paths are translated, results checked and copied.

static_assert(sizeof(mtf_option) == sizeof(TF_Filesystem_Option), "one layout, two names");
static_assert(sizeof(mtf_option_value) == sizeof(TF_Filesystem_Option_Value), "one layout");
static_assert(sizeof(mtf_option_item) == sizeof(TF_Filesystem_Option_Value_Union), "one layout");

namespace mtf {
namespace {

constexpr int64_t kNotFilledIn = INT64_MIN;  // the length of no file

// Options in memory of the plugin's allocator, as the interface demands of those that a plugin is given. The
// blocks are the host's, which frees each of them whatever the plugin has made of their content.
class LentOptions {
 public:
  explicit LentOptions(const mtf_filesystem& filesystem) : filesystem_(filesystem) {}
  ~LentOptions() {
    for (void* block : blocks_) {
      if (block == nullptr) continue;
      free_by_plugin(filesystem_.plugin, filesystem_.tables->plugin_free, block);
    }
  }
  LentOptions(const LentOptions&) = delete;
  LentOptions& operator=(const LentOptions&) = delete;

  Error copy(mtf_option* options, int count) {
    if (Error error = lend_copy(options, static_cast<size_t>(count))) return error;
    for (int i = 0; i < count; ++i) {
      if (Error error = copy_option(options[i])) return error;
    }
    options_ = reinterpret_cast<const TF_Filesystem_Option*>(options);
    return nullptr;
  }
  const TF_Filesystem_Option* get() const { return options_; }

 private:
  Error copy_option(mtf_option& option) {
    if (Error error = lend_copy(option.name, std::strlen(option.name) + 1)) return error;
    if (Error error = lend_copy(option.description, std::strlen(option.description) + 1)) return error;
    if (Error error = lend_copy(option.value, 1)) return error;
    mtf_option_value& value = *option.value;
    if (Error error = lend_copy(value.values, static_cast<size_t>(value.num_values))) return error;
    for (int i = 0; value.type_tag == kBuffers && i < value.num_values; ++i) {
      mtf_option_buffer& buffer = value.values[i].buffer;
      if (Error error = lend_copy(buffer.bytes, static_cast<size_t>(buffer.length))) return error;
    }
    return nullptr;
  }

  // Points `pointer` to a copy of its `count` objects.
  template <class Type>
  Error lend_copy(Type*& pointer, size_t count) {
    const size_t size = count * sizeof(Type);
    blocks_.push_back(nullptr);  // first, so that no block is lost where the list cannot grow
    void*& block = blocks_.back();
    Error error = guarded({filesystem_.plugin, "plugin_memory_allocate"}, [&](TF_Status* status) {
      block = filesystem_.tables->plugin_allocate(std::max<size_t>(size, 1));
      if (block == nullptr) {
        mtf_status_set(status, TF_RESOURCE_EXHAUSTED,
                       "the plugin's plugin_memory_allocate has no memory for options");
      }
    });
    if (error) return error;
    if (size != 0) std::memcpy(block, pointer, size);
    pointer = static_cast<Type*>(block);
    return nullptr;
  }

  const mtf_filesystem& filesystem_;
  const TF_Filesystem_Option* options_ = nullptr;
  std::vector<void*> blocks_;
};

// For slots that take none.
struct NoOptions {
  explicit NoOptions(const mtf_filesystem&) {}
};

Error put_text(const char* text, SlotValues& values) {
  values.strings = {1, 0, mtf_copied_text(text)};
  if (values.strings.bytes == nullptr) return make_error(TF_RESOURCE_EXHAUSTED, "no memory for a text");
  values.strings.size = std::strlen(values.strings.bytes);
  return nullptr;
}

// One call: the C arguments of the slot, in their order, and what it has returned.
template <Slot slot>
class PluginCall {
  static constexpr const SlotInfo& slot_ = info_of(slot);

 public:
  PluginCall(const mtf_filesystem& filesystem, SlotValues& values)
      : filesystem_(filesystem), values_(values), lent_(filesystem) {}

  Error prepare() {
    for (int i = 0; i < slot_.text_count; ++i) {
      texts_[i] = values_.texts[i];
      if (slot_.texts != Texts::kPaths || texts_[i] == nullptr) continue;
      if (Error error = translated_[i].translate(filesystem_, texts_[i])) return error;
      texts_[i] = translated_[i].get();
    }
    if (slot_.makes_options && !slot_.counts_options) values_.option_count = 1;
    if constexpr (slot_.takes_options) return lent_.copy(values_.options, values_.option_count);
    return nullptr;
  }

  template <class Result, class... Arguments>
  void make(Result (*function)(const TF_Filesystem*, Arguments...), TF_Status* status) {
    const auto call = [&](auto... arguments) {
      if constexpr (count_of<TF_Status*, Arguments...> == 0) {
        return call_without_status(filesystem_, function, status, arguments...);
      } else if constexpr (std::is_same_v<Result, bool>) {
        return returning_byte(function)(arguments...);
      } else {
        return function(arguments...);
      }
    };
    const std::tuple<const TF_Filesystem*, Arguments...> arguments{&filesystem_.handle,
                                                                   next<Arguments>(status)...};
    if constexpr (std::is_void_v<Result>) {
      std::apply(call, arguments);
    } else if constexpr (std::is_same_v<Result, int>) {
      result_ = std::apply(call, arguments);
    } else if constexpr (std::is_same_v<Result, char*>) {
      text_ = std::apply(call, arguments);
    } else if constexpr (std::is_same_v<Result, bool>) {
      values_.numbers[0] = std::apply(call, arguments) != 0;
    } else {
      values_.numbers[0] = std::apply(call, arguments);
    }
    if (status->code == TF_OK) check(status);
  }

  // Copies the strings that the plugin has made, and frees them also where the call has failed.
  Error take_strings(Error error) {
    if (slot_.makes_names) {
      const PluginStrings names(filesystem_.plugin, names_, result_, filesystem_.tables->plugin_free);
      return error ? std::move(error) : names.copy_to(&values_.strings);
    }
    if (text_ == nullptr) return error;
    if (!error) error = put_text(text_, values_);
    free_by_plugin(filesystem_.plugin, filesystem_.tables->plugin_free, text_);
    return error;
  }

 private:
  template <class Argument>
  Argument next(TF_Status* status) {
    if constexpr (std::is_same_v<Argument, TF_Status*>) {
      return status;
    } else if constexpr (std::is_same_v<Argument, const char*>) {
      return texts_[next_text_++];
    } else if constexpr (std::is_same_v<Argument, uint64_t*>) {
      return reinterpret_cast<uint64_t*>(&values_.numbers[next_number_++]);
    } else if constexpr (std::is_same_v<Argument, TF_FileStatistics*>) {
      return &statistics_;
    } else if constexpr (std::is_same_v<Argument, char***>) {
      return &names_;
    } else if constexpr (std::is_same_v<Argument, TF_TransactionToken**>) {
      return &values_.token;
    } else if constexpr (std::is_same_v<Argument, TF_Filesystem_Option**>) {
      return reinterpret_cast<TF_Filesystem_Option**>(&values_.options);
    } else if constexpr (std::is_same_v<Argument, const TF_Filesystem_Option*>) {
      return lent_.get();
    } else if constexpr (std::is_same_v<Argument, int*>) {
      return &values_.option_count;
    } else if constexpr (std::is_same_v<Argument, int>) {
      return values_.option_count;
    } else {
      static_assert(std::is_convertible_v<TF_TransactionToken*, Argument>, "a type of unknown meaning");
      return values_.token;
    }
  }

  // Sets the status where an OK slot has not returned what it must.
  void check(TF_Status* status) {
    const char* wrong = nullptr;
    if (slot_.makes_statistics) {
      wrong = statistics_.length == kNotFilledIn ? "stat succeeded without filling in its result"
              : statistics_.length < 0           ? "stat gave a negative length"
                                                 : nullptr;
      const auto is_directory = reinterpret_cast<const unsigned char&>(statistics_.is_directory);
      values_.numbers[0] = statistics_.length;
      values_.numbers[1] = statistics_.mtime_nsec;
      values_.numbers[2] = is_directory != 0;
    } else if (!slot_.makes_names && result_ == -1) {
      wrong = "the plugin returned -1 with an OK status";
    } else if (slot_.makes_token && values_.token == nullptr) {
      wrong = "the plugin returned no token with an OK status";
    } else if (slot_.makes_text && text_ == nullptr) {
      wrong = "the plugin returned NULL";
    } else if (slot_.counts_options && (values_.option_count < 0 ||
                                        (values_.option_count > 0 && values_.options == nullptr))) {
      wrong = "the plugin returned a count that does not fit its array";
    } else if (slot_.makes_options && !slot_.counts_options && values_.options == nullptr) {
      wrong = "the plugin returned no option with an OK status";
    } else if (slot_.returns_number && values_.numbers[0] < 0) {
      wrong = "the plugin returned a negative number with an OK status";
    }
    if (wrong != nullptr) mtf_status_set(status, TF_INTERNAL, wrong);
  }

  const mtf_filesystem& filesystem_;
  SlotValues& values_;
  TranslatedPath translated_[slot_.text_count > 1 ? 2 : 1];
  std::conditional_t<slot_.takes_options, LentOptions, NoOptions> lent_;
  const char* texts_[2];
  int next_text_ = 0;
  int next_number_ = 0;
  // Of the plugin.
  TF_FileStatistics statistics_ = {kNotFilledIn, 0, false};
  char** names_ = nullptr;
  int result_ = slot_.makes_names ? -1 : 0;  // of names, how many; -1, and none, where the slot throws
  char* text_ = nullptr;
};

// The host's result where the plugin has no such slot.
Error default_result(Slot slot, const mtf_filesystem& filesystem, SlotValues& values) {
  if (slot == Slot::translate_name) {
    TranslatedPath translated;
    if (Error error = translated.translate_here(filesystem, values.texts[0])) return error;
    return put_text(translated.get(), values);
  }
  char text[96];
  TF_TransactionToken found;  // which is the plugin's, and may lie anywhere
  if (mtf_try_read(values.token, &found, sizeof found) == 0) {
    std::snprintf(text, sizeof text, "token at %p, which cannot be read", static_cast<void*>(values.token));
  } else {
    std::snprintf(text, sizeof text, "token %#zx, owner %#zx", reinterpret_cast<size_t>(found.token),
                  reinterpret_cast<size_t>(found.owner));
  }
  return put_text(text, values);
}

template <Slot slot>
Error call(mtf_filesystem* filesystem, SlotValues& values) {
  constexpr const SlotInfo& info = info_of(slot);
  const auto function = filesystem->tables->filesystem.*kMember<slot>;
  if (info.missing == Missing::kUnimplemented && function == nullptr) return missing_operation(info.name);
  FilesystemUse use(filesystem);
  if (!use) return closed_filesystem_error();
  if (function == nullptr) {
    return info.missing == Missing::kHostDefault ? default_result(slot, *filesystem, values) : nullptr;
  }
  PluginCall<slot> made(*filesystem, values);
  if (Error error = made.prepare()) return error;
  const char* subject = values.texts[1] != nullptr ? values.texts[1] : values.texts[0];
  Error error = guarded({filesystem->plugin, info.name, subject},
                        [&](TF_Status* status) { made.make(function, status); });
  return made.take_strings(std::move(error));
}

}  // namespace

Error call_slot(Slot slot, mtf_filesystem* filesystem, SlotValues& values) {
  switch (slot) {
#define MTF_CASE_kCalled(name) \
  case Slot::name:             \
    return call<Slot::name>(filesystem, values);
#define MTF_CASE_kFile(name)
#define MTF_CASE_kNone(name)
#define MTF_SLOT(slot, texts, missing, worker, tensorflow) MTF_CASE_##worker(slot)
#include "filesystem_slots.def"
    default: return make_error(TF_INVALID_ARGUMENT, "there is no such call");
  }
}

}  // namespace mtf

using mtf::Error;
using mtf::Slot;
using mtf::SlotValues;

namespace {

// Entries for Python, by what their slots return.

template <Slot slot>
mtf_error* nothing_of(mtf_filesystem* filesystem, const char* text = nullptr, const char* other = nullptr) {
  SlotValues values(text, other);
  return mtf::call<slot>(filesystem, values);
}

template <Slot slot>
mtf_error* strings_of(mtf_filesystem* filesystem, const char* text, mtf_strings* strings) {
  SlotValues values(text);
  Error error = mtf::call<slot>(filesystem, values);
  if (!error) *strings = std::exchange(values.strings, {});
  return error.release();
}

template <Slot slot>
mtf_error* token_of(mtf_filesystem* filesystem, const char* path, void** token) {
  SlotValues values(path);
  Error error = mtf::call<slot>(filesystem, values);
  *token = values.token;
  return error.release();
}

template <Slot slot>
mtf_error* with_token(mtf_filesystem* filesystem, const char* path, const void* token,
                      char** text = nullptr) {
  SlotValues values(path);
  values.token = static_cast<TF_TransactionToken*>(const_cast<void*>(token));
  Error error = mtf::call<slot>(filesystem, values);
  if (!error && text != nullptr) *text = std::exchange(values.strings.bytes, nullptr);
  return error.release();
}

template <Slot slot>
mtf_error* options_of(mtf_filesystem* filesystem, const char* key, mtf_option** options, int* count) {
  SlotValues values(key);
  Error error = mtf::call<slot>(filesystem, values);
  *options = values.options;
  *count = values.option_count;
  return error.release();
}

template <Slot slot>
mtf_error* set_options(mtf_filesystem* filesystem, const mtf_option* options, int count) {
  SlotValues values;
  values.options = const_cast<mtf_option*>(options);
  values.option_count = count;
  return mtf::call<slot>(filesystem, values);
}

}  // namespace

extern "C" {

#define MTF_ENTRY(slot)                                                         \
  mtf_error* mtf_##slot(mtf_filesystem* filesystem, const char* path) {         \
    return nothing_of<Slot::slot>(filesystem, path);                            \
  }
MTF_ENTRY(create_dir)
MTF_ENTRY(recursively_create_dir)
MTF_ENTRY(delete_file)
MTF_ENTRY(delete_dir)
MTF_ENTRY(path_exists)
#undef MTF_ENTRY

mtf_error* mtf_rename_file(mtf_filesystem* filesystem, const char* source, const char* target) {
  return nothing_of<Slot::rename_file>(filesystem, source, target);
}

mtf_error* mtf_copy_file(mtf_filesystem* filesystem, const char* source, const char* target) {
  return nothing_of<Slot::copy_file>(filesystem, source, target);
}

mtf_error* mtf_flush_caches(mtf_filesystem* filesystem) {
  return nothing_of<Slot::flush_caches>(filesystem);
}

mtf_error* mtf_delete_recursively(mtf_filesystem* filesystem, const char* path, uint64_t* undeleted_files,
                                  uint64_t* undeleted_dirs) {
  SlotValues values(path);
  Error error = mtf::call<Slot::delete_recursively>(filesystem, values);
  *undeleted_files = static_cast<uint64_t>(values.numbers[0]);
  *undeleted_dirs = static_cast<uint64_t>(values.numbers[1]);
  return error.release();
}

mtf_error* mtf_paths_exist(mtf_filesystem* filesystem, const char* const* paths, int count,
                           mtf_error** errors, int* all) {
  const auto operation = filesystem->tables->filesystem.paths_exist;
  if (operation == nullptr) return mtf::missing_operation("paths_exist");
  mtf::FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  std::vector<mtf::CallStatus> statuses(static_cast<size_t>(count));
  std::vector<std::string> names;
  std::vector<char*> arguments;
  std::vector<TF_Status*> pointers;
  for (int i = 0; i < count; ++i) {
    mtf::TranslatedPath translated;
    if (Error error = translated.translate(*filesystem, paths[i])) return error.release();
    names.emplace_back(translated.get());
  }
  for (auto& name : names) arguments.push_back(&name[0]);
  for (auto& status : statuses) pointers.push_back(status.get());
  Error error = mtf::guarded({filesystem->plugin, "paths_exist", count > 0 ? paths[0] : nullptr},
                             [&](TF_Status*) {
    *all = mtf::returning_byte(operation)(
        &filesystem->handle, arguments.data(), count, pointers.data()) != 0;
  });
  for (int i = 0; i < count; ++i) errors[i] = mtf::take_status(pointers[static_cast<size_t>(i)]);
  return error.release();
}

mtf_error* mtf_stat_path(mtf_filesystem* filesystem, const char* path, char* result) {
  SlotValues values(path);
  Error error = mtf::call<Slot::stat>(filesystem, values);
  const TF_FileStatistics found = {values.numbers[0], values.numbers[1], values.numbers[2] != 0};
  static_assert(sizeof found == 24, "what the caller has room for");
  std::memcpy(result, &found, sizeof found);
  return error.release();
}

mtf_error* mtf_is_directory(mtf_filesystem* filesystem, const char* path, int* result) {
  SlotValues values(path);
  Error error = mtf::call<Slot::is_directory>(filesystem, values);
  *result = static_cast<int>(values.numbers[0]);
  return error.release();
}

mtf_error* mtf_get_file_size(mtf_filesystem* filesystem, const char* path, int64_t* size) {
  SlotValues values(path);
  Error error = mtf::call<Slot::get_file_size>(filesystem, values);
  *size = values.numbers[0];
  return error.release();
}

mtf_error* mtf_get_children(mtf_filesystem* filesystem, const char* path, mtf_strings* names) {
  return strings_of<Slot::get_children>(filesystem, path, names);
}

mtf_error* mtf_get_matching_paths(mtf_filesystem* filesystem, const char* pattern, mtf_strings* paths) {
  return strings_of<Slot::get_matching_paths>(filesystem, pattern, paths);
}

mtf_error* mtf_translate_name(mtf_filesystem* filesystem, const char* path, char** name) {
  mtf_strings text = {};
  Error error(strings_of<Slot::translate_name>(filesystem, path, &text));
  *name = text.bytes;
  return error.release();
}

int mtf_is_same_name(mtf_filesystem* filesystem, const char* one, const char* other) {
  mtf::FilesystemUse use(filesystem);
  mtf::TranslatedPath first, second;
  if (!use || first.translate_here(*filesystem, one) || second.translate_here(*filesystem, other)) return 0;
  return std::strcmp(first.get(), second.get()) == 0 ? 1 : 0;
}

mtf_error* mtf_start_transaction(mtf_filesystem* filesystem, void** token) {
  return token_of<Slot::start_transaction>(filesystem, nullptr, token);
}

mtf_error* mtf_end_transaction(mtf_filesystem* filesystem, void* token) {
  return with_token<Slot::end_transaction>(filesystem, nullptr, token);
}

mtf_error* mtf_add_to_transaction(mtf_filesystem* filesystem, const char* path, void* token) {
  return with_token<Slot::add_to_transaction>(filesystem, path, token);
}

mtf_error* mtf_get_transaction_for_path(mtf_filesystem* filesystem, const char* path, void** token) {
  return token_of<Slot::get_transaction_for_path>(filesystem, path, token);
}

mtf_error* mtf_get_or_start_transaction_for_path(mtf_filesystem* filesystem, const char* path,
                                                 void** token) {
  return token_of<Slot::get_or_start_transaction_for_path>(filesystem, path, token);
}

mtf_error* mtf_decode_transaction_token(mtf_filesystem* filesystem, const void* token, char** text) {
  return with_token<Slot::decode_transaction_token>(filesystem, nullptr, token, text);
}

mtf_error* mtf_get_configuration(mtf_filesystem* filesystem, mtf_option** options, int* count) {
  return options_of<Slot::get_filesystem_configuration>(filesystem, nullptr, options, count);
}

mtf_error* mtf_get_configuration_option(mtf_filesystem* filesystem, const char* key, mtf_option** option) {
  int count;
  return options_of<Slot::get_filesystem_configuration_option>(filesystem, key, option, &count);
}

mtf_error* mtf_set_configuration(mtf_filesystem* filesystem, const mtf_option* options, int count) {
  return set_options<Slot::set_filesystem_configuration>(filesystem, options, count);
}

mtf_error* mtf_set_configuration_option(mtf_filesystem* filesystem, const mtf_option* option) {
  return set_options<Slot::set_filesystem_configuration_option>(filesystem, option, 1);
}

void mtf_options_free(mtf_filesystem* filesystem, mtf_option* options, int count) {
  mtf::release_options(options, count, [filesystem](void* memory) {
    mtf::free_by_plugin(filesystem->plugin, filesystem->tables->plugin_free, memory);
  });
}

}  // extern "C"
