// Checkpoints for Python: the command's results about a file, as JSON documents.

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/attribution.hpp>
#include <normscope/analysis/ranges.hpp>
#include <normscope/analysis/report.hpp>
#include <normscope/analysis/trace.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/heads/heads.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/rewrite/compare.hpp>
#include <normscope/rewrite/rewrite.hpp>
#include <normscope/selectability/reach.hpp>
#include <normscope/verify/verify.hpp>

#include "arguments.hpp"
#include "array.hpp"
#include "matrix_argument.hpp"
#include "model.hpp"
#include "module.hpp"
#include "report_page.hpp"
#include "results.hpp"
#include "work.hpp"

namespace normscope::python {
namespace {

/// As `run`, on files that must stay the same meanwhile.
template <typename Compute>
auto run_on(const Model& model, const nb::object& callback, const Compute& compute) {
  return run(callback, [&](const Progress& progress) {
    auto result = compute(progress);
    model.expect_unchanged();
    return result;
  });
}

std::string inspect(const Model& model) {
  model.expect_unchanged();
  return json_text(results::inspection(model.checkpoint(), model.described()));
}

/// The document, its charts and its page, which shows `activations` too: "null", or
/// an object of their document and charts.
std::tuple<std::string, std::string, std::string> model_report(const Model& model, bool deep, bool vocabulary,
                                                               double budget, const std::string& activations,
                                                               unsigned threads, const nb::object& callback) {
  selectability::VocabularyOptions options{.budget = selectability::budget_unit * budget,
                                           .skip = !vocabulary};
  if (deep) options.most_work = std::numeric_limits<double>::infinity();
  return run_on(model, callback, [&](const Progress& progress) {
    const analysis::Report found =
        analysis::audit(model.checkpoint(), model.described(), threads, progress, options);
    std::string charts = json_text(figures::charts(found));
    std::string page = report::fill(json_text(results::report(found), 1), charts, activations);
    return std::tuple(json_text(results::report(found, deep)), std::move(charts), std::move(page));
  });
}

Illustrated model_heads(const Model& model, std::size_t context, bool queries, bool certificates,
                        unsigned threads, const nb::object& callback) {
  return run_on(model, callback, [&](const Progress& progress) {
    const std::vector<heads::HeadReach> found = heads::reach_of_heads(
        model.checkpoint(), model.described(), threads, progress, {.positions = context});
    verify::Inputs inputs{.arguments = {{"model", model.checkpoint().path().string()}},
                          .stated = model.stated()};
    if (certificates) {
      inputs.arrays = verify::ModelHeads(model.checkpoint(), model.described()).arrays(threads);
    }
    return Illustrated(json_text(results::heads(
                           model.checkpoint(), model.described(), found,
                           {.queries = queries, .certificates = certificates, .inputs = std::move(inputs)})),
                       json_text(figures::head_charts(model.described(), found)));
  });
}

Illustrated model_reach(const Model& model, const std::vector<std::size_t>& tokens, std::size_t nearest,
                        double budget, double tolerance, unsigned threads, const nb::object& callback) {
  return run_on(model, callback, [&](const Progress& progress) {
    const selectability::VocabularyHead head =
        selectability::vocabulary_head(model.checkpoint(), model.described());
    const std::optional<std::filesystem::path> file =
        models::find_token_names(model.checkpoint().files().front().parent_path());
    const std::vector<std::string> names =
        file ? models::read_token_names(*file, head.logits.tokens) : std::vector<std::string>{};
    const verify::Inputs inputs{
        .arguments = {{"model", model.checkpoint().path().string()}},
        .arrays = verify::read_model_head(model.checkpoint(), model.described()).arrays(threads)};
    return reach_document(head,
                          {.source = model.checkpoint().path().string(),
                           .names = names,
                           .notes = model.described().notes,
                           .inputs = inputs},
                          {.tokens = tokens, .nearest = nearest, .budget = budget, .tolerance = tolerance},
                          threads, progress);
  });
}

Illustrated model_geometry(const Model& model, const std::string& name, std::size_t axes, bool null_space,
                           unsigned threads, const nb::object& callback) {
  return run_on(model, callback, [&](const Progress& progress) {
    const models::Norm& norm = model.norm(name);
    return geometry_document(models::read_norm(model.checkpoint(), norm), norm.gain.has_value(), axes,
                             null_space, threads, progress);
  });
}

nb::object or_none(const std::vector<double>& values) {
  return values.empty() ? nb::object(nb::none()) : array_of(values);
}

/// The fields of the class `Norm` of Python, gain and bias as float64 arrays or None.
nb::tuple fields_of(const NormSpec& spec) {
  return nb::make_tuple(spec.width, std::string(to_string(spec.kind)), spec.groups, spec.eps,
                        or_none(spec.gain), or_none(spec.bias), spec.alpha, spec.shift);
}

nb::tuple norm_parameters(const Model& model, const std::string& name) {
  const NormSpec spec = models::read_norm(model.checkpoint(), model.norm(name));
  model.expect_unchanged();
  return fields_of(spec);
}

/// (norm, unembedding, bias or None, scale, soft cap).
nb::tuple model_head(const Model& model) {
  const verify::ModelHead head = verify::read_model_head(model.checkpoint(), model.described());
  model.expect_unchanged();
  const nb::object rows = array_of(head.unembedding).attr("reshape")(head.tokens, head.norm.width);
  return nb::make_tuple(fields_of(head.norm), rows, or_none(head.bias), head.scale, head.soft_cap);
}

nb::object tensor(const Model& model, const std::string& name) {
  const files::Tensor& found = model.tensor(name);
  std::vector<double> values;
  {
    const nb::gil_scoped_release others_may_run;
    values = files::read(found);
    model.expect_unchanged();
  }
  nb::list shape;
  for (const std::uint64_t size : found.shape) shape.append(size);
  return nb::object(array_of(values).attr("reshape")(nb::tuple(shape)));
}

Illustrated model_ranges(const Model& model, unsigned threads, const nb::object& callback) {
  return run_on(model, callback, [&](const Progress& progress) {
    const analysis::ModelRanges found =
        analysis::of_model(model.checkpoint(), model.described(), threads, progress);
    return Illustrated(json_text(results::ranges(model.checkpoint(), model.described(), found)),
                       json_text(figures::range_charts(found)));
  });
}

/// Tokens and their names.
struct Context {
  std::vector<std::size_t> tokens{};
  std::vector<std::string> names{};
  std::optional<forward::Tokenizer> tokenizer{};
};

/// The context that a text is, or the tokens themselves if there are any; `who` begins the message.
Context context_of(const char* who, const Model& model, const std::string& text,
                   std::vector<std::size_t> tokens) {
  const std::size_t vocabulary = forward::Decoder(model.checkpoint(), model.described()).vocabulary();
  const std::optional<std::filesystem::path> file =
      models::find_token_names(model.checkpoint().files().front().parent_path());
  Context context{.tokens = std::move(tokens)};
  if (!context.tokens.empty()) {
    if (file) context.names = models::token_texts(models::read_token_names(*file, vocabulary));
  } else if (file) {
    context.tokenizer.emplace(*file, vocabulary);
    context.tokens = context.tokenizer->encode(text);
    context.names = models::token_texts(context.tokenizer->names());
  } else {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: the model has no tokenizer beside it; give tokens", who));
  }
  return context;
}

Illustrated model_trace(const Model& model, const std::string& text, std::vector<std::size_t> tokens,
                        double budget, unsigned threads, const nb::object& callback) {
  return run_on(model, callback, [&](const Progress& progress) {
    const Context context = context_of("trace", model, text, std::move(tokens));
    const analysis::TokenTrace found =
        analysis::trace(model.checkpoint(), model.described(), context.tokens,
                        {.budget = selectability::budget_unit * budget, .threads = threads}, progress);
    return Illustrated(json_text(results::token_trace(model.checkpoint(), found, context.names)),
                       json_text(figures::token_trace_charts(found, context.names)));
  });
}

/// `removal` is "zero" or "mean", or replacements are given; texts are empty and lists too where there are
/// none.
Illustrated model_attribute(const Model& model, const std::string& text, std::vector<std::size_t> tokens,
                            const std::string& target, const std::string& against, const nb::object& at,
                            const std::string& removal, const nb::object& components,
                            const nb::object& replacements, const std::vector<std::string>& kept,
                            std::size_t most_removed, double budget, bool anywhere, bool proofs,
                            unsigned threads, const nb::object& callback) {
  std::optional<Matrix> rows, given;
  if (!components.is_none()) rows.emplace(matrix_of("attribute", "components", components));
  if (!replacements.is_none()) given.emplace(matrix_of("attribute", "replace_with", replacements));
  analysis::AttributeOptions options{
      .budget = selectability::budget_unit * budget, .kept = kept, .anywhere = anywhere, .threads = threads};
  if (!at.is_none()) options.at = integer("attribute", "at", at, 0);
  options.removal = given               ? analysis::Removal::given
                    : removal == "mean" ? analysis::Removal::mean
                                        : analysis::Removal::zero;
  options.subsets.most_removed = most_removed;
  if (rows) {
    options.components = rows->view();
    // Whatever holds them now, rows of live models were computed in float32.
    options.tolerance = analysis::sum_tolerance(Dtype::F32);
  }
  if (given) options.replacements = given->view();
  return run_on(model, callback, [&](const Progress& progress) {
    const Context context = context_of("attribute", model, text, std::move(tokens));
    const auto token_of = [&](const std::string& name) {
      return forward::find_token(name, context.names, context.tokenizer ? &*context.tokenizer : nullptr);
    };
    options.target = token_of(target);
    if (!against.empty()) options.against = token_of(against);
    const analysis::Attribution found =
        analysis::attribute(model.checkpoint(), model.described(), context.tokens, options, progress);
    const verify::Inputs inputs{.arguments = {{"model", model.checkpoint().path().string()}},
                                .stated = model.stated()};
    return Illustrated(json_text(results::attribution(inputs, found, context.names, proofs)),
                       json_text(figures::attribution_charts(found, context.names)));
  });
}

std::string rewrite_model(const Model& model, const std::string& output, bool fold, bool migrate, bool center,
                          bool untie, const nb::object& rotation_seed, unsigned threads,
                          const nb::object& callback) {
  std::optional<rewrite::RotationRequest> rotation;
  if (!rotation_seed.is_none()) rotation.emplace().seed = integer("rewrite", "rotate", rotation_seed, 0);
  return run(callback, [&](const Progress& progress) {
    const files::Checkpoint& checkpoint = model.checkpoint();
    const rewrite::Plan plan = rewrite::make_plan(
        checkpoint, model.described(),
        {.fold_gains = fold, .migrate = migrate, .center = center, .untie = untie, .rotation = rotation});
    const auto document = [&](const rewrite::Result* result) {
      return json_text(results::rewrite(checkpoint, model.described(), plan, result), 1);
    };
    if (output.empty()) return document(nullptr);
    std::string text;
    static_cast<void>(
        rewrite::write(checkpoint, model.described(), plan, output, threads, progress,
                       [&](const rewrite::Result& written) { return (text = document(&written)) + "\n"; }));
    return text;
  });
}

std::string undo(const Model& rewritten, const std::string& output, unsigned threads,
                 const nb::object& callback) {
  return run(callback, [&](const Progress& progress) {
    const rewrite::Restoration restored = rewrite::undo(rewritten.checkpoint(), output, threads, progress);
    return json_text(results::undone(rewritten.checkpoint(), restored), 1);
  });
}

Illustrated compare(const Model& before, const Model& after, const nb::object& callback) {
  return run_on(before, callback, [&](const Progress& progress) {
    const rewrite::Comparison found = rewrite::compare(before.checkpoint(), before.described(),
                                                       after.checkpoint(), after.described(), progress);
    after.expect_unchanged();
    return Illustrated(json_text(results::comparison(before.checkpoint(), after.checkpoint(), found)),
                       json_text(figures::comparison_charts(found)));
  });
}

std::string verify_model(const Model& model, const std::string& result_text, unsigned threads,
                         const nb::object& callback) {
  return run_on(model, callback, [&](const Progress& progress) {
    const verify::Result result(result_text, "result");
    const verify::VerifyOptions options{.threads = threads, .progress = progress};
    const std::string who = model.checkpoint().path().string();
    if (result.kind() == "heads") {
      const verify::ModelHeads found(model.checkpoint(), model.described());
      result.expect_arrays(found.arrays(threads), who);
      return verification_document(result, verify::verify_heads(result, found, options));
    }
    if (result.kind() != "reach") {
      throw Error(
          ErrorCode::Argument,
          fmt::format("verify: a result of {} names no model, expected heads or reach", result.kind()));
    }
    verify::ModelHead head = verify::read_model_head(model.checkpoint(), model.described());
    head.read_names(model.checkpoint());
    result.expect_arrays(head.arrays(threads), who);
    return verification_document(result, verify::verify_reach(result, head.head(), nullptr, options));
  });
}

}  // namespace

void define_model(nb::module_& module) {
  nb::class_<Model>(module, "Model")
      .def(
          "__init__",
          [](Model* at, const std::string& path, const std::string& architecture, std::uint64_t heads) {
            on_unchanged_files([&] { return new (at) Model(path, {architecture, heads}); });
          },
          nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("path", [](const Model& model) { return model.checkpoint().path().string(); })
      .def_prop_ro("format", [](const Model& model) { return std::string(model.checkpoint().format()); });
  define(module, "inspect", &inspect);
  define(module, "model_report", &model_report);
  define(module, "model_heads", &model_heads);
  define(module, "model_reach", &model_reach);
  define(module, "model_geometry", &model_geometry);
  define(module, "norm_parameters", &norm_parameters);
  define(module, "model_head", &model_head);
  define(module, "tensor", &tensor);
  define(module, "model_ranges", &model_ranges);
  define(module, "model_trace", &model_trace);
  define(module, "model_attribute", &model_attribute);
  define(module, "rewrite", &rewrite_model);
  define(module, "undo", &undo);
  define(module, "compare", &compare);
  define(module, "verify_model", &verify_model);
}

}  // namespace normscope::python
