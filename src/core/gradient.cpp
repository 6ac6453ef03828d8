#include "core/gradient.hpp"

#include <cstring>

#include "base/fail.hpp"
#include "core/capture.hpp"
#include "kernels/accumulate.hpp"

namespace taper::detail {

namespace {

void add_into(Buffer* sum, Buffer* term, const Node& node) {
  if (recorder) [[unlikely]]
    recorder->accumulate(sum, term, node.numel, node.dtype);
  if (node.dtype == DType::float32)
    kernels::accumulate(static_cast<float*>(sum->data()), static_cast<const float*>(term->data()), node.numel);
  else
    kernels::accumulate(static_cast<double*>(sum->data()), static_cast<const double*>(term->data()), node.numel);
}

Buffer* copy_of(Buffer* buffer) {
  Buffer* copy = new_buffer(buffer->bytes);
  if (recorder) [[unlikely]]
    recorder->copy(copy, buffer);
  std::memcpy(copy->data(), buffer->data(), buffer->bytes);
  return copy;
}

}  // namespace

Buffer* unshared(Buffer* buffer) {
  if (buffer->refs.is_one()) return buffer;
  Buffer* copy = copy_of(buffer);
  release(buffer);
  return copy;
}

void add_contribution(Node& node, Buffer* term) {
  node.gradient = unshared(node.gradient);
  add_into(node.gradient, term, node);
  release(term);
}

void run_hooks(Node& node) {
  if (recorder && !node.extra->hooks.empty()) [[unlikely]]
    recorder->refuse("a hook ran on a gradient: expected none, got one on ", node.op->name, ' ', node.shape(),
                     "; what it does is not repeated, so remove it or run the step as it is");
  for (std::size_t i = 0; i < node.extra->hooks.size(); ++i) {
    const Tensor gradient = adopt(retain(node.gradient), node.shape(), node.dtype);
    const Tensor replaced = (*node.extra->hooks[i])(gradient);
    if (!replaced.defined()) continue;
    if (!(replaced.shape() == node.shape()) || replaced.dtype() != node.dtype)
      fail(ErrorKind::shape, "register_hook: the hook's gradient does not fit: expected ", name_of(node.dtype), " ",
           node.shape(), ", got ", name_of(replaced.dtype()), " ", replaced.shape());
    release(node.gradient);
    node.gradient = retain(replaced.impl()->buffer);
  }
}

void keep_gradient(Node& node) {
  if (recorder) [[unlikely]]
    recorder->reads_gradient(node);
  Tensor& kept = node.ensure_extra().gradient;
  if (kept.defined()) {
    add_into(kept.impl()->buffer, node.gradient, node);
    ++kept.impl()->buffer->version;
    return;
  }
  // A leaf does not hand its gradient on, so that its memory can be taken over when nobody else holds it.
  const bool takes_over = node.is_leaf() && !node.target && node.gradient->refs.is_one();
  kept = adopt(takes_over ? std::exchange(node.gradient, nullptr) : copy_of(node.gradient), node.shape(), node.dtype);
  if (recorder) [[unlikely]]
    recorder->set_gradient(node);
}

}  // namespace taper::detail
