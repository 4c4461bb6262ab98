// The functions that go into the host's tables, by group. What each must do is said in
// modular_tf/device.h.
#pragma once

#include "modular_tf/device.h"

namespace opencl {

void fill_memory_slots(SP_StreamExecutor& executor);  // memory_slots.cc
void fill_stream_slots(SP_StreamExecutor& executor);  // stream_slots.cc: also waiting and callbacks
void fill_event_slots(SP_StreamExecutor& executor);   // event_slots.cc
void fill_timer_slots(SP_StreamExecutor& executor);   // timer_slots.cc
void fill_copy_slots(SP_StreamExecutor& executor);    // copy_slots.cc: copies and fills

void fill_timer_fns(SP_TimerFns& fns);    // timer_slots.cc
void fill_device_fns(SP_DeviceFns& fns);  // device_facts.cc

}  // namespace opencl
