/* Names that nobody uses, for files on their way to a name of their own. */
#pragma once

enum {
  kSpareNameBytes = 24,
  kSpareNameTries = 16 /* 64 random bits meet a name that is taken only if somebody makes them */
};

/* Fills in a random name that is short enough for every directory. Whoever uses it must refuse a
 * file that has it already, and may then try another, kSpareNameTries times. */
void posix_spare_name(char name[kSpareNameBytes]);
