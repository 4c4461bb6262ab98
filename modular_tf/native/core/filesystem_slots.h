// The slots of TF_FilesystemOps as data (filesystem_slots.def), and calls of them whatever their C types are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "error.h"
#include "filesystem.h"
#include "modular_tf/filesystem.h"

namespace mtf {

enum class Slot : uint32_t {
#define MTF_SLOT(slot, texts, missing, worker, tensorflow) slot,
#include "filesystem_slots.def"
};

enum class Texts { kPaths, kPathsAsGiven, kNoPaths };
enum class Missing { kUnimplemented, kOk, kHostDefault };

template <class Argument, class... Arguments>
constexpr int count_of = (0 + ... + (std::is_same_v<Argument, Arguments> ? 1 : 0));

// What a row and the C type of its slot say.
struct SlotInfo {
  const char* name;
  Texts texts;
  Missing missing;
  int text_count = 0;
  bool has_status = false;
  bool takes_token = false, makes_token = false;
  bool takes_options = false, makes_options = false, counts_options = false;
  bool makes_names = false, makes_text = false, makes_statistics = false, returns_number = false;

  template <class Result, class... Arguments>
  constexpr SlotInfo(const char* its_name, Texts its_texts, Missing its_missing,
                     Result (*)(const TF_Filesystem*, Arguments...))
      : name(its_name),
        texts(its_texts),
        missing(its_missing),
        text_count(count_of<const char*, Arguments...>),
        has_status(count_of<TF_Status*, Arguments...> > 0),
        takes_token(count_of<TF_TransactionToken*, Arguments...> +
                        count_of<const TF_TransactionToken*, Arguments...> > 0),
        makes_token(count_of<TF_TransactionToken**, Arguments...> > 0),
        takes_options(count_of<const TF_Filesystem_Option*, Arguments...> > 0),
        makes_options(count_of<TF_Filesystem_Option**, Arguments...> > 0),
        counts_options(count_of<int*, Arguments...> > 0),
        makes_names(count_of<char***, Arguments...> > 0),
        makes_text(std::is_same_v<Result, char*>),
        makes_statistics(count_of<TF_FileStatistics*, Arguments...> > 0),
        returns_number(std::is_same_v<Result, int64_t>) {}
};

constexpr SlotInfo kSlots[] = {
#define MTF_SLOT(slot, texts, missing, worker, tensorflow) \
  {#slot, Texts::texts, Missing::missing, decltype(TF_FilesystemOps::slot){}},
#include "filesystem_slots.def"
};
constexpr uint32_t kSlotCount = sizeof kSlots / sizeof *kSlots;
constexpr const SlotInfo& info_of(Slot slot) { return kSlots[static_cast<uint32_t>(slot)]; }

static_assert(sizeof(TF_FilesystemOps) == (kSlotCount + 2) * sizeof(void (*)()), "each slot has a row");
#define MTF_SLOT(slot, texts, missing, worker, tensorflow)                                             \
  static_assert(offsetof(TF_FilesystemOps, slot) ==                                                    \
                    (static_cast<size_t>(Slot::slot) + 2) * sizeof(void (*)()),                        \
                "the rows have the order of the table");
#include "filesystem_slots.def"

// The member of TF_FilesystemOps.
template <Slot slot>
constexpr std::nullptr_t kMember = nullptr;
#define MTF_SLOT(slot, texts, missing, worker, tensorflow) \
  template <>                                              \
  inline constexpr auto kMember<Slot::slot> = &TF_FilesystemOps::slot;
#include "filesystem_slots.def"

// A function as one of another type, which its caller knows it to have.
template <class Function, class Other>
Function as_function(Other function) {
  return reinterpret_cast<Function>(reinterpret_cast<void (*)()>(function));
}

// Arguments and results of a call of any slot.
struct SlotValues {
  SlotValues() = default;
  explicit SlotValues(const char* first, const char* second = nullptr) : texts{first, second} {}
  ~SlotValues() {
    if (strings.bytes != nullptr) mtf_strings_free(&strings);
  }
  SlotValues(const SlotValues&) = delete;
  SlotValues& operator=(const SlotValues&) = delete;

  // Arguments: paths as the user wrote them, a pattern, or a key.
  const char* texts[2] = {};
  // Arguments of some slots, results of others. Options that are results are freed by mtf_options_free.
  TF_TransactionToken* token = nullptr;
  mtf_option* options = nullptr;
  int option_count = 0;
  // Results: what the slot returns or counts; of stat length, time, and 1 for a directory.
  int64_t numbers[3] = {};
  mtf_strings strings = {};  // names; or one text, whose NUL `size` does not count
};

// Calls a slot whose row says kCalled for a worker. [any thread]
Error call_slot(Slot slot, mtf_filesystem* filesystem, SlotValues& values);

// -- functions in tables of the host's --------------------------------------------------------------------

template <class Argument>
void put_argument(SlotValues& values, TF_Status*& status, Argument argument) {
  if constexpr (std::is_same_v<Argument, TF_Status*>) {
    status = argument;
  } else if constexpr (std::is_same_v<Argument, const char*>) {
    values.texts[values.texts[0] == nullptr ? 0 : 1] = argument;
  } else if constexpr (std::is_convertible_v<Argument, const TF_TransactionToken*>) {
    values.token = const_cast<TF_TransactionToken*>(argument);
  } else if constexpr (std::is_same_v<Argument, const TF_Filesystem_Option*>) {
    values.options = reinterpret_cast<mtf_option*>(const_cast<TF_Filesystem_Option*>(argument));
    values.option_count = 1;
  } else if constexpr (std::is_same_v<Argument, int>) {
    values.option_count = argument;
  }
}

// The body of a slot's function: has a `Call` do the work. That is made of (filesystem, slot, values, status),
// and has is_ok() and, for slots with such results, names(entries), text(), token() and options().
template <class Call, Slot slot, class Result, class... Arguments>
Result perform_slot(const TF_Filesystem* filesystem, Arguments... arguments) {
  SlotValues values;
  TF_Status* status = nullptr;
  (put_argument(values, status, arguments), ...);
  Call call(filesystem, slot, values, status);
  int count = -1;
  const int64_t* number = values.numbers;
  const auto set_result = [&](auto argument) {
    using Argument = decltype(argument);
    if constexpr (std::is_same_v<Argument, uint64_t*>) {
      *argument = static_cast<uint64_t>(*number++);  // where the call fails too
    } else if constexpr (std::is_same_v<Argument, TF_FileStatistics*>) {
      if (call.is_ok()) *argument = {number[0], number[1], number[2] != 0};
    } else if constexpr (std::is_same_v<Argument, char***>) {
      *argument = nullptr;
      if (call.is_ok()) count = call.names(argument);
    } else if constexpr (std::is_same_v<Argument, TF_TransactionToken**>) {
      if (call.is_ok()) *argument = call.token();
    } else if constexpr (std::is_same_v<Argument, TF_Filesystem_Option**>) {
      if (call.is_ok()) *argument = call.options();
    } else if constexpr (std::is_same_v<Argument, int*>) {
      if (call.is_ok()) *argument = values.option_count;
    }
  };
  (set_result(arguments), ...);
  if constexpr (std::is_same_v<Result, bool>) return call.is_ok() && values.numbers[0] != 0;
  if constexpr (std::is_same_v<Result, int64_t>) return call.is_ok() ? values.numbers[0] : -1;
  if constexpr (std::is_same_v<Result, char*>) return call.is_ok() ? call.text() : nullptr;
  if constexpr (std::is_same_v<Result, int>) {
    return info_of(slot).makes_names ? count : call.is_ok() ? 0 : -1;
  }
}

template <class Call, Slot slot, class Result, class... Arguments>
auto function_like(Result (*)(const TF_Filesystem*, Arguments...)) {
  if constexpr (info_of(slot).has_status) {
    return &perform_slot<Call, slot, Result, Arguments...>;
  } else {
    return &perform_slot<Call, slot, Result, Arguments..., TF_Status*>;
  }
}

// The function of a slot. One without a status has it as its last argument (call_without_status).
template <class Call, Slot slot>
auto slot_function() {
  using Function = std::remove_reference_t<decltype(std::declval<TF_FilesystemOps>().*kMember<slot>)>;
  return as_function<Function>(function_like<Call, slot>(Function{}));
}

}  // namespace mtf
