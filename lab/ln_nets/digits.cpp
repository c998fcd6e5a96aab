#include "digits.hpp"

#include <memory>
#include <utility>

#include <normscope/nets/tasks.hpp>

namespace normscope::lab::ln_nets {
namespace {

/// The training set's last images are for the choice of a shape.
constexpr std::size_t validation_rows = 10000;

nets::Dataset last_rows(const nets::Dataset& data, std::size_t rows) {
  const std::size_t first = data.rows() - rows;
  return {.width = data.width,
          .classes = data.classes,
          .x = {data.x.begin() + static_cast<std::ptrdiff_t>(first * data.width), data.x.end()},
          .labels = {data.labels.begin() + static_cast<std::ptrdiff_t>(first), data.labels.end()}};
}

}  // namespace

Json deep_digits(Size size, std::size_t width, std::size_t depth, std::size_t steps) {
  const bool quick = size == Size::quick;
  Json configuration{{"arm", "LN"}, {"rows", quick ? 1000 : 50000}, {"components", 80}};
  configuration.update(to_json({.width = width,
                                .depth = depth,
                                .activation = nets::Activation::norm,
                                .norm = NormKind::layer,
                                .initialization = nets::Initialization::orthogonal,
                                .rate = 3e-3,
                                .schedule = nets::Schedule::cosine,
                                .steps = quick ? 100U : steps,
                                .batch = 100,
                                .precision = Dtype::F32}));
  return configuration;
}

void train_on_digits(Run& run) {
  const std::filesystem::path folder = data_file("mnist");
  nets::Dataset validation = last_rows(nets::mnist(folder, nets::Part::train), validation_rows);
  nets::Dataset data = nets::mnist(folder, nets::Part::train, run.get<std::size_t>("rows"));
  nets::Dataset test = nets::mnist(folder, nets::Part::test);
  if (const auto count = run.configuration().value("components", std::size_t{0}); count > 0) {
    const std::vector<double> map = nets::principal_components(data, count);
    for (nets::Dataset* const part : {&validation, &data, &test}) *part = nets::mapped(*part, map);
  }
  train(run, std::make_shared<const nets::Dataset>(std::move(data)),
        {{"test_accuracy", test}, {"validation_accuracy", validation}});
}

}  // namespace normscope::lab::ln_nets
