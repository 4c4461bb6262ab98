/* What plugins do to the state of their process; each ends the process where it cannot be done. */
#pragma once

void limit(int kind, unsigned long limit);
void pin_limit(int kind);
void set_alarm(int seconds, int is_handled);
void create_timer(int number);
void create_timer_of_this_thread(int number);
void create_thread_timer(void);
void* wait_for_any_child(void* nothing);
int open_nothing(void);
void use_up(int (*take)(void), int count);
void map_pages(int count);
void set_close_on_exec(int first, int last, int is_set);
void change_user(void);
void change_groups(void);
void change_root(void);
void leave_namespace(int flags);
void hide_proc(void);
void filter_calls(int refuses_open);
void trace_me(void);
void end_with_parent(void);
void take_processors(void);
void make_output_non_blocking(void);
void call_at_fork(int crashes);
