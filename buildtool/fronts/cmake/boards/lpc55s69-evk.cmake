# The toolchain file of the board that this file is called after.
get_filename_component(BUILDTOOL_BOARD "${CMAKE_CURRENT_LIST_FILE}" NAME_WLE)
include("${CMAKE_CURRENT_LIST_DIR}/../buildtoolBoard.cmake")
