#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

namespace normscope::documents {

/// A report, schema "normscope.report/1" (docs/schemas/report.schema.json). A spectrum is a
/// selection of ranks, dense at the top; `whole_spectra` lists every rank. At most `audit::listed_outliers`
/// outliers of a norm are listed.
[[nodiscard]] nlohmann::ordered_json report(const audit::Report& audited, bool whole_spectra = false);

/// A checkpoint's tensors and the model found in it, schema "normscope.inspect/1"
/// (docs/schemas/inspect.schema.json).
[[nodiscard]] nlohmann::ordered_json inspection(const checkpoint::Checkpoint& checkpoint,
                                                const model::Model& model);

}  // namespace normscope::documents
