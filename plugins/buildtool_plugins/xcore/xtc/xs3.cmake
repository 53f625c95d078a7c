# XMOS's XTC tools as CMake's compiler: xcc compiles and links, xmosar archives. CMake cannot try programs
# for another chip, so that it has to take the compiler on trust.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR xs3a)
set(CMAKE_C_COMPILER xcc)
set(CMAKE_C_COMPILER_FORCED TRUE)
set(CMAKE_C_COMPILER_ID_RUN TRUE)
set(CMAKE_AR xmosar CACHE FILEPATH "XTC's archiver")
set(CMAKE_RANLIB "")
set(CMAKE_EXECUTABLE_SUFFIX .xe)
