/* Functions of the C library that Python has none for. */
#pragma once

#include <locale.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef __cplusplus
extern char** environ;
int capset(void* header, void const* data); /* no header declares it */
void exit(int status);
int fcloseall(void);
int mount(char const* source, char const* target, char const* type, unsigned long flags, void const* data);
int prctl(int option, ...);
char* setlocale(int category, char const* locale);
long syscall(long number, ...);
int unshare(int flags);
#endif
