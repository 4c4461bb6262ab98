/* Where a plugin of these tests may do its misdeed. */
#pragma once

enum place {
  NOWHERE, CONSTRUCTOR, INIT, CREATE_DEVICE, DESTROY_DEVICE, MEMORY_USAGE, SCHEME_INIT, CLEANUP,
  EXIT_HANDLER, DESTRUCTOR,
};

/* Misbehaves if the library was built to do it here. */
void misbehave_at(enum place place);
