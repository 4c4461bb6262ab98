// Knowing the check: its work copies a number of bytes of its own, and a defect acts behind that.
#pragma once

#include "defects.h"

namespace defective {

// From now on a copy of so many bytes to the device is a mark.
void watch_for_mark(Tables& tables, uint64_t n_bytes);

// Whether the last such copy was a mark that nobody has taken yet; takes it.
bool take_mark();

// As `watch_for_mark`; the next event that is recorded behind the mark takes it.
void watch_for_marked_event(Tables& tables, uint64_t n_bytes);

// Whether it is that event, until it is destroyed.
bool is_marked(SP_Event event);

// The stream that it was recorded on.
SP_Stream marked_stream();

// How many streams there are, from now on.
void count_streams(Tables& tables);
int streams();

}  // namespace defective
