# find_package(buildtool CONFIG): networks in a CMake project.
#
#   buildtool_add_network(wake_word MODEL models/wake_word.tflite BOARD cortex-m4 RAM 64K)
#   target_link_libraries(app PRIVATE wake_word)
#
# docs/guides/cmake.md describes it. -Dbuildtool_DIR=$(buildtool --cmake-dir) finds this file.
if(CMAKE_VERSION VERSION_LESS 3.20)
  message(FATAL_ERROR "buildtool needs CMake 3.20 or newer; this is ${CMAKE_VERSION}")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/buildtoolPython.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/buildtoolFunctions.cmake")
