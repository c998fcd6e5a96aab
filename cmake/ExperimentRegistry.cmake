# normscope_experiment_registry(<target> <folder>): compiles every <folder>/<name>.cpp, which defines
# `const Experiment normscope::lab::<name>::experiment`, into <target>, and generates the list of them.
# A new file needs no registration.
function(normscope_experiment_registry target folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  set(declarations "")
  set(entries "")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    string(APPEND declarations "namespace ${name} {\nextern const Experiment experiment;\n}\n")
    string(APPEND entries "      &${name}::experiment,\n")
  endforeach()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/experiments.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT [=[
#include "frame/experiment.hpp"

namespace normscope::lab {

// NOLINTBEGIN(readability-redundant-declaration): a unity build has the definitions in the same file.
@declarations@
// NOLINTEND(readability-redundant-declaration)

const std::vector<const Experiment*>& all_experiments() {
  static const std::vector<const Experiment*> list{
@entries@  };
  return list;
}

const Experiment* find_experiment(std::string_view name) {
  for (const Experiment* experiment : all_experiments()) {
    if (experiment->name == name) return experiment;
  }
  return nullptr;
}

}  // namespace normscope::lab
]=])
  target_sources(${target} PRIVATE ${sources} "${generated}")
endfunction()
