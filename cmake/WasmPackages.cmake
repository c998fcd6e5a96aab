# Before any target, which takes the flags of its folder.
add_compile_options(-msimd128 -fwasm-exceptions)
add_link_options(-fwasm-exceptions)

# The header-only packages for WebAssembly, taken from the host's folder of headers without putting that folder on
# the search path, which would bring in the host's C library.
set(packages "${PROJECT_BINARY_DIR}/packages/include")
set(host_headers "/usr/include" CACHE PATH "Where the host's packages have their headers")
file(MAKE_DIRECTORY "${packages}")
foreach(package Eigen:eigen3/Eigen fmt:fmt hwy:hwy nlohmann:nlohmann)
  string(REPLACE ":" ";" package "${package}")
  list(GET package 0 name)
  list(GET package 1 folder)
  if(NOT IS_DIRECTORY "${host_headers}/${folder}")
    message(FATAL_ERROR "explorer: ${host_headers}/${folder} is not there; scripts/setup explorer installs it")
  endif()
  file(CREATE_LINK "${host_headers}/${folder}" "${packages}/${name}" SYMBOLIC)
endforeach()

function(header_package target)
  add_library(${target} INTERFACE IMPORTED)
  target_include_directories(${target} SYSTEM INTERFACE "${packages}")
endfunction()
foreach(target Eigen3::Eigen fmt::fmt hwy::hwy nlohmann_json::nlohmann_json)
  header_package(${target})
endforeach()
# Where it can, fmt is compiled once; as headers alone it takes up to three seconds in each of seventy files.
file(STRINGS "${packages}/fmt/core.h" fmt_version REGEX "define FMT_VERSION 9[0-9][0-9][0-9][0-9]$")
if(fmt_version)
  add_library(normscope_wasm_fmt STATIC "${PROJECT_SOURCE_DIR}/explorer/wasm/packages/fmt.cpp")
  target_compile_features(normscope_wasm_fmt PRIVATE cxx_std_20)
  target_include_directories(normscope_wasm_fmt SYSTEM PRIVATE "${packages}")
  target_link_libraries(fmt::fmt INTERFACE normscope_wasm_fmt)
else()
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
endif()
# Eigen's output operators and assertions would only make the page larger.
target_compile_definitions(Eigen3::Eigen INTERFACE EIGEN_NO_IO)
add_library(Threads::Threads INTERFACE IMPORTED)

set(NORMSCOPE_POSITION_INDEPENDENT OFF)
