#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::results {

/// A report, schema "normscope.report/1" (docs/schemas/report.schema.json). A spectrum is a
/// selection of ranks, dense at the top; `whole_spectra` lists every rank. At most
/// `analysis::listed_outliers` outliers of a norm are listed.
[[nodiscard]] nlohmann::ordered_json report(const analysis::Report& audited, bool whole_spectra = false);

/// A checkpoint's tensors and the model found in it, schema "normscope.inspect/1"
/// (docs/schemas/inspect.schema.json).
[[nodiscard]] nlohmann::ordered_json inspection(const files::Checkpoint& checkpoint,
                                                const models::Model& model);

}  // namespace normscope::results
