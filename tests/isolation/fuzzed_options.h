// Options as a worker may send them.
#pragma once

#include <string>

#include "filesystem.h"
#include "fuzzer_dice.h"
#include "worker_options.h"

inline char any_byte(Dice& dice) {
  const char bytes[] = {0, 1, 2, 127, -1};
  return any_of(dice, bytes);
}

// Of parts, lengths, counts and tags some are wrong, and so may a few bytes be.
inline std::string any_options(Dice& dice, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    mtf_option_item items[3] = {};
    char text[] = "text of an option";
    const int tag = one_in(dice, 8) ? static_cast<int>(dice() % 5) - 1 : static_cast<int>(dice() % 3);
    for (mtf_option_item& item : items) {
      item.integer = any_number(dice);
      if (tag == 2) item.buffer = {one_in(dice, 4) ? nullptr : text, static_cast<int>(dice() % 18) - 1};
    }
    mtf_option_value value = {tag, static_cast<int>(dice() % 4), one_in(dice, 8) ? nullptr : items};
    const mtf_option option = {one_in(dice, 8) ? nullptr : text, one_in(dice, 3) ? nullptr : text,
                               static_cast<int>(dice() % 2), one_in(dice, 8) ? nullptr : &value};
    check(mtf::write_options(&option, 1, bytes), "options of a few bytes are too many");
  }
  for (int i = 0; !bytes.empty() && one_in(dice, 2) && i < 3; ++i) {
    bytes[dice() % bytes.size()] = any_byte(dice);
  }
  return bytes;
}

// Ends with the options of a reply that was believed.
inline void check_options(mtf_filesystem* fs, mtf_option* options, int count) {
  std::string bytes, again;
  check(mtf::write_options(options, count, bytes), "options are too many");
  mtf::OwnedOptions read;
  check(mtf::read_options(bytes.data(), bytes.size(), count, read), "options cannot be read again");
  check(mtf::write_options(read.options, count, again) && bytes == again, "options have changed");
  mtf_options_free(fs, options, count);
}
