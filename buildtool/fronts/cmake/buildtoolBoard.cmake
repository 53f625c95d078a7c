# A toolchain file for any board: -DBUILDTOOL_BOARD=NAME, where NAME may be a plugin's board or a .toml file.
#
# It asks buildtool for the compiler and its flags whenever CMake reads it. CMake reads it again for each of its own
# checks, which find the answer through the environment.
include("${CMAKE_CURRENT_LIST_DIR}/buildtoolPython.cmake")
if(NOT BUILDTOOL_BOARD AND NOT DEFINED ENV{_BUILDTOOL_TOOLCHAIN})
  message(FATAL_ERROR "buildtool: this toolchain file needs -DBUILDTOOL_BOARD=... (a board's name or .toml file)")
endif()
get_property(_buildtool_checks GLOBAL PROPERTY IN_TRY_COMPILE)
if(_buildtool_checks AND DEFINED ENV{_BUILDTOOL_TOOLCHAIN})
  include("$ENV{_BUILDTOOL_TOOLCHAIN}")
else()
  set(_buildtool_answer "${CMAKE_BINARY_DIR}/buildtool/toolchain.cmake")
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/buildtool")
  file(WRITE "${CMAKE_BINARY_DIR}/buildtool/toolchain.request"
    "board ${BUILDTOOL_BOARD}\ntoolchain ${BUILDTOOL_TOOLCHAIN}\n"
    "source ${CMAKE_SOURCE_DIR}\nbinary ${CMAKE_BINARY_DIR}\n")
  execute_process(
    COMMAND "${BUILDTOOL_PYTHON}" -P "${CMAKE_CURRENT_LIST_DIR}/run.py" ask toolchain "${_buildtool_answer}"
    INPUT_FILE "${CMAKE_BINARY_DIR}/buildtool/toolchain.request"
    RESULT_VARIABLE _buildtool_result ERROR_VARIABLE _buildtool_error ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT _buildtool_result EQUAL 0)
    message(FATAL_ERROR "buildtool: the toolchain file of board '${BUILDTOOL_BOARD}':\n${_buildtool_error}")
  endif()
  set(ENV{_BUILDTOOL_TOOLCHAIN} "${_buildtool_answer}")
  include("${_buildtool_answer}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${configure_depends})
  # CMake stores the compiler and the flags when it first configures a folder, and keeps them.
  if(DEFINED CACHE{BUILDTOOL_TOOLCHAIN_DIGEST} AND NOT BUILDTOOL_TOOLCHAIN_DIGEST STREQUAL toolchain_digest)
    message(WARNING
      "buildtool: the compiler or the flags of board '${BUILDTOOL_BOARD}' have changed since this folder was "
      "configured. Configure it again, with --fresh or without its CMakeCache.txt.")
  else()
    set(BUILDTOOL_TOOLCHAIN_DIGEST "${toolchain_digest}" CACHE INTERNAL "Digest of the toolchain file's answer")
  endif()
endif()
unset(configure_depends)
