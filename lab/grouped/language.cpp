#include "language.hpp"

#include <normscope/core/file.hpp>
#include <normscope/core/norm_kind.hpp>

#include "frame/experiment.hpp"
#include "grouped/compare.hpp"

namespace normscope::lab::grouped {

Scale language_scale(std::string_view paper, double factor) {
  return {.paper = paper,
          .ours = "a character model of width 64 on one megabyte of text, some 0.1 to 0.3 million parameters",
          .factor = factor};
}

Schedule language_schedule(Size size, std::uint64_t steps, std::uint64_t measure_every) {
  return size == Size::quick
             ? Schedule{.steps = 8, .warmup = 2, .rate = 3e-3, .measure_every = 4}
             : Schedule{.steps = steps, .warmup = 100, .rate = 3e-3, .measure_every = measure_every};
}

Plan language_plan(Size size, std::size_t layers, const std::vector<Json>& arms, const Schedule& schedule) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = arms, .seeds = quick ? 1U : least_seeds};
  for (Json& configuration : plan.configurations) {
    configuration.update(Json{{"width", 64},
                              {"layers", layers},
                              {"heads", 4},
                              {"length", 64},
                              {"batch", quick ? 8 : 16},
                              {"pieces", quick ? 16 : 256}});
    configuration.update(to_json(schedule));
  }
  return plan;
}

void train_language(Run& run) {
  const std::filesystem::path path = data_file("text/tinyshakespeare.txt");
  const MappedFile file(path);
  const auto* characters = reinterpret_cast<const char*>(file.bytes().data());
  const auto length = run.get<std::size_t>("length");
  const Text text = text_data(path.string(), {characters, file.bytes().size()}, length,
                              run.get<std::size_t>("batch"), run.get<std::size_t>("pieces"));
  const Json& configuration = run.configuration();
  const Shape standard;
  train(run,
        Network({.kind = Kind::language,
                 .width = run.get<std::size_t>("width"),
                 .groups = configuration.value("groups", std::size_t{1}),
                 .layers = run.get<std::size_t>("layers"),
                 .heads = run.get<std::size_t>("heads"),
                 .length = length,
                 .classes = text.alphabet,
                 .norm = norm_kind(configuration.value("norm", std::string("layer"))),
                 .peri = configuration.value("peri", false),
                 .qk_norm = configuration.value("qk_norm", false),
                 .embedding_scalar = configuration.value("embedding_scalar", standard.embedding_scalar),
                 .alpha_attention = configuration.value("alpha_attention", standard.alpha_attention),
                 .alpha_other = configuration.value("alpha_other", standard.alpha_other)}),
        text.data);
}

}  // namespace normscope::lab::grouped
