#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/verify/verify.hpp>

/// Small results with their certificates, for tests to change.
namespace normscope::verify::test {

using Json = nlohmann::json;

inline const Json no_inputs = {{"arguments", Json::array()}, {"arrays", Json::array()}};
inline const Json unembedding_input = {{"arguments", {{{"role", "unembedding"}, {"name", "w.npy"}}}},
                                       {"arrays", Json::array()}};

inline Result result(const Json& json) { return {json.dump(), "result"}; }

/// A triangle and the middle of one of its sides.
inline const std::vector<double> keys = {0, 0, 4, 0, 0, 4, 2, 2};

inline Json select_result() {
  const Json weights = {{{"key", 1}, {"weight", 0.5}}, {{"key", 2}, {"weight", 0.5}}};
  return {{"schema", "normscope.select/1"},
          {"version", "0"},
          {"inputs", no_inputs},
          {"keys", 4},
          {"width", 2},
          {"norm", nullptr},
          {"certificates", "here"},
          {"selectable", 3},
          {"unselectable", {3}},
          {"undecided", Json::array()},
          {"proofs",
           {{"alone", 0}, {"own_direction", 2}, {"query", 1}, {"weights", 1}, {"twin", 0}, {"exact", 0}}},
          {"margin", {{"least", 2.0}, {"median", 2.0}, {"largest", 2.0}}},
          {"scale", 2.5},
          {"tolerance", 1e-12},
          {"center", {1.5, 1.5}},
          {"verdicts",
           {{{"answer", "selectable"}, {"proof", "query"}, {"margin", 2.0}, {"query", {-1, -1}}},
            {{"answer", "selectable"}, {"proof", "own_direction"}, {"margin", 2.0}},
            {{"answer", "selectable"}, {"proof", "own_direction"}, {"margin", 2.0}},
            {{"answer", "unselectable"}, {"proof", "weights"}, {"residual", 0.0}, {"weights", weights}}}}};
}

/// Logits u, −u and −0.5 for |u| <= 1: the last never leads, the first leads by 1 at u = 0.5, by 1.5 at most.
inline const std::vector<double> weights = {1, -1, 0};
inline const std::vector<double> bias = {0, 0, -0.5};

inline Json reach_result() {
  const auto on = [](int token, double weight) { return Json{{"token", token}, {"weight", weight}}; };
  const auto proof = [&](double point, int other) {
    return Json{{"answer", "yes"}, {"witness", {point}}, {"weights", {on(other, 1.0)}}};
  };
  const auto nearest = [](int token) {
    return Json{{"token", token}, {"name", nullptr}, {"lead_at_least", 1.0}, {"lead_at_most", 1.5}};
  };
  return {{"schema", "normscope.reach/1"},
          {"version", "0"},
          {"source", "w.npy"},
          {"inputs", unembedding_input},
          {"unembedding_bias", true},
          {"tied", false},
          {"notes", Json::array()},
          {"complete", true},
          {"left_out", {{"tokens", 0}, {"leads", 0}, {"probabilities", 0}}},
          {"certificates", "here"},
          {"tokens", 3},
          {"width", 1},
          {"decided", 3},
          {"reachable", 2},
          {"unreachable",
           {{{"token", 2},
             {"name", nullptr},
             {"lead_at_most", -0.5},
             {"weights", {on(0, 1.0), on(1, 1.0)}},
             {"without_ball", "no"},
             {"without_ball_weights", {on(0, 0.4), on(1, 0.4), on(3, 0.2)}}}}},
          {"undecided", Json::array()},
          {"unreachable_without_ball", 1},
          {"nearest", {nearest(0), nearest(1)}},
          {"lead", {{"lower", {1.0, 1.0, nullptr}}, {"upper", {1.5, 1.5, -0.5}}}},
          {"max_probability",
           {{"lower", {0.57, 0.57, 0.0}}, {"upper", {0.82, 0.82, 0.38}}, {"refined", Json::array()}}},
          {"scale", 1.0 + 1.0 / 6.0},
          {"tolerance", 1e-12},
          {"norm", {{"name", nullptr}, {"kind", "rms"}, {"eps", 1e-5}}},
          {"sphere", false},
          {"logit_scale", 1.0},
          {"soft_cap", 0.0},
          {"tie", 1e-12},
          {"without_ball", {{"stretch", 4.0}, {"tie", 1e-12}}},
          {"proofs", {proof(0.5, 2), proof(-0.5, 2), {{"answer", "no"}}}}};
}

}  // namespace normscope::verify::test
