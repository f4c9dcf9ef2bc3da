set(PACKAGE_VERSION "@VERSION@")

# Versions with one soname are compatible: until 1.0 those of one minor version.
set(_tokenmeter_soname "libtokenmeter.so.${PACKAGE_FIND_VERSION_MAJOR}")
if(PACKAGE_FIND_VERSION_MAJOR EQUAL 0)
  string(APPEND _tokenmeter_soname ".${PACKAGE_FIND_VERSION_MINOR}")
endif()
if(NOT PACKAGE_FIND_VERSION OR
    (_tokenmeter_soname STREQUAL "@SONAME@" AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION))
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
unset(_tokenmeter_soname)
