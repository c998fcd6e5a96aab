#include "pass.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pass.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "products-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace normscope::nets::detail {
namespace HWY_NAMESPACE {

/// Normalizes each group of `z` in place, and stores 1/s of each row in `scale`.
template <typename T>
HWY_INLINE void NormForward(const PassLayer& layer, std::size_t rows, T* z, T* scale) {
  const hn::ScalableTag<T> tag;
  const std::size_t width = layer.out / layer.groups;
  const auto share = hn::Set(tag, static_cast<T>(1.0 / static_cast<double>(width)));
  const auto divisor = hn::Set(tag, static_cast<T>(1.0 / layer.squared_radius()));
  const auto eps = hn::Set(tag, static_cast<T>(layer.eps));
  for (std::size_t group = 0; group < layer.groups; ++group) {
    T* const begin = z + group * width * block_rows;
    for (std::size_t r = 0; r < rows; r += hn::Lanes(tag)) {
      auto center = hn::Zero(tag);
      if (facts(layer.norm).centers) {
        for (std::size_t i = 0; i < width; ++i)
          center = hn::Add(center, hn::LoadU(tag, begin + i * block_rows + r));
        center = hn::Mul(center, share);
      }
      auto square = hn::Zero(tag);
      for (std::size_t i = 0; i < width; ++i) {
        const auto deviation = hn::Sub(hn::LoadU(tag, begin + i * block_rows + r), center);
        square = hn::MulAdd(deviation, deviation, square);
      }
      const auto inverse = hn::Div(hn::Set(tag, T{1}), hn::Sqrt(hn::MulAdd(square, divisor, eps)));
      hn::StoreU(inverse, tag, scale + group * block_rows + r);
      for (std::size_t i = 0; i < width; ++i) {
        T* const at = begin + i * block_rows + r;
        hn::StoreU(hn::Mul(hn::Sub(hn::LoadU(tag, at), center), inverse), tag, at);
      }
    }
  }
}

/// d ← Jᵀd with J = (Π − u uᵀ/n)/s, n the block width, or 1 for spherical.
template <typename T>
HWY_INLINE void NormBackward(const PassLayer& layer, std::size_t rows, const T* u, const T* scale, T* d) {
  const hn::ScalableTag<T> tag;
  const std::size_t width = layer.out / layer.groups;
  const auto share = hn::Set(tag, static_cast<T>(1.0 / static_cast<double>(width)));
  const auto divisor = hn::Set(tag, static_cast<T>(1.0 / layer.squared_radius()));
  for (std::size_t group = 0; group < layer.groups; ++group) {
    const std::size_t begin = group * width * block_rows;
    for (std::size_t r = 0; r < rows; r += hn::Lanes(tag)) {
      auto along = hn::Zero(tag);
      auto center = hn::Zero(tag);
      for (std::size_t i = 0; i < width; ++i) {
        const auto value = hn::LoadU(tag, d + begin + i * block_rows + r);
        along = hn::MulAdd(value, hn::LoadU(tag, u + begin + i * block_rows + r), along);
        center = hn::Add(center, value);
      }
      along = hn::Mul(along, divisor);
      center = facts(layer.norm).centers ? hn::Mul(center, share) : hn::Zero(tag);
      const auto inverse = hn::LoadU(tag, scale + group * block_rows + r);
      for (std::size_t i = 0; i < width; ++i) {
        const std::size_t at = begin + i * block_rows + r;
        const auto value = hn::Sub(hn::LoadU(tag, d + at), center);
        hn::StoreU(hn::Mul(hn::NegMulAdd(along, hn::LoadU(tag, u + at), value), inverse), tag, d + at);
      }
    }
  }
}

template <typename T>
HWY_INLINE void AffineForward(const PassLayer& layer, const T* parameters, std::size_t rows, const T* u,
                              T* y) {
  for (std::size_t i = 0; i < layer.out; ++i) {
    const T gain = parameters[layer.gain + i];
    const T shift = parameters[layer.shift + i];
    for (std::size_t r = 0; r < rows; ++r) y[i * block_rows + r] = gain * u[i * block_rows + r] + shift;
  }
}

template <typename T>
HWY_INLINE void AffineBackward(const PassLayer& layer, const T* parameters, std::size_t rows, const T* u,
                               T* d, T* gradient) {
  for (std::size_t i = 0; i < layer.out; ++i) {
    T* const row = d + i * block_rows;
    gradient[layer.gain + i] += Dot(row, u + i * block_rows, rows);
    gradient[layer.shift + i] += Total(row, rows);
    for (std::size_t r = 0; r < rows; ++r) row[r] *= parameters[layer.gain + i];
  }
}

template <typename T>
HWY_INLINE T Gelu(T z) {
  return T{0.5} * z * (T{1} + std::erf(z * static_cast<T>(0.70710678118654752440)));
}

template <typename T>
HWY_INLINE T GeluSlope(T z) {
  const T below = T{0.5} * (T{1} + std::erf(z * static_cast<T>(0.70710678118654752440)));
  return below + z * static_cast<T>(0.39894228040143267794) * std::exp(T{-0.5} * z * z);
}

/// The output of layer `index`, in `core` or in `value`.
template <typename T>
HWY_INLINE const T* Output(const Pass& pass, const Workspace<T>& work, std::size_t index) {
  const PassLayer& layer = pass.layers[index];
  const bool apart =
      layer.activation == Activation::norm ? layer.affine : layer.activation != Activation::none;
  return apart ? work.value[index].data() : work.core[index].data();
}

template <typename T>
HWY_INLINE void Forward(const Pass& pass, const T* parameters, const T* x, std::size_t rows,
                        Workspace<T>& work) {
  for (std::size_t l = 0; l < pass.layers.size(); ++l) {
    const PassLayer& layer = pass.layers[l];
    T* const z = work.core[l].data();
    T* const y = work.value[l].data();
    const ProductShape shape{.outputs = layer.out,
                             .inner = layer.in,
                             .row = layer.in,
                             .column = 1,
                             .columns = rows,
                             .a_stride = block_rows,
                             .c_stride = block_rows};
    Product<T>(shape, parameters + layer.weight, parameters + layer.bias,
               l == 0 ? x : Output(pass, work, l - 1), z);
    const std::size_t size = layer.out * block_rows;
    switch (layer.activation) {
      case Activation::norm:
        NormForward(layer, rows, z, work.scale[l].data());
        if (layer.affine) AffineForward(layer, parameters, rows, z, y);
        break;
      case Activation::relu:
        for (std::size_t i = 0; i < size; ++i) y[i] = std::max(z[i], T{0});
        break;
      case Activation::gelu:
        for (std::size_t i = 0; i < size; ++i) y[i] = Gelu(z[i]);
        break;
      case Activation::none: break;
    }
  }
}

template <typename T>
HWY_INLINE void Backward(const Pass& pass, const T* parameters, const T* x, std::size_t rows,
                         Workspace<T>& work, T* gradient) {
  for (std::size_t l = pass.layers.size(); l-- > 0;) {
    const PassLayer& layer = pass.layers[l];
    T* const d = work.delta.data();
    const T* const core = work.core[l].data();
    switch (layer.activation) {
      case Activation::norm:
        if (layer.affine) AffineBackward(layer, parameters, rows, core, d, gradient);
        NormBackward(layer, rows, core, work.scale[l].data(), d);
        break;
      case Activation::relu:
        for (std::size_t i = 0; i < layer.out * block_rows; ++i) d[i] = core[i] > T{0} ? d[i] : T{0};
        break;
      case Activation::gelu:
        for (std::size_t i = 0; i < layer.out * block_rows; ++i) d[i] *= GeluSlope(core[i]);
        break;
      case Activation::none: break;
    }
    WeightGradient(layer.out, layer.in, d, l == 0 ? x : Output(pass, work, l - 1), rows,
                   work.transposed.data(), gradient + layer.weight);
    for (std::size_t o = 0; o < layer.out; ++o) gradient[layer.bias + o] += Total(d + o * block_rows, rows);
    if (l == 0) break;
    const ProductShape shape{.outputs = layer.in,
                             .inner = layer.out,
                             .row = 1,
                             .column = layer.in,
                             .columns = rows,
                             .a_stride = block_rows,
                             .c_stride = block_rows};
    Product<T>(shape, parameters + layer.weight, nullptr, d, work.next_delta.data());
    std::swap(work.delta, work.next_delta);
  }
}

/// −log of the sigmoid for the label; stores the derivative with respect to the logit in `delta`.
template <typename T>
HWY_INLINE BlockLoss LogisticLoss(const Block<T>& block, std::size_t rows, const T* z, T* delta) {
  const hn::ScalableTag<T> tag;
  const auto one = hn::Set(tag, T{1});
  BlockLoss result;
  HWY_ALIGN T sign[block_rows];
  for (std::size_t r = 0; r < rows; ++r) sign[r] = block.labels[r] != 0 ? T{1} : T{-1};
  for (std::size_t r = 0; r < block.rows; ++r)
    result.correct += (z[r] > T{0}) == (block.labels[r] != 0) ? 1 : 0;
  auto total = hn::Zero(tag);
  for (std::size_t r = 0; r < rows; r += hn::Lanes(tag)) {
    const auto weight = hn::LoadU(tag, block.weights + r);
    const auto side = hn::Load(tag, sign + r);
    const auto margin = hn::Mul(hn::LoadU(tag, z + r), side);
    const auto tail = hn::Exp(tag, hn::Neg(hn::Abs(margin)));
    const auto softplus = hn::Add(hn::Max(hn::Neg(margin), hn::Zero(tag)), hn::Log1p(tag, tail));
    total = hn::MulAdd(weight, softplus, total);
    const auto miss = hn::Div(hn::IfThenElse(hn::Gt(margin, hn::Zero(tag)), tail, one), hn::Add(one, tail));
    hn::StoreU(hn::Neg(hn::Mul(hn::Mul(weight, side), miss)), tag, delta + r);
  }
  result.loss = static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, total)));
  return result;
}

/// −log softmax of the label; stores the derivatives with respect to the logits in `delta`.
template <typename T>
HWY_INLINE BlockLoss SoftmaxLoss(const Block<T>& block, std::size_t rows, std::size_t classes, const T* z,
                                 T* delta) {
  const hn::ScalableTag<T> tag;
  BlockLoss result;
  HWY_ALIGN T log_sum[block_rows] = {};
  for (std::size_t r = 0; r < rows; r += hn::Lanes(tag)) {
    auto largest = hn::LoadU(tag, z + r);
    for (std::size_t c = 1; c < classes; ++c)
      largest = hn::Max(largest, hn::LoadU(tag, z + c * block_rows + r));
    auto total = hn::Zero(tag);
    for (std::size_t c = 0; c < classes; ++c) {
      const auto power = hn::Exp(tag, hn::Sub(hn::LoadU(tag, z + c * block_rows + r), largest));
      hn::StoreU(power, tag, delta + c * block_rows + r);
      total = hn::Add(total, power);
    }
    hn::Store(hn::Add(largest, hn::Log(tag, total)), tag, log_sum + r);
    const auto weight = hn::Div(hn::LoadU(tag, block.weights + r), total);
    for (std::size_t c = 0; c < classes; ++c) {
      T* const at = delta + c * block_rows + r;
      hn::StoreU(hn::Mul(hn::LoadU(tag, at), weight), tag, at);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) delta[block.labels[r] * block_rows + r] -= block.weights[r];
  for (std::size_t r = 0; r < block.rows; ++r) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c) {
      if (z[c * block_rows + r] > z[best * block_rows + r]) best = c;
    }
    result.correct += best == block.labels[r] ? 1 : 0;
    result.loss += static_cast<double>(block.weights[r]) *
                   static_cast<double>(log_sum[r] - z[block.labels[r] * block_rows + r]);
  }
  return result;
}

template <typename T>
HWY_INLINE BlockLoss RunBlock(const Pass& pass, const T* parameters, const Block<T>& block,
                              Workspace<T>& work, T* gradient) {
  const std::size_t rows = (block.rows + row_multiple - 1) / row_multiple * row_multiple;
  Forward(pass, parameters, block.x, rows, work);
  const T* const logits = work.core.back().data();
  const BlockLoss loss = pass.outputs() == 1
                             ? LogisticLoss(block, rows, logits, work.delta.data())
                             : SoftmaxLoss(block, rows, pass.outputs(), logits, work.delta.data());
  if (gradient != nullptr) Backward(pass, parameters, block.x, rows, work, gradient);
  return loss;
}

template <typename T>
HWY_INLINE void RunUpdate(const Update& how, const T* gradients, std::size_t count, std::size_t stride,
                          std::size_t begin, std::size_t end, T* parameters, T* first, T* second) {
  const hn::ScalableTag<T> tag;
  const auto number = [&](double value) { return hn::Set(tag, static_cast<T>(value)); };
  for (std::size_t at = begin; at < end; at += hn::Lanes(tag)) {
    auto gradient = hn::LoadU(tag, gradients + at);
    for (std::size_t i = 1; i < count; ++i) {
      gradient = hn::Add(gradient, hn::LoadU(tag, gradients + i * stride + at));
    }
    auto move = gradient;
    if (how.adam) {
      const auto m = hn::MulAdd(number(how.beta1), hn::LoadU(tag, first + at),
                                hn::Mul(number(1.0 - how.beta1), gradient));
      const auto v = hn::MulAdd(number(how.beta2), hn::LoadU(tag, second + at),
                                hn::Mul(number(1.0 - how.beta2), hn::Mul(gradient, gradient)));
      hn::StoreU(m, tag, first + at);
      hn::StoreU(v, tag, second + at);
      const auto root = hn::Sqrt(hn::Mul(v, number(1.0 / how.second_correction)));
      move = hn::Div(hn::Mul(m, number(1.0 / how.first_correction)), hn::Add(root, number(how.eps)));
    } else {
      move = hn::MulAdd(number(how.momentum), hn::LoadU(tag, first + at), gradient);
      hn::StoreU(move, tag, first + at);
    }
    hn::StoreU(hn::NegMulAdd(number(how.rate), move, hn::LoadU(tag, parameters + at)), tag, parameters + at);
  }
}

BlockLoss BlockF64(const Pass& pass, const double* parameters, const Block<double>& block,
                   Workspace<double>& work, double* gradient) {
  return RunBlock(pass, parameters, block, work, gradient);
}
BlockLoss BlockF32(const Pass& pass, const float* parameters, const Block<float>& block,
                   Workspace<float>& work, float* gradient) {
  return RunBlock(pass, parameters, block, work, gradient);
}
void UpdateF64(const Update& how, const double* gradients, std::size_t count, std::size_t stride,
               std::size_t begin, std::size_t end, double* parameters, double* first, double* second) {
  RunUpdate(how, gradients, count, stride, begin, end, parameters, first, second);
}
void UpdateF32(const Update& how, const float* gradients, std::size_t count, std::size_t stride,
               std::size_t begin, std::size_t end, float* parameters, float* first, float* second) {
  RunUpdate(how, gradients, count, stride, begin, end, parameters, first, second);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::nets::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::nets::detail {

HWY_EXPORT(BlockF64);
HWY_EXPORT(BlockF32);
HWY_EXPORT(UpdateF64);
HWY_EXPORT(UpdateF32);

BlockLoss run_block(const Pass& pass, const double* parameters, const Block<double>& block,
                    Workspace<double>& work, double* gradient) {
  return HWY_DYNAMIC_DISPATCH(BlockF64)(pass, parameters, block, work, gradient);
}
BlockLoss run_block(const Pass& pass, const float* parameters, const Block<float>& block,
                    Workspace<float>& work, float* gradient) {
  return HWY_DYNAMIC_DISPATCH(BlockF32)(pass, parameters, block, work, gradient);
}
void update(const Update& how, const double* gradients, std::size_t count, std::size_t stride,
            std::size_t begin, std::size_t end, double* parameters, double* first, double* second) {
  HWY_DYNAMIC_DISPATCH(UpdateF64)(how, gradients, count, stride, begin, end, parameters, first, second);
}
void update(const Update& how, const float* gradients, std::size_t count, std::size_t stride,
            std::size_t begin, std::size_t end, float* parameters, float* first, float* second) {
  HWY_DYNAMIC_DISPATCH(UpdateF32)(how, gradients, count, stride, begin, end, parameters, first, second);
}

}  // namespace normscope::nets::detail
#endif
