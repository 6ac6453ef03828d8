#include <torch/torch.h>

#include "models.hpp"

namespace {

using bench::Extents;
using bench::Strides;
using bench::Task;
using bench::Windows;

struct Torch {
  using Tensor = torch::Tensor;
  using Tensors = std::vector<Tensor>;
  using NoGrad = torch::NoGradGuard;

  static Tensor zeros(const Extents& shape, bool is_double) {
    return torch::zeros(shape, is_double ? torch::kFloat64 : torch::kFloat32);
  }
  static Tensor integers(const Extents& shape) { return torch::zeros(shape, torch::kInt64); }
  /// Of a tensor in row-major order.
  template <class T>
  static T* data(const Tensor& x) {
    if (!x.is_contiguous()) throw std::invalid_argument("data of a tensor that is not contiguous");
    return x.data_ptr<T>();
  }
  static std::size_t numel(const Tensor& x) { return std::size_t(x.numel()); }
  static bool is_double(const Tensor& x) { return x.scalar_type() == torch::kFloat64; }
  static Extents shape(const Tensor& x) { return x.sizes().vec(); }

  static void require_grad(const Tensor& x) { x.requires_grad_(true); }
  static void set_grad(const Tensor& x, const Tensor& gradient) { x.mutable_grad() = gradient; }
  static Tensor gradient(const Tensor& x) { return x.grad().contiguous(); }
  static Tensors grad(const Tensor& y, const Tensors& leaves, const Tensor& gradient, bool retain) {
    Tensors out = torch::autograd::grad({y}, leaves, {gradient}, retain);
    for (Tensor& tensor : out)
      if (!tensor.is_contiguous()) tensor = tensor.contiguous();
    return out;
  }

  static void flush_denormals(bool on) { at::globalContext().setFlushDenormal(on); }

  static Tensor add(const Tensor& a, const Tensor& b) { return a + b; }
  static Tensor mul(const Tensor& a, const Tensor& b) { return a * b; }
  static Tensor sum(const Tensor& x) { return x.sum(); }
  static Tensor relu(const Tensor& x) { return torch::relu(x); }
  static Tensor squeeze(const Tensor& x, std::int64_t dim) { return x.squeeze(dim); }
  static Tensor flatten(const Tensor& x) { return x.flatten(1); }
  static Tensor swapped(const Tensor& x) { return x.transpose(1, 2); }
  static Tensor transpose(const Tensor& x) { return swapped(x).contiguous(); }
  static Tensor reshape(const Tensor& x, const Extents& shape) { return x.reshape(shape); }
  static Tensor select(const Tensor& x, std::int64_t index) { return x.select(0, index); }
  static Tensor mean(const Tensor& x, std::int64_t dim) { return x.mean(dim); }
  static Tensor cat(const Tensor& a, const Tensor& b) { return torch::cat({a, b}, 1); }
  static Tensor gelu(const Tensor& x) { return torch::gelu(x); }
  static Tensor sigmoid(const Tensor& x) { return torch::sigmoid(x); }
  static Tensor mse_loss(const Tensor& x, const Tensor& y) { return torch::mse_loss(x, y); }
  static Tensor upsample(const Tensor& x) { return at::upsample_nearest1d(x, 2 * x.size(2)); }
  static Tensor matmul(const Tensor& a, const Tensor& b, bool ta, bool tb) {
    return torch::matmul(ta ? a.t() : a, tb ? b.t() : b);
  }
  static Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b) { return torch::linear(x, w, b); }
  static Tensor softmax(const Tensor& x) { return x.softmax(-1); }
  static Tensor log_softmax(const Tensor& x) { return x.log_softmax(-1); }
  static Tensor cross_entropy(const Tensor& x, const Tensor& y) { return torch::cross_entropy_loss(x, y); }
  static Tensor embedding(const Tensor& rows, const Tensor& w) { return torch::embedding(w, rows); }
  static Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
    return at::scaled_dot_product_attention(q, k, v).contiguous();
#else
    const double scale = 1 / std::sqrt(double(q.size(-1)));
    return torch::matmul((torch::matmul(q, k.transpose(-2, -1)) * scale).softmax(-1), v);
#endif
  }

  static Tensor causal(const Tensor& q, const Tensor& k, const Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
    return at::scaled_dot_product_attention(q, k, v, {}, 0, true).contiguous();
#else
    const double scale = 1 / std::sqrt(double(q.size(-1)));
    const Tensor mask = torch::full({q.size(-2), k.size(-2)}, -INFINITY).triu(1);
    return torch::matmul((torch::matmul(q, k.transpose(-2, -1)) * scale + mask).softmax(-1), v);
#endif
  }

  static std::map<std::string, Tensor (*)(const Tensor&)> maps() {
    return {{"relu", [](const Tensor& x) { return torch::relu(x); }},
            {"exp", [](const Tensor& x) { return torch::exp(x); }},
            {"log", [](const Tensor& x) { return torch::log(x); }},
            {"tanh", [](const Tensor& x) { return torch::tanh(x); }},
            {"sigmoid", sigmoid},
            {"sqrt", [](const Tensor& x) { return torch::abs(x).sqrt(); }},
            {"gelu", gelu}};
  }
  static std::map<std::string, Tensor (*)(const Tensor&, std::int64_t)> reductions() {
    return {{"mean", mean},
            {"sum", [](const Tensor& x, std::int64_t dim) { return x.sum(dim); }},
            {"max", [](const Tensor& x, std::int64_t dim) { return x.amax(dim); }},
            {"var", [](const Tensor& x, std::int64_t dim) { return x.var(torch::IntArrayRef(dim), true, false); }}};
  }

  using Operation = Tensor (*)(const Tensors& x, const Tensor& index);
  static std::map<std::string, Operation> operations() {
    return {{"reverse",
             [](const Tensors& x, const Tensor&) {
               return x[0].permute({2, 1, 0}).contiguous();
             }},
            {"stack_last",
             [](const Tensors& x, const Tensor&) {
               return torch::stack({x[0], x[1]}, -1);
             }},
            {"cat", [](const Tensors& x, const Tensor&) { return cat(x[0], x[1]); }},
            {"pad_zeros",
             [](const Tensors& x, const Tensor&) {
               return torch::constant_pad_nd(x[0], {1, 1, 1, 1});
             }},
            {"pad_replicate",
             [](const Tensors& x, const Tensor&) {
               return at::replication_pad2d(x[0], {1, 1, 1, 1});
             }},
            {"index_select", [](const Tensors& x, const Tensor& i) { return torch::index_select(x[0], 1, i); }},
            {"gather", [](const Tensors& x, const Tensor& i) { return torch::gather(x[0], 1, i); }},
            {"prelu", [](const Tensors& x, const Tensor&) { return torch::prelu(x[0], x[1]); }},
            {"nearest",
             [](const Tensors& x, const Tensor&) {
               return at::upsample_nearest2d(x[0], c10::nullopt, {{2., 2.}});
             }},
            {"bilinear",
             [](const Tensors& x, const Tensor&) {
               return at::upsample_bilinear2d(x[0], c10::nullopt, false, {{2., 2.}});
             }},
            {"mul", [](const Tensors& x, const Tensor&) { return x[0] * x[1]; }},
            {"plus", [](const Tensors& x, const Tensor&) { return x[0] + x[1]; }},
            {"quotient", [](const Tensors& x, const Tensor&) { return x[0] / x[1]; }},
            {"maximum", [](const Tensors& x, const Tensor&) { return torch::maximum(x[0], x[1]); }},
            {"pad_ends",
             [](const Tensors& x, const Tensor&) {
               return torch::constant_pad_nd(x[0], {1, 2});
             }},
            {"select_last", [](const Tensors& x, const Tensor&) { return x[0].select(-1, 1).contiguous(); }},
            {"nearest_1d",
             [](const Tensors& x, const Tensor&) {
               return at::upsample_nearest1d(x[0], at::IntArrayRef({2 * x[0].size(-1)}), 2.);
             }},
            {"sum_0_2",
             [](const Tensors& x, const Tensor&) {
               return x[0].sum(torch::IntArrayRef({0, 2}));
             }},
            {"sum_1", [](const Tensors& x, const Tensor&) { return x[0].sum(torch::IntArrayRef({1})); }},
            {"prod_1", [](const Tensors& x, const Tensor&) { return x[0].prod(1); }},
            {"amax_1", [](const Tensors& x, const Tensor&) { return x[0].amax(torch::IntArrayRef({1})); }},
            {"amax_pool_1d",
             [](const Tensors& x, const Tensor&) {
               return std::get<0>(at::adaptive_max_pool1d(x[0], torch::IntArrayRef({5})));
             }},
            {"matmul", [](const Tensors& x, const Tensor&) { return torch::matmul(x[0], x[1]); }},
            {"prod", [](const Tensors& x, const Tensor&) { return x[0].prod(-1); }},
            {"norm", [](const Tensors& x, const Tensor&) { return x[0].norm(2, -1); }},
            {"var", [](const Tensors& x, const Tensor&) { return x[0].var(-1); }},
            {"logsumexp", [](const Tensors& x, const Tensor&) { return x[0].logsumexp(-1); }},
            {"amax", [](const Tensors& x, const Tensor&) { return x[0].amax(-1); }},
            {"sin", [](const Tensors& x, const Tensor&) { return x[0].sin(); }},
            {"power", [](const Tensors& x, const Tensor&) { return x[0].pow(2.5); }},
            {"softmax_1", [](const Tensors& x, const Tensor&) { return x[0].softmax(1); }},
            {"log_softmax_1", [](const Tensors& x, const Tensor&) { return x[0].log_softmax(1); }},
            {"smoothed",
             [](const Tensors& x, const Tensor& i) {
               return torch::cross_entropy_loss(x[0], i, {}, at::Reduction::Mean, -100, 0.1);
             }},
            {"cross_entropy", [](const Tensors& x, const Tensor& i) { return torch::cross_entropy_loss(x[0], i); }},
            {"causal", [](const Tensors& x, const Tensor&) { return causal(x[0], x[1], x[2]); }},
            {"adaptive_max_1",
             [](const Tensors& x, const Tensor&) {
               return std::get<0>(at::adaptive_max_pool2d(x[0], {1, 1}));
             }},
            {"adaptive_max_5",
             [](const Tensors& x, const Tensor&) {
               return std::get<0>(at::adaptive_max_pool2d(x[0], {5, 5}));
             }},
            {"max_pool3d", [](const Tensors& x, const Tensor&) { return torch::max_pool3d(x[0], 2); }},
            {"avg_pool3d", [](const Tensors& x, const Tensor&) { return at::avg_pool3d(x[0], 2); }},
            {"conv3d", [](const Tensors& x, const Tensor&) { return torch::conv3d(x[0], x[1], {}, 1, 1); }}};
  }

  static Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& b, const Strides& s) {
    return torch::conv1d(x, w, b, s.stride, s.padding, s.dilation, s.groups);
  }
  static Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const Strides& s) {
    return torch::conv2d(x, w, b, s.stride, s.padding, s.dilation, s.groups);
  }
  static Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& b, const Strides& s) {
    return x.dim() == 3 ? torch::conv_transpose1d(x, w, b, s.stride, s.padding, 0, s.groups, s.dilation)
                        : torch::conv_transpose2d(x, w, b, s.stride, s.padding, 0, s.groups, s.dilation);
  }

  static Tensor avg_pool1d(const Tensor& x, const Windows& w) {
    return torch::avg_pool1d(x, w.kernel, w.stride, w.padding, false, w.counts_padding);
  }
  static Tensor avg_pool2d(const Tensor& x, const Windows& w) {
    return torch::avg_pool2d(x, w.kernel, w.stride, w.padding, false, w.counts_padding);
  }
  static Tensor max_pool1d(const Tensor& x, const Windows& w) {
    return torch::max_pool1d(x, w.kernel, w.stride, w.padding);
  }
  static Tensor max_pool2d(const Tensor& x, const Windows& w) {
    return torch::max_pool2d(x, w.kernel, w.stride, w.padding);
  }
  static Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t outputs) {
    return torch::adaptive_avg_pool1d(x, outputs);
  }
  static Tensor adaptive_avg_pool2d(const Tensor& x, std::int64_t outputs) {
    return at::adaptive_avg_pool2d(x, {outputs, outputs});
  }

  static Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b) {
    return torch::layer_norm(x, w.sizes(), w, b);
  }
  static Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& w, const Tensor& b) {
    return torch::group_norm(x, groups, w, b);
  }
  static Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& w, const Tensor& b,
                           bool training) {
    return torch::batch_norm(x, w, b, mean, var, training, 0.1, 1e-5, false);
  }
  static Tensor lstm(const Tensor& x, const Tensors& w) {
    const Tensor state = torch::zeros({1, x.size(1), w[1].size(1)});
    return std::get<0>(torch::lstm(x, {state, state}, w, true, 1, 0, true, false, false));
  }
  static Tensor gru(const Tensor& x, const Tensors& w) {
    return std::get<0>(torch::gru(x, torch::zeros({1, x.size(1), w[1].size(1)}), w, true, 1, 0, true, false, false));
  }

  template <class O, class Options>
  static std::function<void()> stepping(const Tensors& parameters, const Options& options) {
    return [made = std::make_shared<O>(parameters, options)] { made->step(); };
  }
#if TORCH_VERSION_MAJOR >= 2
  /// What Python's `fused=True` calls, and the optimisers of C++ do not; null where there is none.
  static std::function<void()> fused(const Task& t, const Tensors& parameters) {
    Tensors gradients, first, second, steps;
    for (const Tensor& parameter : parameters) {
      gradients.push_back(parameter.grad());
      first.push_back(torch::zeros_like(parameter));
      second.push_back(torch::zeros_like(parameter));
      steps.push_back(torch::zeros({}));
    }
    if (t.is("f", "sgd") || t.is("f", "momentum")) {
      const Tensors buffers = t.is("f", "momentum") ? first : Tensors();
      return [=, p = parameters, is_first = std::make_shared<bool>(true)] {
        torch::NoGradGuard guard;
        at::_fused_sgd_(p, gradients, buffers, 0, buffers.empty() ? 0 : 0.9, 1e-3, 0, false, false, *is_first);
        *is_first = false;
      };
    }
    if (!t.is("f", "adam") && !t.is("f", "adamw")) return nullptr;
    return [=, p = parameters, decays = t.is("f", "adamw")] {
      torch::NoGradGuard guard;
      at::_foreach_add_(steps, 1);
      if (decays)
        at::_fused_adamw_(p, gradients, first, second, {}, steps, 1e-3, 0.9, 0.999, 1e-2, 1e-8, false, false);
      else
        at::_fused_adam_(p, gradients, first, second, {}, steps, 1e-3, 0.9, 0.999, 0, 1e-8, false, false);
    };
  }
#else
  static std::function<void()> fused(const Task&, const Tensors&) { return nullptr; }
#endif

  static std::function<void()> optimizer(const Task& t, const Tensors& parameters) {
    namespace optim = torch::optim;
    if (const auto step = fused(t, parameters)) return step;
    if (t.is("f", "adam")) return stepping<optim::Adam>(parameters, optim::AdamOptions(1e-3));
    if (t.is("f", "adamw")) return stepping<optim::AdamW>(parameters, optim::AdamWOptions(1e-3));
    if (t.is("f", "rmsprop")) return stepping<optim::RMSprop>(parameters, optim::RMSpropOptions(1e-3));
    return stepping<optim::SGD>(parameters, optim::SGDOptions(1e-3).momentum(t.is("f", "momentum") ? 0.9 : 0));
  }
  using Loss = std::function<Tensor(const Tensor& x, const Tensor& target)>;
  static std::function<void()> train_step(const Tensors& parameters, const Loss& loss, const Tensor& x,
                                          const Tensor& target) {
    const auto adam = std::make_shared<torch::optim::Adam>(parameters, torch::optim::AdamOptions(1e-3));
    return [=] {
      adam->zero_grad();
      loss(x, target).backward();
      adam->step();
    };
  }
};

void set_threads(int threads) {
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::serve({TORCH_VERSION, bench::all_makers<Torch>(), set_threads}, argc, argv);
}
