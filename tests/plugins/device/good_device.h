/* The well-behaved platform: devices whose memory is the host's, and whose streams run at once. */
#pragma once

#include "modular_tf/device.h"

/* What all devices together can allocate, in bytes. */
#define DEVICE_MEMORY ((int64_t)64 << 20)

/* Each fills its share of the executor's slots. */
void fill_memory_slots(SP_StreamExecutor* executor);
void fill_stream_slots(SP_StreamExecutor* executor);

/* What a timer of fill_stream_slots measured. */
uint64_t timer_nanoseconds(SP_Timer timer);

static inline void succeed(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }
