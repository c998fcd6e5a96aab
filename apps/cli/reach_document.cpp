#include "reach_document.hpp"

#include <string>
#include <vector>

#include <normscope/core/version.hpp>

namespace normscope::cli {

using convex::Answer;
using selectability::Survey;
using selectability::TokenReach;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t listed = 20;

Json weights_json(const std::vector<convex::Share>& shares) {
  Json list = Json::array();
  for (const convex::Share& share : shares) list.push_back({{"token", share.id}, {"weight", share.weight}});
  return list;
}

Json name_json(const ReachHead& head, std::size_t token) {
  return token < head.names.size() ? Json(head.names[token]) : Json();
}

Json losers_json(const ReachHead& head, const Survey& results, Answer answer) {
  Json list = Json::array();
  for (const std::size_t i : results.with(answer)) {
    const TokenReach& token = results.tokens[i];
    list.push_back({{"token", i},
                    {"name", name_json(head, i)},
                    {"lead_at_most", token.upper},
                    {"weights", weights_json(token.weights)},
                    {"without_ball", std::string(to_string(token.unbounded))},
                    {"without_ball_weights", weights_json(token.unbounded_weights)}});
    // Of eps = 0 alone.
    if (!token.ends.empty()) list.back()["ends"] = token.ends;
    if (token.only_inside) list.back()["only_inside"] = true;
  }
  return list;
}

Json nearest_json(const ReachHead& head, const Survey& results) {
  Json list = Json::array();
  for (const std::size_t i : results.nearest(listed)) {
    list.push_back({{"token", i},
                    {"name", name_json(head, i)},
                    {"lead_at_least", results.tokens[i].lower},
                    {"lead_at_most", results.tokens[i].upper}});
  }
  return list;
}

}  // namespace

Json reach_document(const ReachHead& head, const Survey& results, double tolerance, bool complete) {
  Json lead = {{"lower", Json::array()}, {"upper", Json::array()}};
  Json probability = {{"lower", Json::array()}, {"upper", Json::array()}, {"refined", results.refined}};
  std::size_t decided = 0;
  for (std::size_t i = 0; i < results.tokens.size(); ++i) {
    decided += results.tokens[i].done ? 1 : 0;
    lead["lower"].push_back(results.tokens[i].lower);
    lead["upper"].push_back(results.tokens[i].upper);
    probability["lower"].push_back(results.probabilities[i].lower);
    probability["upper"].push_back(results.probabilities[i].upper);
  }
  return {{"schema", "normscope.reach/1"},
          {"version", version},
          {"source", head.source},
          {"tokens", head.logits.tokens},
          {"width", head.logits.width},
          {"norm",
           {{"name", head.norm_name.empty() ? Json() : Json(head.norm_name)},
            {"kind", std::string(to_string(head.norm.kind))},
            {"eps", head.norm.eps}}},
          {"unembedding_bias", head.has_bias},
          {"tied", head.tied},
          {"logit_scale", head.logit_scale},
          {"soft_cap", head.soft_cap},
          {"notes", head.notes},
          {"complete", complete},
          {"decided", decided},
          {"reachable", results.with(Answer::yes).size()},
          {"unreachable", losers_json(head, results, Answer::no)},
          {"undecided", losers_json(head, results, Answer::undecided)},
          {"unreachable_without_ball", results.unargmaxable()},
          {"nearest", nearest_json(head, results)},
          {"lead", lead},
          {"max_probability", probability},
          {"scale", head.logits.scale},
          {"tolerance", tolerance},
          {"sphere", head.logits.sphere}};
}

}  // namespace normscope::cli
