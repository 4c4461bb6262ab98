/* Functions of the C library that Python has none for. */
#pragma once

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef __cplusplus
int capset(void* header, void const* data); /* no header declares it */
int fcloseall(void);
int mount(char const* source, char const* target, char const* type, unsigned long flags, void const* data);
int prctl(int option, ...);
long syscall(long number, ...);
int unshare(int flags);
#endif
