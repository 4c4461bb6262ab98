// Defects of timers.
#include <utility>

#include "defects.h"
#include "marked_work.h"

namespace {

using namespace defective;

constexpr uint64_t kHour = uint64_t{3600} * 1000 * 1000 * 1000;

SP_Timer marked = nullptr;  // the one that was started behind the mark

void start(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  if (take_mark()) marked = timer;
  original.executor.start_timer(device, stream, timer, status);
}

void destroy(const SP_Device* device, SP_Timer timer) {
  if (timer == marked) marked = nullptr;
  original.executor.destroy_timer(device, timer);
}

void watch_for_marked_timer(Tables& tables, uint64_t n_bytes) {
  watch_for_mark(tables, n_bytes);
  tables.executor.start_timer = start;
  tables.executor.destroy_timer = destroy;
}

uint64_t add_an_hour(SP_Timer timer) {
  return original.timer_fns.nanoseconds(timer) + (timer == marked ? kHour : 0);
}

uint64_t count_microseconds(SP_Timer timer) {
  return original.timer_fns.nanoseconds(timer) / (timer == marked ? 1000 : 1);
}

uint64_t show_nothing(SP_Timer timer) {
  return timer == marked ? 0 : original.timer_fns.nanoseconds(timer);
}

void start_once(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  if (timer == marked) return TF_SetStatus(status, TF_OK, "");
  start(device, stream, timer, status);
}

bool spoilt = false;

void spoil_the_stream(const SP_Device* device, SP_Timer timer) {
  if (timer == marked) spoilt = true;
  destroy(device, timer);
}

void notice_the_spoilt_stream(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  original.executor.block_host_until_done(device, stream, status);
  if (std::exchange(spoilt, false)) TF_SetStatus(status, TF_INTERNAL, "the timer is gone");
}

}  // namespace

DEFECTS(timers) = {
    {"SE-273",
     [](Tables& tables) {
       watch_for_marked_timer(tables, 441);
       tables.timer_fns.nanoseconds = add_an_hour;
     }},
    {"SE-274",
     [](Tables& tables) {
       watch_for_marked_timer(tables, 443);
       tables.timer_fns.nanoseconds = count_microseconds;
     }},
    {"SE-275",
     [](Tables& tables) {
       watch_for_marked_timer(tables, 445);
       tables.executor.start_timer = start_once;
     }},
    {"SE-276",
     [](Tables& tables) {
       watch_for_marked_timer(tables, 447);
       tables.timer_fns.nanoseconds = show_nothing;
     }},
    {"SE-277",
     [](Tables& tables) {
       watch_for_marked_timer(tables, 449);
       tables.executor.destroy_timer = spoil_the_stream;
       tables.executor.block_host_until_done = notice_the_spoilt_stream;
     }},
};
