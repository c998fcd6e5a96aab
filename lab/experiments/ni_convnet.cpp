#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/training.hpp"

namespace normscope::lab::ni_convnet {
namespace {

using namespace grouped;

/// What lies between the convolutions, by its name in a configuration.
Between between(std::string_view arm) {
  return arm == "norm" ? Between::norm : arm == "relu" ? Between::relu : Between::nothing;
}

/// With 64 channels, differences deviate by 0.007 from seed to seed, so that the interval over six seeds is
/// ± 0.007. LN was then better than nothing by 0.054, close to the 0.05 that its rule asks for.
constexpr std::size_t judged_seeds = 6;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  const std::size_t width = quick ? 64 : 128;
  Plan plan{.configurations = {}, .seeds = quick ? 1U : judged_seeds};
  const auto add = [&](const char* arm, std::size_t groups) {
    Json configuration{{"arm", arm},
                       {"groups", groups},
                       {"width", width},
                       {"side", quick ? image_side / 2 : image_side},
                       {"images", quick ? 200 : 10000},
                       {"test", quick ? 250 : 10000},
                       {"batch", 50}};
    configuration.update(
        to_json(quick ? Schedule{.steps = 8, .warmup = 2, .rate = 3e-3, .measure_every = 4}
                      : Schedule{.steps = 2000, .warmup = 100, .rate = 3e-3, .measure_every = 500}));
    plan.configurations.push_back(std::move(configuration));
  };
  add("nothing", 1);
  const std::vector<std::size_t> groups =
      quick ? std::vector<std::size_t>{1, 8} : std::vector<std::size_t>{1, 4, 16};
  for (const std::size_t count : groups) add("norm", count);
  add("relu", 1);
  return plan;
}

void perform(Run& run) {
  const auto side = run.get<std::size_t>("side");
  const Data data =
      image_data(data_file("cifar10").string(), run.get<std::size_t>("images"), run.get<std::size_t>("test"),
                 run.get<std::size_t>("batch"), side < image_side);
  const Network network({.kind = Kind::convolution,
                         .width = run.get<std::size_t>("width"),
                         .groups = run.get<std::size_t>("groups"),
                         .side = side,
                         .classes = 10,
                         .between = between(run.get<std::string>("arm"))});
  train(run, network, data);
}

Results with_norm(const Results& results) { return results.where("arm", "norm"); }
Results with_one_group(const Results& results) { return with_norm(results).where("groups", 1); }
Results with_groups_of_eight(const Results& results) { return in_groups_of_eight(with_norm(results)); }

Finding norm_is_nonlinear(const Results& results) {
  return compare("nothing between convolutions", results.where("arm", "nothing"), "LN",
                 with_one_group(results));
}

Finding groups_help(const Results& results) {
  return compare("LN", with_one_group(results), "groups of eight", with_groups_of_eight(results));
}

Finding no_worse_than_relu(const Results& results) {
  return compare("ReLU", results.where("arm", "relu"), "groups of eight", with_groups_of_eight(results));
}

std::vector<Figure> figures(const Results& results) {
  return {
      at_end("accuracy",
             "Test accuracy on CIFAR-10 of three convolutions with LN-G, with ReLU and with nothing between "
             "them, over the number of groups; mean and deviation of the seeds.",
             results, {.series = "arm", .metric = "accuracy", .title = "test accuracy"}, "groups", "groups")};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-convnet",
    .paper = "Ni 2024",
    .claim =
        "Convolutions without activations are more accurate with LN-G than with LN between them: here three "
        "layers of 128 channels on 10,000 images of CIFAR-10.",
    .quick_seconds = 5,
    .full_minutes = 340,
    .scale = {.paper = "CIFAR-10, 50,000 images; the net could not be read",
              .ours = "10,000 images, three layers of 128 channels",
              .factor = 5},
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "norm_is_nonlinear",
          .says = "With LN after every layer, linear convolutions are better than a linear map.",
          .paper = "the abstract; no number could be read",
          .rule = {"test accuracy with LN minus that with nothing between the convolutions", Test::mean,
                   judged_seeds, 0.05},
          .judge = norm_is_nonlinear},
         {.name = "groups_help",
          .says = "LN-G in groups of eight channels has a higher test accuracy than LN.",
          .paper = "the abstract; no number could be read",
          .rule = {"test accuracy with groups of eight minus that with LN", Test::mean, judged_seeds, 0.02},
          .judge = groups_help},
         as_ours(
             {.name = "no_worse_than_relu",
              .says =
                  "LN-G in groups of eight channels, without an activation, is no worse than ReLU without "
                  "a norm.",
              .paper = "ours, for reference",
              .rule = {"test accuracy with groups of eight minus that with ReLU", Test::mean, judged_seeds,
                       0.0},
              .judge = no_worse_than_relu})},
    .figures = figures};

}  // namespace normscope::lab::ni_convnet
