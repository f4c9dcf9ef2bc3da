# find_package(tokenmeter) defines tokenmeter::tokenmeter (shared) and tokenmeter::static.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(_tokenmeter_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET tokenmeter::tokenmeter)
  add_library(tokenmeter::tokenmeter SHARED IMPORTED)
  set_target_properties(tokenmeter::tokenmeter PROPERTIES
    IMPORTED_LOCATION "${_tokenmeter_prefix}/lib/libtokenmeter.so"
    IMPORTED_SONAME "@SONAME@"
    INTERFACE_INCLUDE_DIRECTORIES "${_tokenmeter_prefix}/include")

  add_library(tokenmeter::static STATIC IMPORTED)
  set_target_properties(tokenmeter::static PROPERTIES
    IMPORTED_LOCATION "${_tokenmeter_prefix}/lib/libtokenmeter.a"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m"
    INTERFACE_INCLUDE_DIRECTORIES "${_tokenmeter_prefix}/include")
endif()

unset(_tokenmeter_prefix)
