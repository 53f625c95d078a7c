# What the kernels and networks need of any compiler.
set(nn_options "$<$<COMPILE_LANGUAGE:C>:{{ common.exact | join(";") }}>")
set(nn_definitions {{ (common.defines + ["NN_WEIGHTS_SECTION=" ~ weights_section if system != "plain"] | select | list) | map("quoted") | join(" ") }})

add_library(nn_kernels STATIC
  {{ kernels | join("\n  ") }})
target_include_directories(nn_kernels PUBLIC
  {{ include_kernels | map("here") | join("\n  ") }})
target_compile_options(nn_kernels PRIVATE ${nn_options})
target_compile_definitions(nn_kernels PRIVATE ${nn_definitions})
{% for net, network in networks.items() %}

add_library({{ net | library }} STATIC
  {{ network.sources | join("\n  ") }})
if(NN_WEIGHTS_IN_C)
  target_sources({{ net | library }} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/{{ network.array }})
  target_compile_definitions({{ net | library }} PRIVATE NN_WEIGHTS_IN_C)
else()
  target_sources({{ net | library }} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/{{ network.assembly }})
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/{{ network.assembly }} PROPERTIES
    OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/{{ network.weights }})
endif()
target_include_directories({{ net | library }} PUBLIC
  {{ network.include | map("here") | join("\n  ") }})
target_compile_options({{ net | library }} PRIVATE ${nn_options})
target_compile_definitions({{ net | library }} PRIVATE ${nn_definitions})
target_link_libraries({{ net | library }} PRIVATE nn_kernels)
{% endfor %}
