#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/forward/plan.hpp>
#include <normscope/models/model.hpp>

#include "layers.hpp"

namespace normscope::forward {

struct Decoder::State {
  const files::Checkpoint& checkpoint;
  const models::Model& model;
  unsigned threads;
  Disturbance disturbance;
  Plan plan;
  std::vector<std::size_t> norms{};
  std::vector<Component> components{};
  std::vector<std::size_t> starts{};  ///< of each step: the first of the components that it adds
  bool has_logits = false;
  std::size_t vocabulary = 0, positions = most_tokens, width = 0;

  State(const files::Checkpoint& file, const models::Model& described, unsigned thread_limit,
        const PassOptions& options);
  void list_components();
  void expect_tokens(std::span<const std::size_t> tokens) const;

  /// What the token embedding gives the stream.
  [[nodiscard]] std::vector<double> embedded(std::span<const std::size_t> tokens) const;
  /// What the embeddings of positions and token types give it; empty without any.
  [[nodiscard]] std::vector<double> placed(std::span<const std::size_t> tokens) const;
  /// The bound of a norm's rounding has its width, for the sums; a gain is disturbed like a weight.
  void disturb_norm(const models::Norm& norm, MatrixView<double> rows) const;
  [[nodiscard]] std::vector<double> output_of(const models::Norm& norm, MatrixView<const double> x) const;
  /// The activations of an MLP, which its output map reads.
  [[nodiscard]] std::vector<double> activations(const Mlp& mlp, MatrixView<const double> x) const;
  [[nodiscard]] std::vector<double> output_of(const Mlp& mlp, MatrixView<const double> x) const;
  /// The weights of experts for each row of x, 0 for those that it does not use.
  [[nodiscard]] std::vector<double> routed(const Experts& experts, MatrixView<const double> x) const;
  [[nodiscard]] std::vector<double> output_of(const Experts& experts, MatrixView<const double> x) const;
  void add(const Branch& branch, MatrixView<const double> normed, const AttentionObserver& attention,
           std::vector<double>& stream) const;
  /// What a language head makes of the last hidden states before its own norm.
  [[nodiscard]] std::vector<double> transformed(const models::Linear& transform,
                                                const std::vector<double>& hidden, std::size_t rows) const;

  /// The step that adds a component; 0 for an embedding.
  [[nodiscard]] std::size_t step_of(std::size_t component) const;

  /// The outputs of norms that open branches read: those of two norms beside each other at most.
  using Normed = std::map<std::size_t, std::vector<double>>;

  /// Goes through the norms from step `first` on. The output of the final norm.
  ///
  /// `hooks` have `enter`, called before the branches of a step, which may add rows to the stream and to
  /// what is read; `add`, which adds a branch to the stream; `observe`; and `output`, of the norm of a step.
  template <typename Hooks>
  [[nodiscard]] std::vector<double> pass(std::vector<double> stream, Hooks& hooks, const Progress& progress,
                                         std::size_t first = 0) const {
    Normed normed;
    for (std::size_t s = first; s < plan.steps.size(); ++s) {
      progress("norms", s, plan.steps.size());
      const Step& step = plan.steps[s];
      hooks.enter(s, stream, normed);
      for (const Branch& branch : step.before) {
        std::vector<double> read;
        if (!branch.norm) {
          read = stream;
          disturb(disturbance, "stream of " + branch.after->name, 0, rounding(4),
                  {read.data(), read.size() / width, width});
        }
        const std::vector<double>& x = branch.norm ? normed.at(*branch.norm) : read;
        hooks.add(branch, MatrixView<const double>(x.data(), x.size() / width, width), stream);
      }
      const std::size_t rows = stream.size() / width;
      if (step.transform != nullptr) stream = transformed(*step.transform, normed.begin()->second, rows);
      if (!step.before.empty()) normed.clear();
      // The sums of the stream: each entry by its own rounding.
      disturb(disturbance, "stream of " + model.norms[step.norm].name, 0, rounding(4),
              {stream.data(), rows, width});
      const MatrixView<const double> x(stream.data(), rows, width);
      hooks.observe(step.norm, x);
      normed[step.norm] = hooks.output(s, x);
      if (step.becomes_stream) stream = normed[step.norm];
    }
    return std::move(normed.at(norms.back()));
  }

  class Together;
};

}  // namespace normscope::forward
