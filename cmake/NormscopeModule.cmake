# normscope_modules: every module, in the order of cmake/layers.json, the only list of them.
file(READ "${PROJECT_SOURCE_DIR}/cmake/layers.json" normscope_layers)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/layers.json")
string(JSON normscope_last LENGTH "${normscope_layers}")
math(EXPR normscope_last "${normscope_last} - 1")
set(normscope_modules "")
foreach(index RANGE ${normscope_last})
  string(JSON module MEMBER "${normscope_layers}" ${index})
  list(APPEND normscope_modules ${module})
endforeach()

# normscope_unity(<target> [SKIP <regex>]): with NORMSCOPE_UNITY, compiles the target's sources as one file, which takes
# a fraction of the time since most of it is headers and templates. Files that Highway compiles once per instruction set
# stay alone, and so do those that match SKIP.
function(normscope_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SKIP" "")
  if(NOT NORMSCOPE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    if(source MATCHES "\\.cpp$" AND EXISTS "${source}")
      file(STRINGS "${source}" dispatched REGEX "hwy/foreach_target" LIMIT_COUNT 1)
      if(dispatched OR (arg_SKIP AND source MATCHES "${arg_SKIP}"))
        set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
endfunction()

# normscope_precompile(<target> <header>... | REUSE_FROM <other>): with NORMSCOPE_UNITY, compiles these headers once for
# the target, or uses those of the other target.
function(normscope_precompile target)
  if(NORMSCOPE_UNITY)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "REUSE_FROM" "")
    if(arg_REUSE_FROM)
      target_precompile_headers(${target} REUSE_FROM ${arg_REUSE_FROM})
    else()
      target_precompile_headers(${target} PRIVATE ${ARGN})
    endif()
  endif()
endfunction()

# Modules that spend their time reading files or writing text.
set(normscope_translating_modules models results)

# normscope_translates(<target>): compiles the target with NORMSCOPE_TRANSLATING_FLAGS, since it parses, describes or
# prints, and its speed does not matter.
function(normscope_translates target)
  target_compile_options(${target} PRIVATE ${NORMSCOPE_TRANSLATING_FLAGS})
endfunction()

# Modules that no page uses: WebAssembly goes without them, and without the documents and figures of their results.
set(normscope_off_page_modules "")
if(EMSCRIPTEN)
  set(normscope_off_page_modules verify rewrite signature)
endif()

# normscope_module(<name>): the library normscope::<name> from src/<name>/**.cpp and
# include/normscope/<name>/**.hpp, linked to exactly the modules cmake/layers.json lets it include.
function(normscope_module name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  if(EMSCRIPTEN)
    # zlib and GMP are not available in WebAssembly.
    list(FILTER sources EXCLUDE REGEX "/(zlib|gmp)/")
    list(JOIN normscope_off_page_modules "|" off_page)
    list(FILTER sources EXCLUDE REGEX "/src/results/(figures/)?(${off_page})\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/no_(zlib|gmp)/")
  endif()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/normscope/${name}/*.hpp")
  # Users of the library go without Eigen.
  list(FILTER headers EXCLUDE REGEX "/eigen/")
  add_library(normscope_${name} STATIC ${sources})
  add_library(normscope::${name} ALIAS normscope_${name})
  target_sources(normscope_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_compile_features(normscope_${name} PUBLIC cxx_std_20)
  target_link_libraries(normscope_${name} PRIVATE $<BUILD_INTERFACE:normscope_build_flags>)
  set_target_properties(normscope_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ${NORMSCOPE_POSITION_INDEPENDENT})
  string(JSON count LENGTH "${normscope_layers}" ${name})
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      string(JSON below GET "${normscope_layers}" ${name} ${index})
      if(NOT below IN_LIST normscope_off_page_modules)
        target_link_libraries(normscope_${name} PUBLIC normscope::${below})
      endif()
    endforeach()
  endif()
  normscope_unity(normscope_${name})
  install(TARGETS normscope_${name} EXPORT normscopeTargets FILE_SET HEADERS)
endfunction()
