#pragma once

#include "kernels/elementwise.hpp"
#include "taper/autograd.hpp"

namespace taper {

/// The op of a map of one element. The map `F` itself is the op's attributes.
template <class F>
constexpr autograd::Op map_op(const char* name, const char* derivative) {
  using namespace autograd;
  autograd::Op op{.name = name, .derivative = derivative, .forward = {}, .backward = {}};
  const auto set = [&]<class T>(int dtype, T) {
    op.forward[dtype] = [](const ForwardArgs& args) {
      kernels::map<F, T>(args.inputs[0].as<T>(), args.output.as<T>(), args.output.numel, args.attributes_as<F>());
    };
    op.backward[dtype] = [](const BackwardArgs& args) {
      const Operand& saved = F::needs == kernels::Needs::output ? args.output : args.inputs[0];
      const GradientSlot& dx = args.input_gradients[0];
      kernels::map_grad<F, T>(args.output_gradient.as<T>(), saved.as<T>(), dx.as<T>(), args.output.numel,
                              args.attributes_as<F>(), dx.add);
    };
  };
  set(int(DType::float32), float());
  set(int(DType::float64), double());
  op.needs[0] = F::needs == kernels::Needs::output  ? kNeedsOutput
                : F::needs == kernels::Needs::input ? needs_input(0)
                                                    : kNeedsNothing;
  return op;
}

}  // namespace taper
