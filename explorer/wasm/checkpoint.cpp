#include <string>

#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

/// {report, charts}, as `normscope report` makes them, of the checkpoint at `path` in the core's file system.
/// `progress(what, done, total)` hears where the work is; vocabularies beyond `most_work` are not surveyed.
val checkpoint_report(const std::string& path, double most_work, const val& progress) {
  return guarded([&] {
    const files::Checkpoint checkpoint(path, files::read_file);
    const Progress tell([&](std::string_view what, std::size_t done, std::size_t total) {
      progress(std::string(what), static_cast<double>(done), static_cast<double>(total));
      return true;
    });
    const analysis::Report report = analysis::audit(checkpoint, 1, tell, {.most_work = most_work});
    val result = val::object();
    result.set("report", json_text(results::report(report)));
    result.set("charts", json_text(figures::charts(report)));
    return result;
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(checkpoint) { emscripten::function("checkpointReport", &checkpoint_report); }

}  // namespace normscope::wasm
