// Defects of what the entry point leaves.
#include "defects.h"

DEFECTS(registration) = {
    {"SE-009", [](Tables& tables) { tables.params.destroy_platform = nullptr; }},
};
