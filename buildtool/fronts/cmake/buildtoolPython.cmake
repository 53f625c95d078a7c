# BUILDTOOL_PYTHON: the interpreter of this installation. `buildtool --cmake-dir` prints a folder that names it.
if(NOT BUILDTOOL_PYTHON AND CMAKE_CURRENT_LIST_DIR
    MATCHES "^(.*)/lib[^/]*/(python[0-9.]+)/site-packages/buildtool/fronts/cmake$")
  set(BUILDTOOL_PYTHON "${CMAKE_MATCH_1}/bin/${CMAKE_MATCH_2}")
endif()
if(NOT BUILDTOOL_PYTHON)
  message(FATAL_ERROR
    "buildtool: this folder does not name its Python: ${CMAKE_CURRENT_LIST_DIR}\n"
    "Use the folder that 'buildtool --cmake-dir' prints, or name the interpreter: -DBUILDTOOL_PYTHON=/path/to/python")
endif()
if(NOT EXISTS "${BUILDTOOL_PYTHON}")
  message(FATAL_ERROR
    "buildtool: its Python no longer exists: ${BUILDTOOL_PYTHON}\n"
    "Configure again with -Dbuildtool_DIR=$(buildtool --cmake-dir)")
endif()
