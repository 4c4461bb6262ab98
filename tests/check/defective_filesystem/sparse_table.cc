// No defect: the reference plugin without the slots that the host has defaults for, by the name
// `sparse-table`. Through the host it must do all that the whole plugin does.
#include "defects.h"

DEFECTS(sparse_table) = {
    {"sparse-table", [](Tables& tables) {
       TF_FilesystemOps& ops = tables.filesystem;
       ops.recursively_create_dir = nullptr;
       ops.delete_recursively = nullptr;
       ops.rename_file = nullptr;
       ops.copy_file = nullptr;
       ops.paths_exist = nullptr;
       ops.is_directory = nullptr;
       ops.get_file_size = nullptr;
       ops.get_matching_paths = nullptr;
     }},
};
