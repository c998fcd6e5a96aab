# normscope_module(<name>): the library normscope::<name> from src/<name>/**.cpp and
# include/normscope/<name>/*.hpp, linked to exactly the modules cmake/layers.json lets it include.
function(normscope_module name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  if(EMSCRIPTEN)
    # There is no zlib and no GMP for the page.
    list(FILTER sources EXCLUDE REGEX "/(zlib|gmp)/")
  else()
    list(FILTER sources EXCLUDE REGEX "/no_(zlib|gmp)/")
  endif()
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/normscope/${name}/*.hpp")
  add_library(normscope_${name} STATIC ${sources})
  add_library(normscope::${name} ALIAS normscope_${name})
  target_sources(normscope_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_compile_features(normscope_${name} PUBLIC cxx_std_20)
  target_link_libraries(normscope_${name} PRIVATE $<BUILD_INTERFACE:normscope_build_flags>)
  set_target_properties(normscope_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ${NORMSCOPE_POSITION_INDEPENDENT}
    VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
  file(READ "${PROJECT_SOURCE_DIR}/cmake/layers.json" layers)
  string(JSON count LENGTH "${layers}" ${name})
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      string(JSON below GET "${layers}" ${name} ${index})
      target_link_libraries(normscope_${name} PUBLIC normscope::${below})
    endforeach()
  endif()
  install(TARGETS normscope_${name} EXPORT normscopeTargets FILE_SET HEADERS)
endfunction()
