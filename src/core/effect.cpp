#include "core/effect.hpp"

#include "core/capture.hpp"

namespace taper::detail {

void run_effect(const char* name, autograd::Op::Forward function, std::initializer_list<autograd::Input> read,
                std::initializer_list<autograd::Input> written, const void* attributes, std::size_t attribute_bytes) {
  autograd::Operand operands[6];
  std::size_t n = 0;
  for (const auto& list : {read, written})
    for (const autograd::Input& input : list) {
      const TensorImpl& impl = *input.tensor->impl();
      operands[n++] = {impl.buffer->data(), impl.shape.begin(), impl.shape.numel(), impl.shape.rank(), impl.dtype};
    }
  const std::span<const autograd::Operand> all(operands, n);
  const autograd::ForwardArgs args{
      .inputs = all.first(read.size()), .output = {}, .aux = all.subspan(read.size()), .attributes = attributes};
  if (recorder) [[unlikely]]
    recorder->forward(name, function, {read.begin(), read.size()}, args, attribute_bytes);
  function(args);
  for (const autograd::Input& input : written) ++input.tensor->impl()->buffer->version;
}

}  // namespace taper::detail
