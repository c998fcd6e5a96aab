#include <normscope/nets/recording.hpp>

#include <normscope/core/assert.hpp>

namespace normscope::nets {

Recording::Recording(const TrainSpec& spec, const Dataset& data, std::size_t most)
    : Recording(spec, std::make_shared<const Dataset>(data), most) {}

Recording::Recording(const TrainSpec& spec, const std::shared_ptr<const Dataset>& data, std::size_t most)
    : trainer_(spec, data), past_(spec, data), most_(most) {
  NORMSCOPE_ASSERT(most >= 2);
  keep();
}

void Recording::keep() {
  parameters_.push_back(trainer_.parameters());
  if (parameters_.size() <= most_) return;
  for (std::size_t i = 1; 2 * i < parameters_.size(); ++i) parameters_[i].swap(parameters_[2 * i]);
  parameters_.resize((parameters_.size() + 1) / 2);
  distance_ *= 2;
}

void Recording::advance(std::size_t steps) {
  for (; steps > 0 && !trainer_.done(); --steps) {
    trainer_.step();
    if (trainer_.steps_done() % distance_ == 0) keep();
  }
}

std::size_t Recording::kept(std::size_t step) const {
  return step >= trainer_.steps_done() ? trainer_.steps_done() : step / distance_ * distance_;
}

const Trainer& Recording::at(std::size_t step) const {
  const std::size_t found = kept(step);
  if (found == trainer_.steps_done()) return trainer_;
  past_.set_parameters(parameters_[found / distance_]);
  return past_;
}

Net Recording::net(std::size_t step) const { return at(step).net(); }

Score Recording::score(std::size_t step) const { return at(step).score(); }

Score Recording::score(std::size_t step, const Dataset& data) const { return at(step).score(data); }

}  // namespace normscope::nets
