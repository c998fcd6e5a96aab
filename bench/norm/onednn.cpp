#include <unordered_map>

#include <fmt/format.h>
#include <dnnl.hpp>

#include "problem.hpp"

extern "C" void omp_set_num_threads(int count);

namespace normscope::bench {
namespace {

using dnnl::memory;
using Flags = dnnl::normalization_flags;
using Arguments = std::unordered_map<int, memory>;

/// Memories and primitives are made once; a call only executes.
class Kept {
 public:
  Kept(const Shared& problem, memory::data_type type) : problem_(problem), type_(type) {
    omp_set_num_threads(static_cast<int>(problem->threads));
    const auto flags = Flags::use_scale | Flags::use_shift;
    const auto epsilon = static_cast<float>(problem->eps);
    const dnnl::layer_normalization_forward::primitive_desc inference(
        engine_, dnnl::prop_kind::forward_inference, rows(), rows(), epsilon, flags);
    const dnnl::layer_normalization_forward::primitive_desc training(
        engine_, dnnl::prop_kind::forward_training, rows(), rows(), epsilon, flags);
    forward_ = dnnl::layer_normalization_forward(inference);
    backward_ = dnnl::layer_normalization_backward(
        {engine_, dnnl::prop_kind::backward, rows(), rows(), rows(), epsilon, flags, training});
    add_ = dnnl::binary({engine_, dnnl::algorithm::binary_add, rows(), rows(), rows()});
    const memory mean(training.mean_desc(), engine_);
    const memory variance(training.variance_desc(), engine_);
    const memory x = source(problem->x);
    const memory dy = source(problem->dy);
    const memory sum = result(of_sum_);
    const memory gain = parameter(problem->gain.data());
    const memory bias = parameter(problem->bias.data());
    add_arguments_ = {{DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, dy}, {DNNL_ARG_DST, sum}};
    forward_arguments_ = {{DNNL_ARG_SRC, x},
                          {DNNL_ARG_SCALE, gain},
                          {DNNL_ARG_SHIFT, bias},
                          {DNNL_ARG_DST, result(of_result_)}};
    forward_of_sum_arguments_ = forward_arguments_;
    forward_of_sum_arguments_[DNNL_ARG_SRC] = sum;
    backward_arguments_ = {{DNNL_ARG_SRC, x},
                           {DNNL_ARG_DIFF_DST, dy},
                           {DNNL_ARG_SCALE, gain},
                           {DNNL_ARG_SHIFT, bias},
                           {DNNL_ARG_MEAN, mean},
                           {DNNL_ARG_VARIANCE, variance},
                           {DNNL_ARG_DIFF_SCALE, parameter(gradients_.data())},
                           {DNNL_ARG_DIFF_SHIFT, parameter(gradients_.data() + problem->width)},
                           {DNNL_ARG_DIFF_SRC, result(of_result_)}};
    // Statistics of a forward pass that its backward pass reads.
    Arguments kept = forward_arguments_;
    kept[DNNL_ARG_MEAN] = mean;
    kept[DNNL_ARG_VARIANCE] = variance;
    dnnl::layer_normalization_forward(training).execute(stream_, kept);
    stream_.wait();
  }

  void run(Task task) {
    if (task == Task::forward) forward_.execute(stream_, forward_arguments_);
    if (task == Task::backward) backward_.execute(stream_, backward_arguments_);
    if (task == Task::residual) {
      add_.execute(stream_, add_arguments_);
      forward_.execute(stream_, forward_of_sum_arguments_);
    }
    stream_.wait();
  }
  [[nodiscard]] std::vector<Values> results(Task task) const {
    return results_of(task, {of_result_.get(), problem_->size(), problem_->dtype},
                      {gradients_.data(), gradients_.size()});
  }

 private:
  [[nodiscard]] memory::desc rows() const {
    return {{static_cast<memory::dim>(problem_->rows), static_cast<memory::dim>(problem_->width)},
            type_,
            memory::format_tag::ab};
  }
  [[nodiscard]] memory source(const void* data) const { return {rows(), engine_, const_cast<void*>(data)}; }
  [[nodiscard]] memory result(const std::shared_ptr<void>& data) const {
    return {rows(), engine_, data.get()};
  }
  [[nodiscard]] memory parameter(const float* data) const {
    const memory::desc features({static_cast<memory::dim>(problem_->width)}, memory::data_type::f32,
                                memory::format_tag::a);
    return {features, engine_, const_cast<float*>(data)};
  }

  Shared problem_;
  memory::data_type type_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::shared_ptr<void> of_result_ = aligned(problem_->bytes());
  std::shared_ptr<void> of_sum_ = aligned(problem_->bytes());
  std::vector<float> gradients_ = std::vector<float>(2 * problem_->width);
  dnnl::layer_normalization_forward forward_;
  dnnl::layer_normalization_backward backward_;
  dnnl::binary add_;
  Arguments forward_arguments_, forward_of_sum_arguments_, backward_arguments_, add_arguments_;
};

std::string name() {
  const dnnl_version_t* const version = dnnl_version();
  return fmt::format("oneDNN {}.{}", version->major, version->minor);
}

}  // namespace

/// `onednn`, exported for load_onednn.cpp.
extern "C" void normscope_onednn(const Shared& problem, Task task, Peer& to) {
  if (task == Task::grouped || problem->dtype == Dtype::F64) return;
  const auto type = problem->dtype == Dtype::BF16  ? memory::data_type::bf16
                    : problem->dtype == Dtype::F16 ? memory::data_type::f16
                                                   : memory::data_type::f32;
  std::shared_ptr<Kept> own;
  try {
    own = std::make_shared<Kept>(problem, type);
  } catch (const dnnl::error&) {
    return;  // the processor does not support the type
  }
  to = Solver{task == Task::residual ? name() + ", two steps" : name(), [=] { own->run(task); },
              [=] { return own->results(task); }};
}

}  // namespace normscope::bench
