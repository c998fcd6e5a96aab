#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/heads/heads.hpp>
#include <normscope/models/model.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/verify/verify.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

struct HeadsOptions {
  ModelName model;
  results::HeadDetails details;
  heads::HeadContexts contexts;
};

using Heads = std::vector<heads::HeadReach>;

bool any(const Heads& heads, bool (*holds)(const heads::Attention&)) {
  return std::any_of(heads.begin(), heads.end(), [&](const heads::HeadReach& reach) {
    return reach.attention && holds(*reach.attention);
  });
}

bool turns(const heads::Attention& attention) { return attention.distances.has_value(); }
bool has_projection(const heads::Attention& attention) {
  return attention.uniform_without_projection.has_value();
}
bool is_bounded_only(const heads::Attention& attention) {
  return !attention.narrow() && !attention.distances;
}

/// Significant digits of a spread.
constexpr int digits = 4;

/// Lower and upper bound, rounded outward, or one number if it is exact.
std::string range(double from, double to) {
  const std::string first = at_least(from, digits);
  const std::string last = at_most(to, digits);
  return first == last ? last : first + ".." + last;
}

/// Whether both extremes are known to a thousandth of the sharpest, as in `Attention::narrow`.
bool is_narrow(const heads::Spread& uniform, const heads::Spread& sharp) {
  const double room = 1e-3 * sharp.upper;
  return sharp.upper - sharp.lower <= room && uniform.upper - uniform.lower <= room;
}

/// The smallest spread: its lower bound if that is informative, otherwise its upper bound, otherwise nothing.
std::string least(const heads::Spread& uniform, const heads::Spread& sharp, bool narrow, bool turning) {
  if (uniform.lower == 0.0 && uniform.upper <= 1e-8 * sharp.upper) return "0";
  if (narrow && uniform.lower > 0.0) return at_least(uniform.lower, digits);
  if (turning) return range(uniform.lower, uniform.upper);
  if (uniform.lower > 0.0) return ">=" + at_least(uniform.lower, digits);
  return uniform.upper < sharp.upper ? "<=" + at_most(uniform.upper, digits) : "-";
}

/// The smallest and the largest spread, one column each, rounded outward. "0" stands for a smallest spread
/// that is negligible beside the largest, "-" for an unknown one.
std::string columns(const heads::Spread& uniform, const heads::Spread& sharp, bool narrow, bool turning,
                    int width) {
  const std::string most = narrow                         ? at_most(sharp.upper, digits)
                           : turning && sharp.lower > 0.0 ? range(sharp.lower, sharp.upper)
                                                          : "<=" + at_most(sharp.upper, digits);
  return fmt::format("{:>{}} {:>{}}", least(uniform, sharp, narrow, turning), width, most, width);
}

/// Bounds over every distance, and at distance 0.
std::string over_distances(const heads::OverDistances& over) {
  const std::string within = over.within == 0 ? "any" : fmt::format("{}", over.within);
  return fmt::format("   {:>9} {:>12}   {}", within, "<=" + at_most(over.sharpest_anywhere, digits),
                     columns(over.uniform_at_zero, over.sharpest_at_zero,
                             is_narrow(over.uniform_at_zero, over.sharpest_at_zero), false, 8));
}

std::string row(const heads::Attention& attention, int width) {
  const bool narrow = attention.narrow();
  std::string line = columns(attention.most_uniform, attention.sharpest, narrow, turns(attention), width);
  if (attention.distances) return line + over_distances(*attention.distances);
  if (!attention.uniform_without_projection) return line;
  return line + "   " +
         columns(*attention.uniform_without_projection, *attention.sharpest_without_projection, narrow, false,
                 8);
}

void explain(const Session& session, const Heads& heads) {
  session.say(
      "\nSpread: the largest difference between the scores of two keys, for the query that makes it smallest "
      "(most uniform) and the query that makes it largest (sharpest). Of any two attention weights, the "
      "larger is at most e^spread times the smaller. Spreads are rounded outward, so that they "
      "stay bounds.");
  if (any(heads, turns)) {
    session.say(
        "Rotary heads: from the spread that a search attains to the proved bound, over contexts of the given "
        "number of positions; under \"any distance\", a bound for every context length and all frequencies; "
        "under \"at distance 0\", the spread of two keys at the query's own position, as if without "
        "rotation. `--json` has the sharpest spread by distance.");
  }
  if (any(heads, is_bounded_only)) {
    session.say(
        "<= and >=: bounds from the head's own norms of queries and keys; hidden states may not attain "
        "them. -: nothing is known that the sharpest does not imply.");
  }
  if (any(heads, [](const heads::Attention& attention) { return attention.soft_cap > 0.0; })) {
    session.say("Where the model caps scores, the spreads are of capped scores.");
  }
}

void print(const Session& session, const models::Model& model, const Heads& heads) {
  const bool turning = any(heads, turns);
  const int width = turning ? 16 : 12;
  std::size_t stacks = 0;
  for (const models::Head& head : model.heads) stacks = std::max(stacks, head.stack.size());
  const auto indent = [&](const std::string& stack) {
    return stacks == 0 ? std::string() : fmt::format("{:<{}} ", stack, stacks);
  };
  session.say(indent("") + fmt::format("{:>5} {:>4}  {:>{}} {:>{}}{}", "layer", "head", "most uniform", width,
                                       "sharpest", width,
                                       turning ? "   positions any distance   at distance 0"
                                       : any(heads, has_projection) ? "   without projection"
                                                                    : ""));
  for (const heads::HeadReach& reach : heads) {
    const models::Head& head = model.heads[reach.head];
    const std::string pass = reach.pass.empty() ? "" : fmt::format("  {} passes", reach.pass);
    const std::string place = indent(head.stack) + fmt::format("{:>5} {:>4}", head.layer, head.head);
    if (!reach.attention) {
      session.say(fmt::format("{}  not known: {}{}", place, printable(reach.refused), pass));
      continue;
    }
    session.say(place + "  " + row(*reach.attention, width) + pass);
  }
  explain(session, heads);
}

int run_heads(const Session& session, Inputs& inputs, Outputs& outputs, const HeadsOptions& options) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(options.model.path);
  const models::Model& model = inputs.model_of(checkpoint, options.model.stated);
  if (const std::string why = models::why_no_heads(model); !why.empty()) {
    throw Error(ErrorCode::Unsupported, fmt::format("{}: {}", options.model.path, why));
  }
  const Heads heads =
      heads::reach_of_heads(checkpoint, model, session.threads, session.progress(), options.contexts);
  outputs.commit([&] {
    verify::Inputs computed_from{.arguments = {{"model", options.model.path}},
                                 .stated = options.model.stated};
    if (options.details.certificates) {
      computed_from.arrays = verify::ModelHeads(checkpoint, model).arrays(session.threads);
    }
    results::HeadDetails details = options.details;
    details.inputs = std::move(computed_from);
    return json_text(results::heads(checkpoint, model, heads, details), 1);
  });
  print(session, model, heads);
  say_notes(session, model.notes);
  return ok;
}

}  // namespace

Command heads_command() {
  const auto options = std::make_shared<HeadsOptions>();
  return {.name = "heads",
          .text = "Bound how uniform and how sharp each attention head can be",
          .inputs = {input("MODEL", options->model.path, "Checkpoint to analyse").required()},
          .options = joined({option("--context", options->contexts.positions),
                             option("--queries", options->details.queries),
                             option("--proofs", options->details.certificates)},
                            model_options(options->model)),
          .footer =
              "The columns, of spreads: the largest difference between the scores of two keys.\n"
              "  most uniform        smallest spread that some query gives any context\n"
              "  sharpest            largest spread that some query gives some context\n"
              "  positions           length of the contexts that a rotary head's bounds are for\n"
              "  any distance        bound of the sharpest over contexts of any length\n"
              "  at distance 0       both, for keys at the query's own position\n"
              "  without projection  both, as if the norm did not centre",
          .examples = {"normscope heads models/kjv_gpt",
                       "normscope heads models/kjv_gpt --proofs --json heads.json"},
          .run = with(run_heads, options)};
}

}  // namespace normscope::cli
