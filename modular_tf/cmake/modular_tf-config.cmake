# The C headers of TensorFlow's plugin interface, for C11 and C++17:
#
#   find_package(modular_tf CONFIG REQUIRED)
#   target_link_libraries(my_plugin PRIVATE modular_tf::headers)
#
# A build of a wheel by scikit-build-core finds this file by itself, where modular_tf is among
# build-system.requires; any other build by -Dmodular_tf_DIR="$(modular-tf headers --cmake)".
# Nothing is linked: the host of a plugin offers what the headers declare.
if(NOT TARGET modular_tf::headers)
  get_filename_component(_modular_tf_include "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
  add_library(modular_tf::headers INTERFACE IMPORTED)
  set_target_properties(modular_tf::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_modular_tf_include}")
  # A feature of a language that the project has not enabled would be an error.
  get_property(_modular_tf_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("C" IN_LIST _modular_tf_languages)
    set_property(TARGET modular_tf::headers APPEND PROPERTY INTERFACE_COMPILE_FEATURES c_std_11)
  endif()
  if("CXX" IN_LIST _modular_tf_languages)
    set_property(TARGET modular_tf::headers APPEND PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_17)
  endif()
  unset(_modular_tf_include)
  unset(_modular_tf_languages)
endif()
