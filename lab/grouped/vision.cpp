#include "vision.hpp"

#include "frame/data.hpp"
#include "training.hpp"

namespace normscope::lab::grouped {

void train_vision(Run& run) {
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

}  // namespace normscope::lab::grouped
