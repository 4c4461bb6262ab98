// A call as one event of a trace: a line of JSON.
#pragma once

#include <cstdint>
#include <string>

#include "call_under_way.h"

namespace mtf {

// Adds the event to `text`. Secrets in what the call is about are hidden.
void add_event(std::string& text, const CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns,
               int code);

}  // namespace mtf
