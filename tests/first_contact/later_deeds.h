/* Deeds that come after all calls into the plugin have returned: once there is a file at MISDEED_MOMENT. */
#pragma once

/* In a thread of the plugin's own. */
void crash_later(void);
void abort_later(void);
void exit_later(void);
void cancel_main_thread_later(void);

/* In such a thread: has each pointer to a function in write-protected tables of other plugins lead
 * nowhere, through /proc/self/mem. */
void overwrite_tables_later(void);

/* In an exit handler, and in a destructor of the library. */
void crash_at_exit(void);
void hang_at_exit(void);
void crash_when_unloaded(void);
void hang_when_unloaded(void);
