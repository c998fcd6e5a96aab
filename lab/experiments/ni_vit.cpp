#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/training.hpp"

namespace normscope::lab::ni_vit {
namespace {

using namespace grouped;

/// Differences of two arms deviate by 0.0069 from seed to seed at width 64, so that a paired test of twenty
/// seeds finds the paper's difference of 0.0045 with a probability of 0.8.
constexpr std::size_t judged_seeds = 20;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  return transformers_over_groups(
      size, {.width = 128, .layers = 2, .seeds = judged_seeds},
      {{"patch", 8}, {"images", quick ? 200 : 10000}, {"test", quick ? 250 : 10000}, {"batch", 50}},
      quick ? Schedule{.steps = 12, .warmup = 4, .rate = 2e-3, .measure_every = 6}
            : Schedule{.steps = 2000, .warmup = 100, .rate = 1e-3, .measure_every = 500});
}

void perform(Run& run) {
  const Data data = image_data(data_file("cifar10").string(), run.get<std::size_t>("images"),
                               run.get<std::size_t>("test"), run.get<std::size_t>("batch"), false);
  const Network network({.kind = Kind::vision,
                         .width = run.get<std::size_t>("width"),
                         .groups = run.get<std::size_t>("groups"),
                         .layers = run.get<std::size_t>("layers"),
                         .heads = run.get<std::size_t>("heads"),
                         .side = image_side,
                         .patch = run.get<std::size_t>("patch"),
                         .classes = 10});
  train(run, network, data);
}

Finding higher_accuracy(const Results& results) { return compare_groups_of_eight(results); }

std::vector<Figure> figures(const Results& results) {
  return {over_steps("accuracy",
                     "Test accuracy of a small ViT on CIFAR-10 over training, by the number of groups its "
                     "LayerNorms are cut into; "
                     "mean and deviation of the seeds.",
                     results, {.series = "groups", .metric = "accuracy", .title = "test accuracy"})};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-vit",
    .paper = "Ni 2024",
    .claim =
        "LN-G instead of LN improves a vision transformer: here 0.4 million parameters on 10,000 images "
        "of CIFAR-10.",
    .quick_seconds = 5,
    .full_minutes = 70,
    .scale = {.paper = "Tiny-ViT on 50,000 images of CIFAR-10; passes could not be read",
              .ours = "10,000 images, 2 blocks of width 128, 10 passes",
              .factor = 5},
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "higher_accuracy",
          .says = "LN-G in groups of eight features has a higher test accuracy than LN.",
          .paper = "Tiny-ViT on CIFAR-10: 89.26 % with LN-G, 88.81 % with LN (the talk's slides)",
          .rule =
              {"test accuracy with groups of eight minus that with LN; the paper's difference is the least",
               Test::mean, judged_seeds, 0.0045},
          .judge = higher_accuracy}},
    .figures = figures};

}  // namespace normscope::lab::ni_vit
