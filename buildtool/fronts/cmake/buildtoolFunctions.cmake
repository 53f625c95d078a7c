# The functions of the package. They know how CMake builds. run.py tells them what to build.
#
#   buildtool_add_network(NAME MODEL file BOARD board [OPTION value]... [DEPENDS file-or-target...])
#   buildtool_add_firmware(TARGET NETWORK NAME [FORMAT format...] [SIGN key] [IMAGE_VERSION version])
#   buildtool_add_startup(TARGET [BOARD board])
cmake_policy(VERSION 3.20...3.31)

set_property(GLOBAL PROPERTY BUILDTOOL_PYTHON "${BUILDTOOL_PYTHON}")
set_property(GLOBAL PROPERTY BUILDTOOL_PACKAGE "${CMAKE_CURRENT_LIST_DIR}")
get_property(_buildtool_pools GLOBAL PROPERTY JOB_POOLS)
if(NOT "${_buildtool_pools}" MATCHES "buildtool=") # one search for a plan at a time, as each may use all cores
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS buildtool=1)
endif()
unset(_buildtool_pools)

set(BUILDTOOL_OPTIMIZE "$<$<CONFIG:Debug>:-Og>;$<$<CONFIG:Debug>:-g>;$<$<NOT:$<CONFIG:Debug>>:-O3>"
  CACHE STRING "How the code of networks and kernels is optimised; the last flags of their files")
option(BUILDTOOL_HASH_INPUTS "Reads every file at each build, whatever its time: for releases" OFF)
set(BUILDTOOL_CACHE_URL "" CACHE STRING "A cache that several machines share: http://HOST/PATH or redis://HOST")
set(BUILDTOOL_CACHE_MODE "" CACHE STRING "How the shared cache is used: read or write")

# NAME is a library target, and the prefix of the network's C interface.
function(buildtool_add_network name)
  if(TARGET "${name}")
    message(FATAL_ERROR "buildtool_add_network(${name}): there is already a target with this name")
  endif()
  _buildtool_arguments(1)
  get_filename_component(emitted "buildtool/${name}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  set(request "name ${name}\nemitted ${emitted}\n${request}")
  _buildtool_ask(network "buildtool_add_network(${name})" "${name}" "${request}")
  include("${answer}")
  if(note)
    message(STATUS "buildtool_add_network(${name}): ${note}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${configure_depends})

  # Ninja and Make compare times, but a changed link or an archive may set them back. So content decides here.
  add_custom_target(${name}_inputs
    COMMAND ${command} check "${emitted}.check"
    BYPRODUCTS "${emitted}.inputs" "${emitted}.compiler"
    COMMENT "Checking the inputs of ${name}"
    VERBATIM)
  # Only the stamps are new every time. Of the sources, only the changed ones are written. An error while planning
  # fails the second rule, so that the kernels, which wait for the first one, go on without this network (planning.py).
  set(stamp "${emitted}.stamp")
  set(files ${emitted_files})
  set(sources)
  if(CMAKE_GENERATOR MATCHES "Ninja") # of a rule that fails it prints all files, so the sources have a rule of their own
    add_custom_command(
      OUTPUT ${emitted_files} COMMAND "${CMAKE_COMMAND}" -E true DEPENDS "${stamp}"
      COMMENT "Sources of network ${name}" VERBATIM)
    set(files) # in the target NAME_emit: in NAME alone the list of kernels would wait for the kernels
    set(sources ${emitted_files})
  endif()
  add_custom_command(
    OUTPUT "${emitted}.planned"
    BYPRODUCTS ${kernels_called} ${files}
    COMMAND ${command} plan "${emitted}" "${kernels_called}"
    DEPENDS ${emit_depends} "${emitted}.inputs"
    JOB_POOL buildtool
    COMMENT "Planning network ${name}"
    VERBATIM)
  add_custom_command(
    OUTPUT "${stamp}" COMMAND ${command} confirm "${emitted}" DEPENDS "${emitted}.planned"
    COMMENT "Plan of network ${name}" VERBATIM)
  add_custom_target(${name}_plan DEPENDS "${emitted}.planned")
  add_dependencies(${name}_plan ${name}_inputs)
  add_custom_target(${name}_emit DEPENDS "${stamp}" ${sources})
  add_dependencies(${name}_emit ${name}_plan)

  add_library(${name} STATIC ${network_sources})
  add_dependencies(${name} ${name}_emit)
  _buildtool_compiled(${name})
  _buildtool_checked(${name} ${name} "${emitted}")
  _buildtool_kernels()
  target_include_directories(${name} PUBLIC ${network_includes})
  target_compile_definitions(${name} PUBLIC ${defines})
  target_link_libraries(${name} PUBLIC ${kernels})
  set_target_properties(${name} PROPERTIES
    BUILDTOOL_REQUEST "${request}" BUILDTOOL_EMITTED "${emitted}")
endfunction()

# TARGET is the test firmware of a network. The targets NETWORK_run, NETWORK_validate and NETWORK_profile run it.
function(buildtool_add_firmware name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NETWORK;SIGN;IMAGE_VERSION" "FORMAT")
  if(DEFINED arg_UNPARSED_ARGUMENTS OR NOT arg_NETWORK)
    message(FATAL_ERROR "buildtool_add_firmware(${name}): the keywords are NETWORK, with the name of a network, "
      "FORMAT, SIGN and IMAGE_VERSION")
  endif()
  if(NOT TARGET "${arg_NETWORK}")
    message(FATAL_ERROR "buildtool_add_firmware(${name}): there is no network '${arg_NETWORK}' before this line")
  endif()
  get_target_property(request ${arg_NETWORK} BUILDTOOL_REQUEST)
  get_target_property(emitted ${arg_NETWORK} BUILDTOOL_EMITTED)
  if(NOT request)
    message(FATAL_ERROR "buildtool_add_firmware(${name}): '${arg_NETWORK}' is not a target of buildtool_add_network")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/buildtool/${name}")
  set(out "${folder}")
  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(several)
    set(out "${folder}/$<CONFIG>")
  endif()
  foreach(format IN LISTS arg_FORMAT)
    string(APPEND request "format ${format}\n")
  endforeach()
  if(DEFINED arg_SIGN)
    get_filename_component(arg_SIGN "${arg_SIGN}" ABSOLUTE)
    string(APPEND request "sign ${arg_SIGN}\n")
  endif()
  if(DEFINED arg_IMAGE_VERSION)
    string(APPEND request "image_version ${arg_IMAGE_VERSION}\n")
  endif()
  _buildtool_ask(firmware "buildtool_add_firmware(${name})" "${name}" "folder ${folder}\n${request}")
  include("${answer}")

  _buildtool_sources()
  add_executable(${name} "${folder}/sources.c")
  target_link_options(${name} PRIVATE "@${folder}.$<CONFIG>.objects")
  set_target_properties(${name} PROPERTIES C_COMPILER_LAUNCHER "${launcher}"
    OUTPUT_NAME "${image_name}" SUFFIX .elf RUNTIME_OUTPUT_DIRECTORY "${out}")
  _buildtool_linked(${name} PRIVATE)
  target_link_libraries(${name} PRIVATE ${arg_NETWORK} ${image_libraries})
  add_dependencies(${name} ${arg_NETWORK}_emit)
  _buildtool_checked(${name} ${arg_NETWORK} "${emitted}")

  list(TRANSFORM image_binaries PREPEND "${out}/")
  add_custom_command(
    OUTPUT ${image_binaries} COMMAND ${command} ${sizes_words} DEPENDS ${name} ${arg_SIGN}
    COMMENT "Sizes of ${name}" VERBATIM)
  add_custom_target(${name}_sizes ALL DEPENDS ${image_binaries})
  foreach(target run profile)
    add_custom_target(${arg_NETWORK}_${target}
      COMMAND ${command} ${profile_words} DEPENDS ${name} USES_TERMINAL VERBATIM
      COMMENT "Running ${name}")
  endforeach()
  add_custom_target(${arg_NETWORK}_debug
    COMMAND ${command} ${debug_words} DEPENDS ${name} USES_TERMINAL VERBATIM
    COMMENT "Waiting for a debugger of ${name}")
  add_custom_target(${arg_NETWORK}_flash
    COMMAND ${command} ${flash_words} DEPENDS ${name} USES_TERMINAL VERBATIM
    COMMENT "Flashing ${name}")
  add_custom_target(${arg_NETWORK}_validate
    COMMAND ${command} ${validate_words} DEPENDS ${name} USES_TERMINAL VERBATIM
    COMMENT "Comparing ${name} with the reference")
  add_test(NAME ${arg_NETWORK}_validate COMMAND ${command} ${validate_words})
endfunction()

# TARGET is a board's start-up code and linker script, for programs without their own.
function(buildtool_add_startup name)
  _buildtool_arguments(1)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/buildtool/${name}")
  _buildtool_ask(startup "buildtool_add_startup(${name})" "${name}" "folder ${folder}\n${request}")
  include("${answer}")
  if(image_sources)
    add_library(${name} OBJECT ${image_sources})
    _buildtool_linked(${name} INTERFACE)
  else() # this machine has its own
    add_library(${name} INTERFACE)
  endif()
  target_include_directories(${name} INTERFACE ${image_includes})
  target_link_libraries(${name} INTERFACE ${image_libraries})
endfunction()

# ---- parts -------------------------------------------------------------------------------------------------

# Sets `request` to the calling function's arguments from number `first` on, one per line, and to the compiler's
# settings in its folder. It is a macro, since it reads the function's own ARGV0, ARGV1, ...
macro(_buildtool_arguments first)
  set(request "source ${CMAKE_CURRENT_SOURCE_DIR}\nbinary ${CMAKE_CURRENT_BINARY_DIR}\n")
  get_property(package GLOBAL PROPERTY BUILDTOOL_PACKAGE)
  string(APPEND request
    "package ${package}\nboard ${BUILDTOOL_BOARD}\n"
    "compiler ${CMAKE_C_COMPILER}\ncompiler_id ${CMAKE_C_COMPILER_ID}\narg1 ${CMAKE_C_COMPILER_ARG1}\n"
    "target ${CMAKE_C_COMPILER_TARGET}\nflags ${CMAKE_C_FLAGS}\nsystem ${CMAKE_SYSTEM_NAME}\n")
  if(CMAKE_CROSSCOMPILING)
    string(APPEND request "crosscompiling 1\n")
  endif()
  if(BUILDTOOL_HASH_INPUTS)
    string(APPEND request "hash_inputs 1\n")
  endif()
  if(BUILDTOOL_CACHE_URL)
    string(APPEND request "cache_url ${BUILDTOOL_CACHE_URL}\n")
  endif()
  if(BUILDTOOL_CACHE_MODE)
    string(APPEND request "cache_mode ${BUILDTOOL_CACHE_MODE}\n")
  endif()
  get_property(options DIRECTORY PROPERTY COMPILE_OPTIONS)
  foreach(option IN LISTS options)
    string(APPEND request "option ${option}\n")
  endforeach()
  set(i ${first})
  while(i LESS ARGC)
    set(value "${ARGV${i}}")
    if(value MATCHES "[\r\n]")
      message(FATAL_ERROR "buildtool: a line break in an argument of ${CMAKE_CURRENT_FUNCTION}(${ARGV0})")
    endif()
    string(APPEND request "argument ${value}\n")
    foreach(folder "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}")
      if(NOT value MATCHES "[;<>]" AND NOT value STREQUAL "")
        get_filename_component(path "${value}" ABSOLUTE BASE_DIR "${folder}")
        get_source_file_property(made "${path}" GENERATED)
        if(made)
          string(APPEND request "generated ${path}\n")
        endif()
      endif()
    endforeach()
    math(EXPR i "${i} + 1")
  endwhile()
endmacro()

# Asks run.py. Sets for the caller `answer`, a file to include, and `command`, the first words of a call of buildtool.
function(_buildtool_ask what where name request)
  if(NOT CMAKE_C_COMPILER)
    message(FATAL_ERROR "${where}: the language C is not enabled: project(... C)")
  endif()
  get_property(python GLOBAL PROPERTY BUILDTOOL_PYTHON)
  get_property(package GLOBAL PROPERTY BUILDTOOL_PACKAGE)
  set(command "${python}" -P "${package}/run.py")
  set(file "${CMAKE_CURRENT_BINARY_DIR}/buildtool/${name}.${what}")
  file(WRITE "${file}.request" "${request}")
  execute_process(
    COMMAND ${command} ask ${what} "${file}.cmake"
    INPUT_FILE "${file}.request"
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
    RESULT_VARIABLE result ERROR_VARIABLE error ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${where}: ${error}")
  endif()
  if(error)
    message(STATUS "${where}: ${error}")
  endif()
  set(answer "${file}.cmake" PARENT_SCOPE)
  set(command "${command}" PARENT_SCOPE)
endfunction()

# The board's kernels as a library that all its networks share: an archive, so that a program links only what it calls.
# Its launcher compiles the kernels that networks call, when all networks are planned.
macro(_buildtool_kernels)
  if(TARGET ${kernels})
    get_target_property(key ${kernels} BUILDTOOL_KEY)
    if(NOT key STREQUAL kernels_key)
      string(APPEND kernels "_${kernels_key}")
    endif()
  endif()
  if(NOT TARGET ${kernels})
    get_filename_component(folder "buildtool/${kernels}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
    set(lists "$<TARGET_PROPERTY:${kernels},BUILDTOOL_CALLED>")
    file(GENERATE OUTPUT "${folder}.networks" CONTENT "$<JOIN:${lists},\n>\n")
    add_custom_command(
      OUTPUT "${folder}.stamp"
      BYPRODUCTS "${folder}.called"
      COMMAND ${command} called "${emitted}.kernels" "${folder}.networks" "${folder}"
      DEPENDS "${emitted}.kernels" "${folder}.networks" "${lists}"
      COMMENT "Choosing the kernels that networks call"
      VERBATIM)
    add_custom_target(${kernels}_called DEPENDS "${folder}.stamp")
    _buildtool_sources()
    add_library(${kernels} STATIC EXCLUDE_FROM_ALL "${folder}/sources.c")
    add_dependencies(${kernels} ${kernels}_called)
    set_target_properties(${kernels} PROPERTIES BUILDTOOL_KEY "${kernels_key}" C_COMPILER_LAUNCHER "${launcher}")
    target_include_directories(${kernels} PUBLIC ${kernels_includes})
    target_compile_definitions(${kernels} PUBLIC ${defines})
    _buildtool_compiled(${kernels})
    _buildtool_checked(${kernels} ${name} "${emitted}")
    _buildtool_archived(${kernels} "${folder}.$<CONFIG>.objects")
  endif()
  add_dependencies(${kernels}_called ${name}_plan)
  set_property(TARGET ${kernels} APPEND PROPERTY BUILDTOOL_CALLED "${kernels_called}")
endmacro()

# Makes FOLDER/sources.c, the one source of a target. Its `launcher` compiles the sources in FOLDER.called (called_kernels.py).
macro(_buildtool_sources)
  file(CONFIGURE OUTPUT "${folder}/sources.c" CONTENT "typedef int nn_sources; /* FOLDER.called names them */\n")
  set_source_files_properties("${folder}/sources.c" PROPERTIES
    OBJECT_DEPENDS "${folder}.called" COMPILE_DEFINITIONS "BUILDTOOL_CONFIG=$<CONFIG>")
  set(launcher ${command} compile "${folder}" "${emitted}.compiler" ${CMAKE_C_COMPILER_LAUNCHER})
endmacro()

# Adds the objects that the file `list` names to the archive `target`.
macro(_buildtool_archived target list)
  if(CMAKE_HOST_APPLE) # its archiver reads no such file
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND sh -c "xargs \"$1\" qs \"$2\" <\"$3\"" sh "${CMAKE_AR}" "$<TARGET_FILE:${target}>" "${list}" VERBATIM)
  else()
    set_property(TARGET ${target} APPEND PROPERTY STATIC_LIBRARY_OPTIONS "@${list}")
  endif()
endmacro()

# Compiles and links `target` again when the compiler changes, which the check of `network` finds.
function(_buildtool_checked target network emitted)
  add_dependencies(${target} ${network}_inputs)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${emitted}.compiler")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${emitted}.compiler")
endfunction()

# The flags of buildtool's own code: the project's flags, and those that every compiler needs for the reference's
# bytes. A project's warnings are for its own code.
macro(_buildtool_compiled target)
  target_compile_features(${target} PRIVATE c_std_99)
  target_compile_options(${target} PRIVATE -w ${exact} ${BUILDTOOL_OPTIMIZE})
  set_target_properties(${target} PROPERTIES
    C_EXTENSIONS ON UNITY_BUILD OFF C_CLANG_TIDY "" C_CPPCHECK "" C_CPPLINT "" C_INCLUDE_WHAT_YOU_USE "")
endmacro()

# Start-up code or test firmware, compiled for the board. `scope` is the scope of the linker's flags.
macro(_buildtool_linked target scope)
  _buildtool_compiled(${target})
  target_compile_options(${target} BEFORE PRIVATE ${image_flags})
  target_include_directories(${target} PRIVATE ${image_includes})
  if(script)
    file(CONFIGURE OUTPUT "${script}" CONTENT "${script_text}" @ONLY)
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_DEPENDS "${script}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
  endif()
  if("${scope}" STREQUAL "PRIVATE")
    target_link_options(${target} PRIVATE ${image_flags})
  endif()
  target_link_options(${target} ${scope} ${image_ldflags})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${configure_depends})
endmacro()
