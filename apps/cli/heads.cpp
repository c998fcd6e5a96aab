#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <normscope/audit/heads.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>
#include <normscope/model/model.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

struct Options {
  std::string model;
  bool queries = false;
};

/// The least and the largest spread in a column each: as bounds from outside where they are no more, and "0"
/// for a least one that cannot be told from none beside the largest.
std::string columns(const selectability::Spread& uniform, const selectability::Spread& sharp, bool narrow,
                    int width) {
  const bool none = uniform.lower == 0.0 && uniform.upper <= 1e-8 * sharp.lower;
  const std::string least = !narrow ? fmt::format(">={:.4g}", uniform.lower)
                            : none  ? "0"
                                    : fmt::format("{:.4g}", uniform.upper);
  const std::string most = narrow ? fmt::format("{:.4g}", sharp.lower) : fmt::format("<={:.4g}", sharp.upper);
  return fmt::format("{:>{}} {:>{}}", least, width, most, width);
}

void print(const Session& session, const model::Model& model, const std::vector<audit::HeadReach>& heads) {
  const bool projects = std::any_of(heads.begin(), heads.end(), [](const audit::HeadReach& reach) {
    return reach.attention && reach.attention->uniform_without_projection;
  });
  session.say(fmt::format("{:>5} {:>4}  {:>12} {:>12}{}", "layer", "head", "most uniform", "sharpest",
                          projects ? "   without projection" : ""));
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const std::string place = fmt::format("{:>5} {:>4}", model.heads[i].layer, model.heads[i].head);
    if (!heads[i].attention) {
      session.say(fmt::format("{}  not known: {}", place, heads[i].refused));
      continue;
    }
    const selectability::Attention& attention = *heads[i].attention;
    const bool narrow = attention.narrow();
    std::string line = place + "  " + columns(attention.most_uniform, attention.sharpest, narrow, 12);
    if (attention.uniform_without_projection) {
      line += "   " + columns(*attention.uniform_without_projection, *attention.sharpest_without_projection,
                              narrow, 8);
    }
    session.say(line);
  }
  session.say(
      "\nSpread: the most that the scores of two keys can differ by, under the query for which that is least "
      "and under the one for which it is most. No weight is more than e^spread times another.");
  const bool bounded = std::any_of(heads.begin(), heads.end(), [](const audit::HeadReach& reach) {
    return reach.attention && !reach.attention->narrow();
  });
  if (bounded) {
    session.say(
        "<= and >=: bounds from the norms that queries and keys have of their own, which hidden states need "
        "not "
        "reach.");
  }
}

/// Errors    Unsupported, naming a field, where the scores of no head are modelled
void expect_some_modelled(const std::string& path, const model::Model& model) {
  const auto is_refused = [](const model::Head& head) { return !head.not_modelled.empty(); };
  if (!model.heads.empty() && std::all_of(model.heads.begin(), model.heads.end(), is_refused)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: not modelled: {}", path, model.heads.front().not_modelled));
  }
}

int run(const Session& session, const Options& options) {
  const checkpoint::Checkpoint checkpoint(options.model);
  keep_apart(files_of(checkpoint), {session.json});
  const model::Model model = model::describe(checkpoint);
  expect_some_modelled(options.model, model);
  const std::vector<audit::HeadReach> heads =
      audit::reach_of_heads(checkpoint, model, session.threads, session.progress());
  if (session.wants_json()) session.write_json(audit::heads_json(checkpoint, model, heads, options.queries));
  if (heads.empty()) {
    session.say(fmt::format("{}: no attention heads were recognized", printable(options.model)));
  } else {
    print(session, model, heads);
  }
  say_notes(session, model.notes);
  return ok;
}

}  // namespace

void add_heads(CLI::App& root, Session& session) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(root, session, "heads",
                                  "How uniform and how sharp each attention head can be, in any context",
                                  [&session, options] { return run(session, *options); });
  command->add_option("MODEL", options->model, "The checkpoint")->required();
  command->add_flag("--queries", options->queries, "Put the queries that attain it into the JSON");
}

}  // namespace normscope::cli
