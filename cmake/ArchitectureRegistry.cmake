# normscope_architecture_registry(<target> <function> <folder>): compiles every <folder>/<name>.cpp,
# which defines `const Architecture normscope::models::architectures::<name>`, into <target>, and
# generates `normscope::models::<function>()`, the list of them. A new file needs no registration.
function(normscope_architecture_registry target function folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  set(declarations "")
  set(entries "")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    string(APPEND declarations "extern const Architecture ${name};\n")
    string(APPEND entries "      &architectures::${name},\n")
  endforeach()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT [=[
#include <vector>

#include "architecture.hpp"

namespace normscope::models {

// NOLINTBEGIN(readability-redundant-declaration): a unity build has the definitions in the same file.
namespace architectures {
@declarations@}  // namespace architectures
// NOLINTEND(readability-redundant-declaration)

std::vector<const Architecture*> @function@() {
  return {
@entries@  };
}

}  // namespace normscope::models
]=])
  target_sources(${target} PRIVATE ${sources} "${generated}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src/models")
endfunction()
