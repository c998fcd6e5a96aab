#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/ranges.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/results/words.hpp>

#include "command.hpp"
#include "report_page.hpp"

namespace normscope::cli {
namespace {

struct RangesOptions {
  ModelName model;
  std::string norm;
  std::string page;
};

std::string range_of(const analysis::End& low, const analysis::End& high) {
  return fmt::format("{} to {}", at_least(low.bound, 4), at_most(high.bound, 4));
}

std::string number_or_dash(double value) { return value > 0.0 ? results::format_number(value) : "-"; }

void print_reader(const Session& session, const std::string& norm, std::size_t width,
                  const analysis::ReaderRanges& reader) {
  if (!reader.refused.empty()) {
    session.say(fmt::format("{:<{}}  {:<14}  not known: {}", norm, width, printable(reader.role),
                            printable(reader.refused)));
    return;
  }
  session.say(fmt::format("{:<{}}  {:<14} {:>7}  {:>24} {:>9} {:>9} {:>9} {:>9}", norm, width,
                          printable(reader.role), reader.rows, range_of(reader.lowest, reader.highest),
                          number_or_dash(reader.ratio()),
                          number_or_dash(analysis::int8_steps(reader.size(), reader.typical)),
                          reader.never_positive.size(), reader.never_negative.size()));
}

void print_norm(const Session& session, const analysis::NormRanges& norm, std::size_t width) {
  if (!norm.refused.empty()) {
    session.say(fmt::format("{:<{}}  not known: {}", printable(norm.name), width, printable(norm.refused)));
    return;
  }
  session.say(fmt::format("{:<{}}  {:<14} {:>7}  {:>24} {:>9} {:>9}", printable(norm.name), width,
                          "its output", "", "+-" + at_most(norm.largest, 4),
                          number_or_dash(norm.typical > 0.0 ? norm.largest / norm.typical : 0.0),
                          number_or_dash(analysis::int8_steps(norm.largest, norm.median_typical))));
  for (const analysis::ReaderRanges& reader : norm.readers) print_reader(session, "", width, reader);
}

/// Prints, for each number type, how many readers can exceed its largest number.
void say_overflows(const Session& session, const analysis::ModelRanges& found) {
  const std::size_t known = analysis::summarize(found).known;
  for (const analysis::NumberType& type : analysis::number_types) {
    if (const std::size_t readers = analysis::overflowing(found, type); readers > 0) {
      session.say(fmt::format("{}: {} of {} readers exceed its largest number, {:g}, at some input",
                              type.name, readers, known, type.largest));
    }
  }
}

/// Steps of a type with 127 from which a typical number keeps two significant digits.
constexpr double enough_steps = 10.0;

/// Prints what one int8 scale per tensor means for the outputs that feed the readers.
void say_int8(const Session& session, const analysis::ModelRanges& found) {
  const analysis::NormRanges* worst = nullptr;
  double fewest = 0.0;
  std::size_t known = 0;
  std::size_t coarse = 0;
  for (const analysis::NormRanges& norm : found.norms) {
    if (!norm.refused.empty() || !(norm.median_typical > 0.0)) continue;
    const double steps = analysis::int8_steps(norm.largest, norm.median_typical);
    ++known;
    coarse += steps < enough_steps ? 1 : 0;
    if (worst != nullptr && steps >= fewest) continue;
    worst = &norm;
    fewest = steps;
  }
  if (worst == nullptr) return;
  const std::string least = fmt::format("a typical feature of {} uses {} of 127 steps, the fewest",
                                        printable(worst->name), results::format_number(fewest));
  session.say(
      coarse == 0
          ? fmt::format("int8: one scale for each norm's output suffices: {}", least)
          : fmt::format("int8: one scale that never clips is coarse (below {:g} steps) for the outputs of "
                        "{} of {} norms: {}",
                        enough_steps, coarse, known, least));
}

/// Prints the norm whose features have the most uneven ranges, and the command that evens them out.
void say_uneven(const Session& session, const analysis::ModelRanges& found) {
  const analysis::NormRanges* const norm = analysis::summarize(found).most_uneven;
  // The rewrite moves powers of two, so a factor of up to 2 always remains.
  if (norm == nullptr || norm->unevenness() <= 2.0) return;
  session.say(
      fmt::format("features: the largest of {} reaches {} times as far as its median one; "
                  "`normscope rewrite MODEL -o OUT --fold gains` evens them out where the gain can move into "
                  "its readers, --migrate by powers of two",
                  printable(norm->name), results::format_number(norm->unevenness())));
}

void print_ranges(const Session& session, const analysis::ModelRanges& found) {
  std::size_t width = 4;
  for (const analysis::NormRanges& norm : found.norms) width = std::max(width, printable(norm.name).size());
  session.say(fmt::format("{:<{}}  {:<14} {:>7}  {:>24} {:>9} {:>9} {:>9} {:>9}", "norm", width, "reader",
                          "rows", "range over every input", "/typical", "int8", "never > 0", "never < 0"));
  for (const analysis::NormRanges& norm : found.norms) print_norm(session, norm, width);
  if (found.logits) {
    session.say("logits: " + range_of(found.logits->lowest, found.logits->highest) + " at every input");
  } else {
    session.say("logits: not known: " + printable(found.logits_refused));
  }
  session.say(
      "Reader: a linear map that reads the norm's output. /typical: largest magnitude over the root mean "
      "square for inputs in all directions alike. int8: that root mean square in steps, where 127 cover the "
      "range.");
  say_overflows(session, found);
  say_int8(session, found);
  say_uneven(session, found);
}

void expect_norm(const models::Model& model, const RangesOptions& options) {
  std::vector<std::string_view> names;
  for (const models::Norm& norm : model.norms) names.push_back(norm.name);
  if (std::find(names.begin(), names.end(), options.norm) != names.end()) return;
  const std::string_view nearest = nearest_name(options.norm, names);
  throw Error(ErrorCode::Argument,
              fmt::format("--only: {} has no norm \"{}\"{}", options.model.path, options.norm,
                          nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
}

int run_ranges(const Session& session, Inputs& inputs, Outputs& outputs, const RangesOptions& options) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(options.model.path);
  models::Model model = inputs.model_of(checkpoint, options.model.stated);
  if (model.norms.empty()) {
    throw Error(ErrorCode::Unsupported, fmt::format("{}: has no norm that is known", options.model.path));
  }
  if (!options.norm.empty()) {
    expect_norm(model, options);
    std::erase_if(model.norms, [&](const models::Norm& norm) { return norm.name != options.norm; });
  }
  const analysis::ModelRanges found =
      analysis::of_model(checkpoint, model, session.threads, session.progress());
  const auto document = results::ranges(checkpoint, model, found);
  outputs.write_text(options.page, [&] {
    return report::fill(json_text(document, 1), json_text(figures::range_charts(found)));
  });
  outputs.commit([&] { return json_text(document, 1); });
  print_ranges(session, found);
  say_notes(session, model.notes);
  say_notes(session, analysis::not_covered(model));
  return ok;
}

}  // namespace

Command ranges_command() {
  const auto options = std::make_shared<RangesOptions>();
  return {.name = "ranges",
          .text = "Prove the range of every number computed behind a norm",
          .inputs = {input("MODEL", options->model.path, "Checkpoint to analyse").required()},
          .outputs = {output("-o,--output", options->page).says("an HTML page with figures")},
          .options = joined({option("--only", options->norm)}, model_options(options->model)),
          .footer =
              "The columns:\n"
              "  reader     linear map that reads the norm's output, and its number of rows\n"
              "  range      smallest and largest value of any row, over every input of the norm\n"
              "  /typical   largest magnitude over the root mean square for evenly\n"
              "             distributed inputs\n"
              "  int8       this root mean square in steps of an int8 scale whose 127 steps\n"
              "             cover the range (for a norm's output, that of its median feature)\n"
              "  never > 0  number of rows that are never positive (dead units of a ReLU)\n"
              "  never < 0  number of rows that are never negative",
          .examples = {"normscope ranges models/kjv_gpt",
                       "normscope ranges models/kjv_gpt --only transformer.h.0.ln_2",
                       "normscope ranges models/kjv_gpt -o ranges.html"},
          .run = with(run_ranges, options)};
}

}  // namespace normscope::cli
