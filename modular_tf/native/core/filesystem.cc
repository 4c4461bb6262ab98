#include "filesystem.h"
